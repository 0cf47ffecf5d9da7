#!/usr/bin/env bash
# Counts the instructions and allocations of each kind of request under callgrind, in all and without those of SHA-256, for
# which valgrind has no instructions as processors do. Needs valgrind. About ten minutes, besides the build of a release;
# PAYBRIDGE_BIN names another binary to count. The options are those of benches/compare.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v callgrind_control >/dev/null || { printf '!! not installed: valgrind\n' >&2 && exit 1; }
out=$PWD/target/compare/callgrind
[ -n "${PAYBRIDGE_BIN:-}" ] || cargo build --release --locked
binary=$(realpath "${PAYBRIDGE_BIN:-${CARGO_TARGET_DIR:-target}/release/paybridge}")
mkdir -p "$out"
cat >"$out/paybridge" <<END
#!/bin/sh
[ "\$1" = serve ] || exec "$binary" "\$@"
exec valgrind --tool=callgrind --compress-strings=no --compress-pos=no --quiet "$binary" "\$@"
END
chmod +x "$out/paybridge"
export PAYBRIDGE_BIN=$out/paybridge
exec cargo test --locked --bench compare -- --callgrind --only paybridge "$@"
