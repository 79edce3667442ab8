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

for way in recall_tree cpt; do
    case $way in
        recall_tree) options="--recall_tree $classes" name="a tree proposes, scorers decide (--recall_tree)" ;;
        cpt) options="--cpt $classes --rerank" name="a tree of probabilities proposes (--cpt --rerank)" ;;
    esac
    step "Learning: $name; the first run compiles, which takes a while"
    # shellcheck disable=SC2086
    timed $way.train.json -d train.vw $options -b 24 -q ab --cubic abc -f $way.model || stop "learning failed"
    step "Testing on files held out"
    timed $way.test.json -d test.vw -t -i $way.model -p $way.predictions.txt || stop "testing failed"
done

step "The five most probable next tokens of the first three places held out, and how likely"
head -n 3 test.vw | "$bin/xclass" -t -i cpt.model --top_k 5 -p stdout --quiet || stop "predicting failed"

step "Result"
"$bin/python" "$root/demo/report.py" show . recall_tree cpt || stop "could not compare the predictions"
echo "All of it took $(($(date +%s) - begin)) s. Data, models and predictions are in $data"
