"""Shell of the tree, read by shellcheck: of PATH, else of the distribution's package, unpacked into the cache."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.programs import program
from tools.kube.debs import Tool, parse_version

ROOT = Path(__file__).parents[3]
FOLDERS = ("images", "tools", ".ci", "soperator_pulumi", "spank-plugin")
OLDEST = (0, 9)
"""The version of Debian 12, with which all files pass."""


@pytest.fixture(scope="session")
def shellcheck() -> Tool:
    found = program("shellcheck")
    assert parse_version(found.run("--version")) >= OLDEST
    return found


def shell_files() -> Iterator[Path]:
    """Yield the files that are shell by their suffix or their first line."""
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()):
        with path.open("rb") as file:
            first = file.readline()
        if path.suffix == ".sh" or first.startswith((b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash")):
            yield path.relative_to(ROOT)


def check(shellcheck: Tool, *files: Path) -> str:
    """Return the findings in files, sourced ones included."""
    done = subprocess.run(
        [shellcheck.path, "--norc", "--external-sources", "--source-path=SCRIPTDIR", "--color=never", *files],
        cwd=ROOT,
        env={**os.environ, **shellcheck.environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode == 0) == (not done.stdout), done.stderr
    return done.stdout


def test_shellcheck_finds_nothing_in_any_shell_file(shellcheck: Tool) -> None:
    files = sorted(shell_files())
    assert {"images/worker/scripts/start.sh", "tools/venv.sh", ".ci/run"} <= {str(file) for file in files}
    assert not (found := check(shellcheck, *files)), found


def test_it_would_find_what_breaks(shellcheck: Tool, tmp_path: Path) -> None:
    script = tmp_path / "broken.sh"
    script.write_text("#!/bin/sh\nrm -r $1\n")
    assert "SC2086" in check(shellcheck, script)
