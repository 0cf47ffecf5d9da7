#!/bin/sh
# Signs v1 requests for curl. Needs openssl, and nothing else that a shell does not have.
#
#   . examples/sign/curl.sh
#   sign_v1 "$API_KEY" "$V1_SECRET" POST /api/v1/payin body.json > headers.txt
#   curl -H @headers.txt -H 'Content-Type: application/json' --data-binary @body.json "$GATEWAY/api/v1/payin"
#
# `--data-binary` sends the file as it is; `-d` would drop its line ends, and the signature would not match. On a machine
# that you share, others can see the secret among the arguments of openssl while it runs.

# [snippet]
# Prints the headers of a signed v1 request: sign_v1 API_KEY SECRET METHOD TARGET [BODY_FILE]
sign_v1() {
    timestamp=$(date +%s) # seconds since 1970
    path=${4%%\?*}        # what follows the ? is not signed
    signature=$({ printf '%s.%s.%s.' "$timestamp" "$3" "$path"; cat "${5:-/dev/null}"; } |
        openssl dgst -sha256 -hmac "$2" -r | cut -d ' ' -f 1)
    printf 'X-Api-Key: %s\nX-Timestamp: %s\nX-Signature: %s\n' "$1" "$timestamp" "$signature"
}
# [/snippet]
