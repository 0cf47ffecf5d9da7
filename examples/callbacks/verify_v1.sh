#!/bin/sh
# Verifies v1 callbacks of the default dialect, where a server hands them to a shell. Needs only a POSIX shell and openssl.
#
#   . examples/callbacks/verify_v1.sh
#   cat > body.json # as received, from standard input
#   verify_v1 "$V1_SECRET" "$REQUEST_URI" "$HTTP_X_TIMESTAMP" "$HTTP_X_SIGNATURE" body.json || exit # answer 401
#
# The target is the path of the callback's address, as the gateway sent it: a proxy must not have changed it. A shell variable
# does not hold all bytes: keep the body in a file. Other users of the machine can see the secret in openssl's arguments while it
# runs.

# [snippet]
# Fails unless the callback is valid and recent: verify_v1 SECRET TARGET TIMESTAMP SIGNATURE BODY_FILE
verify_v1() {
    path=${2%%\?*} # the query is not signed
    expected=$({ printf '%s.POST.%s.' "$3" "$path"; cat "$5"; } | openssl dgst -sha256 -hmac "$1" -r | cut -d ' ' -f 1)
    # A shell cannot compare in constant time. What it compares are hashes with a key that nobody knows.
    key=$(openssl rand -hex 32)
    hashed() { printf '%s' "$1" | openssl dgst -sha256 -hmac "$key" -r; }
    [ -n "$expected" ] && [ "$(hashed "$expected")" = "$(hashed "$4")" ] || { echo 'wrong signature' >&2; return 1; }
    # Only digits may reach arithmetic: some shells run commands that they find there.
    case $3 in '' | 0* | *[!0123456789]* | ?????????????*) age=301 ;; *) age=$(($(date +%s) - $3)) ;; esac
    [ "${age#-}" -le 300 ] || { echo 'wrong timestamp' >&2; return 1; } # a replayed callback
}
# [/snippet]
