#!/bin/sh
# Regenerates requirements.lock: the newest versions that pyproject.toml allows, for every Python and platform, with hashes.
set -eu
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
python3 -m venv "$temporary" && "$temporary/bin/pip" --quiet install uv
"$temporary/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --custom-compile-command 'make lock' --group dev --all-extras -o requirements.lock pyproject.toml
