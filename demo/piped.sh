#!/bin/sh
# Progressive validation on a pipe: a stream of tokens is learned as it goes by. Every example is predicted before it is
# learned from, so the column `loss` is the error on examples not seen before, and needs no test file.
#
#     sh demo/piped.sh                     python3 must be 3.10 or newer
#     EXAMPLES=100000 sh demo/piped.sh     a shorter stream
#
# The classes are not known before the stream ends: --cpt 0 takes labels as they come.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
: "${EXAMPLES:=200000}"

stop() {
    echo "piped: $1" >&2
    exit 1
}

. "$root/scripts/environment.sh"
install_xclass "" || stop "could not install xclass; see above"
bin=$root/.venv/bin

echo "\$ python demo/make_stream.py - --limit $EXAMPLES | xclass --cpt 0 -b 22 -q ab"
"$bin/python" "$root/demo/make_stream.py" - --limit "$EXAMPLES" | "$bin/xclass" --cpt 0 -b 22 -q ab ||
    stop "learning from the pipe failed"
