"""Debian releases without anything that they need not have: their root filesystems, made of packages by mmdebstrap."""

import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tools import paths
from tools.images import apt, bootstrap
from tools.images.apt import BuildApt
from tools.images.mirror import sources
from tools.images.recipe import SUITE
from tools.images.runner import CONFINED
from tools.kube.debs import tool

_TIMEOUT_SECONDS = 600


def bootstrap_release(suite: str, target: Path, packages: Iterable[str]) -> None:
    """Write the essential packages of a release, and others, to a tarball or, by any other name, to a folder."""
    program = tool("mmdebstrap")
    with tempfile.TemporaryDirectory() as folder:
        access = apt_access(Path(folder) / "apt", suite)
        done = subprocess.run(
            [*CONFINED, program.path, *_arguments(suite, target, packages, access)],
            # Its own folder is there too: apt, which can't look into it, then does not become a user of its own.
            env={**os.environ, **program.environment, "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    assert done.returncode == 0, f"mmdebstrap {suite} gave {done.returncode}:\n{done.stderr[-4000:]}"


def apt_access(folder: Path, suite: str) -> BuildApt:
    """Make the folder with which an apt reaches a release on the mirror of this machine."""
    keyring = bootstrap.keyring(tool("mmdebstrap").path)
    found = next((source for source in sources(None) if source.suite == SUITE), None)
    known = [replace(found, suite=suite, signed_by=found.signed_by or keyring)] if found else []
    return apt.prepare(folder, known, stale=True)  # a testing release's index expires within days


def _arguments(suite: str, target: Path, packages: Iterable[str], access: BuildApt) -> list[str]:
    return [
        "--mode=root",
        "--variant=minbase",
        "--skip=output/dev",
        f"--aptopt={access.settings}",
        f"--dpkgopt={paths.ROOT / 'images' / 'base' / 'dpkg.cfg'}",
        f"--include={','.join(packages)}",
        suite,
        str(target),
        *(source.line() for source in access.sources),
    ]
