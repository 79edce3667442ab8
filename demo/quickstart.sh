#!/bin/sh
# From nothing to predictions: installs xclass beside the project, makes a stream of real examples out of Python's
# own library, learns it, saves the model and tests it on files it has not seen.
#
#     sh demo/quickstart.sh                   python3 must be 3.10 or newer
#     PYTHON=python3.12 sh demo/quickstart.sh
#     EXAMPLES=100000 sh demo/quickstart.sh   a shorter stream; with 3000000 it is the whole library

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
data=$root/demo/quickstart_data
: "${EXAMPLES:=800000}"

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

mkdir -p "$data"
cd "$data"

# Print the options that choose a reduction of so many classes, and its features.
options_of() {
    case $1 in
        recall_tree) echo "--recall_tree $2 -q ab --cubic abc" ;;
        cpt) echo "--cpt $2 --rerank -q ab --cubic abc" ;;
    esac
}

# Compile the kernels of a reduction in the background, unless an earlier run has: it learns a few examples.
compile() {
    # shellcheck disable=SC2046
    "$bin/xclass" -d few.vw $(options_of "$1" 1000) -f few.model --quiet &
    compiling=$!
}

wait_until_compiled() {
    ! kill -0 $compiling 2> /dev/null || echo "waiting until kernels are compiled, which takes a while in the first run"
    wait $compiling || stop "the kernels could not be compiled; see above"
    compiling=
}

learn_and_test() {
    step "Learning: xclass $(options_of "$1" $classes)"
    # shellcheck disable=SC2046
    timed "$1.train.json" -d train.vw $(options_of "$1" $classes) -b 24 -f "$1.model" || stop "learning failed"
    echo "(evicted and refused count weights that made room for others, or found none, in the table of -b 24)"
    step "Testing on files held out"
    timed "$1.test.json" -d test.vw -t -i "$1.model" -p "$1.predictions.txt" || stop "testing failed"
}

compiling=
trap '[ -z "$compiling" ] || kill $compiling 2> /dev/null' EXIT
trap 'exit 130' INT TERM

step "Making the stream, and compiling the kernels of --recall_tree"
"$bin/python" "$root/demo/make_stream.py" - --limit 1000 > few.vw || stop "could not make the stream"
compile recall_tree
"$bin/python" "$root/demo/make_stream.py" . --limit "$EXAMPLES" || stop "could not make the stream"
classes=$(($(wc -l < labels.txt)))
wait_until_compiled

compile cpt # while the other reduction learns
learn_and_test recall_tree
wait_until_compiled
learn_and_test cpt

step "The five most probable next tokens at three places of the files held out, and how likely"
sed -n '101p;201p;301p' test.vw > places.vw
"$bin/xclass" -d places.vw -t -i cpt.model --top_k 5 -p places.txt --quiet || stop "predicting failed"
"$bin/python" "$root/demo/report.py" tokens . || stop "could not show the predictions"

step "Result"
"$bin/python" "$root/demo/report.py" show . "$(options_of recall_tree $classes)" "$(options_of cpt $classes)" \
    || stop "could not compare the predictions"
echo "All of it took $(($(date +%s) - begin)) s."

step "Next"
echo "$(du -sm . | cut -f 1) MB of data, models and predictions stay in $data"
echo "until you remove that folder. Try the command yourself:"
echo
echo "    . $root/.venv/bin/activate"
echo "    cd $data"
echo "    head -n 5 test.vw | xclass -t -i cpt.model --explain 3 --quiet"
echo
echo "and read docs/quickstart.md."
