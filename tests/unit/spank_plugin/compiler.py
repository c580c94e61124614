"""A C compiler and Slurm's headers: the machine's, else from the distribution's packages, unpacked into the cache.

Nothing is installed. The C library comes along with the compiler, since its headers and its start files have to go
together; what is built links the sanitizers statically and runs on the machine's own C library.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools import locks
from tools.kube import debs
from tools.kube.debs import Apt, Unpacked
from tools.kube.process import output
from tools.paths import cache_dir

_WAIT_SECONDS = 600
_COMPILER = ("gcc", "libc6-dev", "make")
_HEADERS = ("libslurm-dev",)


@dataclass(frozen=True)
class Toolchain:
    """What `make` is run with.

    Attributes:
        make: Path of make.
        variables: Its arguments: `CC=...`, `SLURM_CFLAGS=...`.
        environment: To be added to the environment that it is run in.

    """

    make: Path
    variables: tuple[str, ...]
    environment: Mapping[str, str]


def toolchain(*, own: bool = False) -> Toolchain:
    """Return a compiler for the plugin's tests.

    Args:
        own: Take the packages' compiler even where the machine has one.

    """
    make, gcc = shutil.which("make"), shutil.which("gcc")
    if own or make is None or gcc is None or not Path("/usr/include/stdlib.h").exists():
        root = _unpacked("compiler", _COMPILER, lambda apt: apt.fresh_closure(_COMPILER))
        # Packages may have these folders merged into /usr, where the C library's linker script does not look.
        for name in ("lib", "lib64"):
            if not (root / name).exists():
                (root / name).symlink_to(f"usr/{name}")
        environment = Unpacked(root).environment
        # Only the compiler's own programs need the unpacked libraries, and what it builds must not see them.
        compiler = (
            f"env LD_LIBRARY_PATH={environment['LD_LIBRARY_PATH']} {Unpacked(root).program('gcc')} --sysroot={root}"
        )
        return Toolchain(
            Unpacked(root).program("make"),
            (f"CC={compiler}", _slurm()),
            {"PATH": environment["PATH"]},
        )
    return Toolchain(Path(make), (f"CC={gcc}", _slurm()), {})


def _slurm() -> str:
    """Return the flags that find Slurm's headers, whose warnings are not ours."""
    if Path("/usr/include/slurm/spank.h").exists():
        return "SLURM_CFLAGS="
    root = _unpacked("slurm-headers", _HEADERS, lambda apt: apt.fresh_closure(_HEADERS) & set(_HEADERS))
    return f"SLURM_CFLAGS=-isystem {root}/usr/include"


def _unpacked(name: str, packages: Iterable[str], choose: Callable[[Apt], Iterable[str]]) -> Path:
    root = cache_dir() / "debs" / f"test-{name}-{debs._release()}-{os.uname().machine}"
    with locks.held(
        root.with_name(f".{root.name}.lock"), f"unpacking {', '.join(packages)}", wait_seconds=_WAIT_SECONDS
    ):
        if not root.exists():
            building = root.with_name(f".{root.name}.new")
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir(parents=True)
            apt = Apt(building / "apt")
            for archive in apt.download(sorted(choose(apt))):
                output(["dpkg", "-x", archive, building])
            shutil.rmtree(building / "apt")
            building.rename(root)
    return root
