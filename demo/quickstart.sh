#!/bin/sh
# From nothing to predictions: installs xclass beside the project, makes a stream of real examples out of Python's
# own library, learns it, saves the model and tests it on files it has not seen.
#
#     sh demo/quickstart.sh                   python3 must be 3.10 or newer
#     PYTHON=python3.12 sh demo/quickstart.sh
#     EXAMPLES=100000 sh demo/quickstart.sh   a shorter stream

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
data=$root/demo/quickstart_data
: "${EXAMPLES:=3000000}"

stop() {
    echo "quickstart: $1" >&2
    exit 1
}

step() {
    printf '\n== %s\n' "$1"
}

# Show a command as one would type it in the folder of the data, then run it under the clock.
timed() {
    note=$1
    shift
    echo "\$ xclass $*"
    "$bin/python" "$root/demo/report.py" run "$note" "$bin/xclass" "$@"
}

begin=$(date +%s)
. "$root/scripts/environment.sh"

step "Installing"
install_xclass "" || stop "could not install xclass; see above"
bin=$root/.venv/bin

step "Making the stream"
"$bin/python" "$root/demo/make_stream.py" "$data" --limit "$EXAMPLES" || stop "could not make the stream"
cd "$data"
classes=$(($(wc -l < labels.txt)))

step "Learning (the first run compiles, which takes a while)"
timed train.json -d train.vw --recall_tree "$classes" -b 24 -q ab --cubic abc -f model.bin || stop "learning failed"

step "Testing on files held out"
timed test.json -d test.vw -t -i model.bin -p predictions.txt || stop "testing failed"

step "Result"
"$bin/python" "$root/demo/report.py" show . || stop "could not compare the predictions"
echo "All of it took $(($(date +%s) - begin)) s. Data, model and predictions are in $data"
