#!/usr/bin/env bash
# Checks the examples with the tools that will read them, or with those tools' schemas. `.ci/run examples` installs the tools.
# A check whose tool is missing is reported and skipped; with PAYBRIDGE_REQUIRE_TOOLS=1 it fails. PAYBRIDGE_BIN names a binary to
# check the rules with, else one is built.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=target/examples
# The most exposure that `systemd-analyze security` may report, in tenths: 0 is fully sandboxed, 100 is not sandboxed.
MOST_EXPOSED=15
SCRATCH=$(mktemp -d)
LISTENER=
trap '[ -z "$LISTENER" ] || kill "$LISTENER"; rm -rf "$SCRATCH"' EXIT

report() {
    printf '%s\n' "$*" >&2
}

# Reports whether a program is installed; the second argument names what is not checked without it.
have() {
    command -v "$1" >/dev/null && return
    report "!! $1: not installed, so that $2 NOT checked (\`.ci/run examples\` installs it)"
    [ "${PAYBRIDGE_REQUIRE_TOOLS:-}" != 1 ] || exit 1
    return 1
}

systemd_unit() {
    have systemd-analyze "the systemd unit was" || return 0
    local unit=$SCRATCH/paybridge.service socket=$SCRATCH/paybridge.socket complaints
    cp examples/systemd/paybridge.socket "$socket"
    # systemd-analyze requires that the program of ExecStart exists, and paybridge is not installed here.
    sed "s#^ExecStart=/usr/local/bin/paybridge #ExecStart=$(command -v true) #" examples/systemd/paybridge.service >"$unit"
    if [ "$(systemd_version)" -lt 253 ]; then
        mkdir "$unit.d"
        cp examples/systemd/before-253.conf "$unit.d"
    fi
    # An unknown or misspelt key is only a complaint, not a failure. The drop-in causes one expected complaint.
    complaints=$({ systemd-analyze verify "$unit" "$socket" 2>&1 || echo 'systemd-analyze verify failed'; } |
        grep -v 'Failed to parse service type, ignoring: notify-reload' || true)
    if [ -n "$complaints" ]; then
        report "$complaints"
        return 1
    fi
    if ! systemd-analyze security --offline=true --threshold="$MOST_EXPOSED" --no-pager "$unit" >"$SCRATCH/security" 2>&1; then
        grep -v '^✓' "$SCRATCH/security" >&2
        return 1
    fi
    tail -n 1 "$SCRATCH/security"
}

systemd_version() {
    systemd-analyze --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p'
}

