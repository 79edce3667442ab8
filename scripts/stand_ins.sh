#!/bin/sh
# All methods on all sets that stand in for the papers' data, a table beside the papers' figures.
#
#     sh scripts/stand_ins.sh DATA_DIR
#     sh scripts/stand_ins.sh DATA_DIR --small
#     sh scripts/stand_ins.sh --help
#
# Runs stand_ins.py, with the Python of .venv, or PYTHON, that has xclass; installs it where there is none.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)

stop() {
    echo "stand_ins: $1" >&2
    exit 1
}

dry_run=''
for word in "$@"; do
    case $word in --dry_run | --help | -h) dry_run=$word ;; esac
done
. "$root/scripts/environment.sh"
choose_python
exec "$python" "$root/scripts/stand_ins.py" "$@"
