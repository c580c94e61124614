"""An environment that holds the built package, the packages that it declares, pip as any has it, and nothing else."""

import importlib.metadata
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import dist

PACKAGE = "soperator-pulumi"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @cached_property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(
        self, *arguments: str, cwd: Path | None = None, program: str = "python"
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python, or another program of the environment, without a variable that would lead it elsewhere."""
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd or self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )


def wheel(folder: Path) -> Path:
    """Build the distributions, and return the wheel."""
    (found,) = (file for file in dist.build(folder) if file.suffix == ".whl")
    return found


def environment(folder: Path, *extras: str) -> Environment:
    """Make an environment in a folder: the wheel, installed by pip, and what it declares, linked to what is here."""
    venv.create(folder / "venv", symlinks=True)
    made = Environment(folder / "venv")
    pip = [sys.executable, "-m", "pip", "--python", str(made.python), "--quiet", "--disable-pip-version-check"]
    install = ["install", "--no-deps", "--no-index", "--no-compile", str(wheel(folder))]
    subprocess.run([*pip, *install], check=True)
    (installed,) = importlib.metadata.distributions(name=PACKAGE, path=[str(made.site_packages)])
    pip_itself = importlib.metadata.distribution("pip")  # the Pulumi CLI asks it for the packages of a program
    for distribution in (pip_itself, *_closure(installed, frozenset(extras))):
        _link(distribution, made.site_packages)
    return made


def _closure(
    root: importlib.metadata.Distribution, extras: frozenset[str]
) -> Iterator[importlib.metadata.Distribution]:
    """Yield the distributions that one requires, directly or through others."""
    seen: set[tuple[str, str]] = set()
    waiting = [(root, extras)]
    while waiting:
        distribution, wanted = waiting.pop()
        for requirement in map(Requirement, distribution.requires or ()):
            if not any(_applies(requirement, extra) for extra in {"", *wanted}):
                continue
            name, further = canonicalize_name(requirement.name), frozenset(requirement.extras)
            new = {(name, extra) for extra in {"", *further}} - seen
            if new:
                found = importlib.metadata.distribution(name)
                assert requirement.specifier.contains(found.version, prereleases=True), requirement
                if (name, "") in new:
                    yield found
                seen |= new
                waiting.append((found, further))


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _link(distribution: importlib.metadata.Distribution, site_packages: Path) -> None:
    """Link what a distribution has at the top of its own site-packages. Folders that several fill are linked once."""
    for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        source, link = Path(str(distribution.locate_file(name))), site_packages / name
        if not link.exists():
            link.symlink_to(source.resolve())
