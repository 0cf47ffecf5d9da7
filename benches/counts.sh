#!/usr/bin/env bash
# How many instructions each hot piece of a request takes now, beside what benches/counts.toml recorded: changes over 1 %
# are marked. Fails only when a piece does not run. About a minute, after building.
#
#   benches/counts.sh            compares
#   benches/counts.sh --record   writes benches/counts.toml
#
# What callgrind saw stays in target/counts: `callgrind_annotate target/counts/v1_read.out` tells where a piece spends.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

if ! command -v valgrind >/dev/null; then
    as_root apt-get update -qq
    as_root apt-get install -y -qq --no-install-recommends valgrind
fi
exec cargo bench --locked --bench counts -- "$@"
