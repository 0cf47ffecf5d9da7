#!/usr/bin/env bash
# Compares Paybridge with nginx, nginx + Lua, HAProxy and a Node + PostgreSQL service on this machine, and writes
# target/compare/compare.md, compare.svg and compare.json. `--quick` measures briefly; `--help` lists all options.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
have() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }
have nginx || missing+=(nginx)
compgen -G '/usr/lib/nginx/modules/ngx_http_lua_module.so' >/dev/null || missing+=(libnginx-mod-http-lua)
compgen -G '/usr/lib/*/lua/5.1/cjson.so' >/dev/null || missing+=(lua-cjson)
have haproxy || missing+=(haproxy)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || have initdb || missing+=(postgresql)
have node || missing+=(nodejs)
have npm || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
    printf '!! not installed: %s\n   apt-get install --no-install-recommends %s\n' "${missing[*]}" "${missing[*]}" >&2
    [ "${PAYBRIDGE_REQUIRE_TOOLS:-0}" != 1 ] || exit 1
    printf '   comparisons that need it are left out\n' >&2
fi

# The pinned modules of the service in Node.
modules=target/compare/node wanted=benches/compare/node/package-lock.json
if have npm && ! { cmp -s "$wanted" "$modules/installed.json" && [ -d "$modules/node_modules" ]; }; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp benches/compare/node/package.json "$wanted" "$modules"
    npm ci --prefix "$modules" --ignore-scripts --no-audit --no-fund --loglevel=error
    cp "$wanted" "$modules/installed.json"
fi

# --smoke only checks that everything works, which needs no optimized build.
case " $* " in
    *' --smoke '*) exec cargo test --locked --bench compare -- "$@" ;;
    *) exec cargo bench --locked --bench compare -- "$@" ;;
esac
