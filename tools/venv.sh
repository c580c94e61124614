#!/bin/sh
# Makes .venv from requirements.lock. Debian splits pip off Python: where `ensurepip` is missing, pip's wheel is
# taken from Debian's own package, unpacked into a temporary folder and not installed.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "error: $1" >&2
    exit 1
}

command -v python3 >/dev/null || fail "python3 is missing. Install Python 3.11 or newer: apt-get install python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$(command -v python3) is $(python3 -V). Put Python 3.11 or newer first on PATH."

echo "==> Installing the locked Python packages into .venv (about a minute)" >&2
rm -rf .venv
if python3 -c 'import ensurepip' 2>/dev/null; then
    python3 -m venv .venv
else
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    mkdir -p "$temporary/lists/partial" "$temporary/archives/partial"
    options="-o Dir::State::lists=$temporary/lists -o Dir::Cache=$temporary"
    (
        cd "$temporary"
        # shellcheck disable=SC2086 # the options are words
        apt-get -qq $options update && apt-get -qq $options -o APT::Sandbox::User=root download python3-pip-whl
        dpkg-deb -x python3-pip-whl_*.deb .
    ) || fail "pip is missing and could not be fetched. Install pip: apt-get install python3-venv"
    python3 -m venv --without-pip .venv
    wheel=$(echo "$temporary"/usr/share/python-wheels/pip-*.whl)
    PYTHONPATH=$wheel .venv/bin/python -m pip --quiet install --no-index --no-deps "$wheel"
fi
pip="--quiet --disable-pip-version-check install --no-compile"
# shellcheck disable=SC2086 # the options are words
.venv/bin/python -m pip $pip --require-hashes -r requirements.lock
# shellcheck disable=SC2086
.venv/bin/python -m pip $pip --no-deps --no-build-isolation --editable .
# On all cores, and our own packages as well: pip uses one, and a program may not keep what it compiles
# (PYTHONDONTWRITEBYTECODE).
.venv/bin/python -m compileall -qq -j 0 .venv/lib soperator_pulumi stacks tools || true # some packages bring templates that are no Python