compose_file() {
    have "$VENV/bin/check-jsonschema" "the compose file was" || return 0
    "$VENV/bin/check-jsonschema" --builtin-schema vendor.compose-spec examples/compose/compose.yaml
    if grep -HnE 'image:[^#]*:latest|image: *[^:#]+$' examples/compose/compose.yaml examples/kubernetes/*.yaml >&2; then
        report "an image without a version"
        return 1
    fi
}

image() {
    have "$VENV/bin/hadolint" "the Dockerfile was" || return 0
    "$VENV/bin/hadolint" examples/compose/Dockerfile
}

kubernetes_manifests() {
    have "$VENV/bin/kubernetes-validate" "the Kubernetes manifests were" || return 0
    "$VENV/bin/kubernetes-validate" --strict examples/kubernetes/*.yaml
}

haproxy_configuration() {
    # Its directory is not in every user's path.
    local PATH=$PATH:/usr/sbin
    have haproxy "the HAProxy configuration was" || return 0
    haproxy -c -f examples/haproxy/haproxy.cfg
}

# Validates with the environment of a member. The validator connects to etcd, so a local port takes its place.
patroni_of_a_member() {
    env PATRONI_NAME=db1 \
        PATRONI_RESTAPI_CONNECT_ADDRESS=db1.example.com:8008 PATRONI_POSTGRESQL_CONNECT_ADDRESS=db1.example.com:5432 \
        PATRONI_RESTAPI_USERNAME=patroni PATRONI_RESTAPI_PASSWORD=x \
        PATRONI_SUPERUSER_USERNAME=postgres PATRONI_SUPERUSER_PASSWORD=x \
        PATRONI_REPLICATION_USERNAME=replicator PATRONI_REPLICATION_PASSWORD=x \
        PATRONI_ETCD3_HOSTS="127.0.0.1:$1" PATRONI_POSTGRESQL_BIN_DIR="$2" \
        "$VENV/bin/patroni" --validate-config --ignore-listen-port examples/patroni/patroni.yml
}

patroni_configuration() {
    have "$VENV/bin/patroni" "the Patroni configuration was" || return 0
    local programs port
    programs=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1 || true)
    have "${programs:-/usr/lib/postgresql}/postgres" "the Patroni configuration was" || return 0
    "$VENV/bin/python" -c 'import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(600)' >"$SCRATCH/port" &
    LISTENER=$!
    until port=$(grep . "$SCRATCH/port"); do
        kill -0 "$LISTENER" || return 1
        sleep 0.05
    done
    patroni_of_a_member "$port" "$programs"
    postgresql_parameters "$programs/postgres"
}

# Patroni checks a few parameters; PostgreSQL checks all of them.
postgresql_parameters() {
    local parameters
    "$VENV/bin/python" - >"$SCRATCH/parameters" <<'END'
import yaml

with open("examples/patroni/patroni.yml") as file:
    read = yaml.safe_load(file)
for section in (read["bootstrap"]["dcs"]["postgresql"], read["postgresql"]):
    for name, value in section["parameters"].items():
        print(f"--{name}={value}")
END
    mapfile -t parameters <"$SCRATCH/parameters"
    touch "$SCRATCH/postgresql.conf" "$SCRATCH/postgresql.auto.conf"
    if [ "$("$1" -C synchronous_commit -D "$SCRATCH" "${parameters[@]}")" != on ]; then
        report "examples/patroni/patroni.yml: synchronous_commit must be on"
        return 1
    fi
}

# Checks the rule files of the examples, assembled as the gateway reads them.
rules() {
    check_rules examples/compose/rules
    check_rules examples/systemd/rules
    have "$VENV/bin/python" "the rules in the Kubernetes manifests were" || return 0
    "$VENV/bin/python" - "$SCRATCH/kubernetes" <<'END'
import pathlib
import sys

import yaml

manifests = pathlib.Path("examples/kubernetes")
read = [one for file in manifests.glob("*.yaml") for one in yaml.safe_load_all(file.read_text())]
named = {(one["kind"], one["metadata"]["name"]): one for one in read}
pod = named["Deployment", "paybridge"]["spec"]["template"]["spec"]
(rules,) = (volume["projected"] for volume in pod["volumes"] if volume["name"] == "rules")
for source in rules["sources"]:
    if "secret" in source:
        files = named["Secret", source["secret"]["name"]]["stringData"]
        paths = {key: key for key in files}
    else:
        files = named["ConfigMap", source["configMap"]["name"]]["data"]
        paths = {item["key"]: item["path"] for item in source["configMap"]["items"]}
        assert files.keys() == paths.keys(), "every file of the ConfigMap is mounted"
    for key, path in paths.items():
        file = pathlib.Path(sys.argv[1], path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files[key])
END
    check_rules "$SCRATCH/kubernetes"
}

check_rules() {
    if [ -n "${PAYBRIDGE_BIN:-}" ]; then
        "$PAYBRIDGE_BIN" check --no-secrets --rules "$1"
    else
        cargo run --locked --quiet -- check --no-secrets --rules "$1"
    fi
}

for check in systemd_unit compose_file image kubernetes_manifests haproxy_configuration patroni_configuration rules; do
    printf -- '-- %s\n' "${check//_/ }"
    "$check"
done
