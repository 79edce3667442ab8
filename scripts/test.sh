#!/bin/sh
# Checks everything: style, prose, documentation and types, then all tests, then those marked `bounds` with array bounds
# checked, and at the same time those marked `plain` without compiling. Stops at the first failure. Works in .venv beside
# pyproject.toml, made where missing.
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

unless="and not slow"
[ -z "${SLOW:-}" ] || unless=""

step "Installing"
install_xclass "[test,docs]"
bin=$root/.venv/bin

step "Style"
"$bin/ruff" check .
"$bin/ruff" format --check .

step "Prose, workflows and manifest"
"$bin/codespell" README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs xclass scripts tests demo pyproject.toml
"$bin/proselint" check --config docs/proselint.json README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md
"$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$bin/check-jsonschema" --schemafile demo/kuberay.schema.json demo/kuberay.yaml

step "Documentation and types"
"$bin/mypy" &
types=$!
"$bin/python" -m sphinx -q -W docs build/docs
wait $types

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

step "All is well"
