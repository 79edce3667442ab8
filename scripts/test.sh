#!/bin/sh
# Checks everything: all tests, then those marked `bounds` with array bounds checked, and at the same time those marked
# `plain` without compiling, then style, prose, documentation and types of the files that git tracks. Stops at the first
# failure. Works in .venv beside pyproject.toml, made where missing.
#
#     sh scripts/test.sh
#     PYTHON=python3.12 sh scripts/test.sh
#     SLOW=1 sh scripts/test.sh                   and those marked `slow`

set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
. scripts/environment.sh
unset PYTHONDONTWRITEBYTECODE  # otherwise each of the processes that the tests start compiles the sources, for a second

step() {
    printf '\n== %s\n' "$1"
}

# files_with MARK    prints the files with tests marked MARK; to import the others takes three seconds in each process
files_with() {
    grep -rl --include='*.py' "mark\.$1" tests
}

# tracked PATTERN COMMAND...    calls a command with the files of a pattern that git tracks
tracked() {
    pattern=$1
    shift
    git ls-files -z -- "$pattern" | xargs -0 "$@"
}

unless="and not slow"
[ -z "${SLOW:-}" ] || unless=""

step "Installing"
install_xclass "[test,docs]"
bin=$root/.venv/bin

step "Tests"
"$bin/python" -m pytest -n 3

step "Tests with array bounds checked, and tests without compiling"
# without SLOW only readers, because to compile all kernels anew takes minutes
[ -z "${SLOW:-}" ] || checked=$(files_with bounds)
NUMBA_BOUNDSCHECK=1 "$bin/python" -m pytest -n 2 -m "bounds $unless" \
    ${checked:-tests/text tests/formats tests/data tests/scripts/test_fuzz.py} &
bounds=$!
NUMBA_DISABLE_JIT=1 "$bin/python" -m pytest -n 2 -m "plain $unless" $(files_with plain)
wait $bounds

if [ -n "${SLOW:-}" ]; then
    step "Slow tests"
    "$bin/python" -m pytest -n 2 -m slow
fi

if ! git ls-files --error-unmatch scripts/test.sh > /dev/null 2>&1; then
    step "All is well; style, documentation and types are checked in a clone only"
    exit 0
fi

step "Style"
tracked '*.py' "$bin/ruff" check
tracked '*.py' "$bin/ruff" format --check

step "Prose, workflows and manifest"
tracked . "$bin/codespell"
tracked '*.md' "$bin/proselint" check --config docs/proselint.json
"$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$bin/check-jsonschema" --schemafile demo/kuberay.schema.json demo/kuberay.yaml

step "Documentation and types"
"$bin/mypy" &
types=$!
"$bin/python" -m sphinx -q -W docs build/docs
wait $types

step "All is well"
