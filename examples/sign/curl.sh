#!/bin/sh
# Signs v1 requests for curl. Needs only a POSIX shell and openssl.
#
#   . examples/sign/curl.sh
#   sign_v1 "$API_KEY" "$V1_SECRET" POST /api/v1/payin body.json > headers.txt
#   curl -H @headers.txt -H 'Content-Type: application/json' --data-binary @body.json "$GATEWAY/api/v1/payin"
#
# `--data-binary` sends the file unchanged; `-d` would drop its line ends, and the signature would not match. Other users of
# the machine can see the secret in openssl's arguments while it runs.

# [snippet]
# Prints the headers of a signed v1 request: sign_v1 API_KEY SECRET METHOD TARGET [BODY_FILE]
sign_v1() {
    timestamp=$(date +%s) # seconds since 1970
    path=${4%%\?*}        # the query is not signed
    signature=$({ printf '%s.%s.%s.' "$timestamp" "$3" "$path"; cat "${5:-/dev/null}"; } |
        openssl dgst -sha256 -hmac "$2" -r | cut -d ' ' -f 1)
    printf 'X-Api-Key: %s\nX-Timestamp: %s\nX-Signature: %s\n' "$1" "$timestamp" "$signature"
}
# [/snippet]
