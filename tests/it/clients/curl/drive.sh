#!/usr/bin/env bash
# Sends the steps of a plan with curl, and prints what each was answered (see tests/it/clients/mod.rs). The steps become the
# configuration of two runs of curl: one sends them one after another, the other beside each other.
set -euo pipefail

. "$CLIENT_SIGN/curl.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

PATIENCE_SECONDS=30

# The configuration of one transfer: NAME METHOD TARGET SENDING SECRET FILE
transfer() {
    local file=$6 header
    printf 'url = "%s"\nrequest = "%s"\ncacert = "%s"\n' "$CLIENT_URL$3" "$2" "$CLIENT_CA"
    if [ "$CLIENT_HTTP" = 2 ]; then echo http2; else echo http1.1; fi
    # A 100 that is asked for and does not come is an error here, not a second lost.
    printf 'silent\nshow-error\nmax-time = %d\nexpect100-timeout = %d\n' "$PATIENCE_SECONDS" $((2 * PATIENCE_SECONDS))
    printf 'output = "%s"\nwrite-out = "%s %%{http_code} %%{http_version} %%{exitcode}\\n"\n' "$scratch/$1" "$1"
    [ "$file" = - ] && file=/dev/null
    while read -r header; do printf 'header = "%s"\n' "$header"; done < <(sign_v1 "$CLIENT_KEY" "$5" "$2" "$3" "$file")
    [ "$2" = GET ] && return
    printf 'data-binary = "@%s"\nheader = "Content-Type: application/json"\n' "$file"
    case $4 in
        whole) echo 'header = "Expect:"' ;; # curl asks by itself when a body is large
        chunked) echo 'header = "Transfer-Encoding: chunked"' ;;
        expect) echo 'header = "Expect: 100-continue"' ;;
    esac
}

# The configuration of all steps at one place of the plan.
configuration() {
    local separator='' name place method target sending secret file
    while IFS=$'\t' read -r name place method target sending secret file; do
        [ "$place" = "$1" ] || continue
        printf '%s' "$separator"
        transfer "$name" "$method" "$target" "$sending" "$secret" "$file"
        separator=$'next\n'
    done <"$CLIENT_PLAN"
}

# What came back, a line of JSON for each step.
seen() {
    local name status http exit_code text
    while read -r name status http exit_code; do
        text=$(sed 's/\\/\\\\/g; s/"/\\"/g' "$scratch/$name" 2>/dev/null || true)
        if [ "$exit_code" = 0 ]; then
            printf '{"step":"%s","status":%d,"http":"%s","text":"%s"}\n' "$name" "$status" "$http" "$text"
        else
            printf '{"step":"%s","error":"curl ended with %d"}\n' "$name" "$exit_code"
        fi
    done
}

for place in after beside; do
    configuration "$place" >"$scratch/configuration"
    [ -s "$scratch/configuration" ] || continue
    options=()
    [ "$place" = beside ] && options=(--parallel --parallel-immediate)
    # curl's own exit code is that of its last transfer; each one's stands in its line.
    { curl --config "$scratch/configuration" "${options[@]}" || true; } | seen
done
