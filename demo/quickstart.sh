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

# Print the options that choose a reduction and its features.
options_of() {
    case $1 in
        recall_tree) echo "--recall_tree $classes -q ab --cubic abc" ;;
        cpt) echo "--cpt $classes --rerank -q ab --cubic abc" ;;
    esac
}

for way in recall_tree cpt; do
    step "Learning: xclass $(options_of $way); the first run compiles, which takes a while"
    # shellcheck disable=SC2046
    timed $way.train.json -d train.vw $(options_of $way) -b 24 -f $way.model || stop "learning failed"
    echo "(evicted and refused count weights that made room for others, or found none, in the table of -b 24)"
    step "Testing on files held out"
    timed $way.test.json -d test.vw -t -i $way.model -p $way.predictions.txt || stop "testing failed"
done

step "The five most probable next tokens at three places of the files held out, and how likely"
sed -n '101p;201p;301p' test.vw > places.vw
"$bin/xclass" -d places.vw -t -i cpt.model --top_k 5 -p places.txt --quiet || stop "predicting failed"
"$bin/python" "$root/demo/report.py" tokens . || stop "could not show the predictions"

step "Result"
"$bin/python" "$root/demo/report.py" show . "$(options_of recall_tree)" "$(options_of cpt)" \
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
