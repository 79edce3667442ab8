# Read by other scripts with `.`, after they have set $root to the project's folder.
#
# install_xclass EXTRAS    makes $root/.venv where there is none and installs the project into it, from its sources
#                          in place, with EXTRAS ("" or "[test]"); nothing is done where that is up to date.
# choose_python            sets $python to one that has xclass, PYTHON, .venv's or python3, and installs it if none has;
#                          with $dry_run it is only looked for. The script has a function `stop` that says why and ends.

install_xclass() {
    environment=$root/.venv
    stamp=$environment/installed$1
    if [ ! -x "$environment/bin/python" ]; then
        chosen=${PYTHON:-python3}
        if ! "$chosen" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
            echo "$chosen is not a Python of 3.10 or newer; name one with PYTHON=" >&2
            return 1
        fi
        echo "making $environment with $chosen"
        if ! "$chosen" -m venv "$environment"; then
            rm -rf "$environment"
            echo "$chosen cannot make a virtual environment; on Debian and Ubuntu install python3-venv" >&2
            return 1
        fi
    elif [ -n "${PYTHON:-}" ]; then
        echo "using $environment as it is; remove it to have $PYTHON there"
    fi
    wanted="$root $(cksum < "$root/pyproject.toml")"
    if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ]; then
        echo "$environment is up to date"
        return 0
    fi
    echo "installing into $environment"
    # without --no-compile, pip compiles all modules of all packages, most of which are never imported, for 45 seconds
    if ! "$environment/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
        --editable "$root$1"; then
        echo "pip failed; if $environment is broken, remove it and start again" >&2
        return 1
    fi
    echo "$wanted" > "$stamp"
}

choose_python() {
    if [ -z "${PYTHON:-}" ] && [ -x "$root/.venv/bin/python" ]; then
        python=$root/.venv/bin/python
    else
        python=${PYTHON:-python3}
    fi
    # from another folder, since xclass will be run in others too
    (cd / && "$python" -c 'import importlib.util as i, sys
sys.exit(not all(map(i.find_spec, ("numba", "xclass"))))' 2> /dev/null) && return
    [ -z "$dry_run" ] || stop "$python has no xclass; sh demo/quickstart.sh or pip install . puts it there"
    install_xclass "" || stop "could not install xclass; see above"
    python=$root/.venv/bin/python
}
