#!/bin/sh
# Has a council judge what changed since a commit, and exits with its verdict: 0 pass, 1 fail, 2 unclear or none.
#
#     council-gate.sh CONFIG BASE [OPTION ...]
#
# CONFIG is a configuration with models and grants, as council.toml beside this script; @PROJECT@ in it stands for the folder
# that this is called in. BASE is a commit, a branch or a tag, also as in HEAD~1. Options go to `conductor council gate`:
# --threshold 0.8 --rubric Security.
#
# COUNCIL_HOME is a folder to keep the host's home in: the signatures of all runs are by one key then. COUNCIL_RESULT is the
# file that the result is written to, council-result.json if it is not set.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 CONFIG BASE [OPTION ...]" >&2
    exit 2
fi
config=$1
base=$2
shift 2
result=${COUNCIL_RESULT:-council-result.json}
keeps=${COUNCIL_HOME:-}
home=${COUNCIL_HOME:-$(mktemp -d)}

sed "s|@PROJECT@|$PWD|g" "$config" > "$home/config.toml"
conductor --home "$home" run > "$home/gate.log" 2>&1 &
host=$!
end() {
    kill "$host" 2> /dev/null || true
    wait "$host" 2> /dev/null || true
    if [ -z "$keeps" ]; then rm -rf "$home"; fi
}
trap end EXIT

tries=0
until conductor --home "$home" status > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -ge 120 ] || ! kill -0 "$host" 2> /dev/null; then
        echo "the host did not start:" >&2
        cat "$home/gate.log" >&2
        exit 2
    fi
    sleep 1
done

verdict=0
conductor --home "$home" council gate --base "$base" --agent ci --json "$@" > "$result" || verdict=$?
cat "$result"
exit "$verdict"
