# Read by the scripts of this folder with `.`: makes the tables of the set that the script is named after, see run.py.

set -eu
name=$(basename "$0" .sh)
root=$(cd "$(dirname "$0")/../.." && pwd)
dry_run=''
case " $* " in *" --dry_run "*) dry_run=--dry_run ;; esac

stop() {
    echo "$name: $1" >&2
    exit 1
}

. "$root/scripts/environment.sh"
choose_python
PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} exec "$python" -m scripts.paper.run "$name" "$@"
