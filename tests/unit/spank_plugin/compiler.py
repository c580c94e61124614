"""A C compiler and Slurm's headers: the machine's, else from the distribution's packages, unpacked into the cache.

Nothing is installed. The C library comes along with the compiler, since its headers and its start files have to go
together; what is built links the sanitizers statically and runs on the machine's own C library.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.debian_packages import unpacked_packages
from tools.kube.debs import Unpacked

_COMPILER = ("gcc", "libc6-dev", "make")
_HEADERS = ("libslurm-dev",)


@dataclass(frozen=True)
class Toolchain:
    """A compiler, and `make` with variables for it.

    Attributes:
        make: Path of make.
        compiler: Words that start the compiler.
        slurm: `SLURM_CFLAGS=...`.
        environment: To be added to the environment that these are run in.

    """

    make: Path
    compiler: tuple[str, ...]
    slurm: str
    environment: Mapping[str, str]

    @property
    def variables(self) -> tuple[str, str]:
        """Arguments of make."""
        return f"CC={' '.join(self.compiler)}", self.slurm


def toolchain(*, own: bool = False) -> Toolchain:
    """Return a compiler for the plugin's tests.

    Args:
        own: Take the packages' compiler even where the machine has one.

    """
    make, gcc = shutil.which("make"), shutil.which("gcc")
    if own or make is None or gcc is None or not Path("/usr/include/stdlib.h").exists():
        root = unpacked_packages("compiler", _COMPILER, lambda apt: apt.fresh_closure(_COMPILER))
        # Packages may have these folders merged into /usr, where the C library's linker script does not look.
        for name in ("lib", "lib64"):
            if not (root / name).exists():
                (root / name).symlink_to(f"usr/{name}")
        environment = Unpacked(root).environment
        # Only the compiler's own programs need the unpacked libraries, and what it builds must not see them.
        libraries = f"LD_LIBRARY_PATH={environment['LD_LIBRARY_PATH']}"
        compiler = ("env", libraries, str(Unpacked(root).program("gcc")), f"--sysroot={root}")
        return Toolchain(Unpacked(root).program("make"), compiler, _slurm(), {"PATH": environment["PATH"]})
    return Toolchain(Path(make), (gcc,), _slurm(), {})


def _slurm() -> str:
    """Return the flags that find Slurm's headers, whose warnings are not ours."""
    if Path("/usr/include/slurm/spank.h").exists():
        return "SLURM_CFLAGS="
    root = unpacked_packages("slurm-headers", _HEADERS, lambda apt: apt.fresh_closure(_HEADERS) & set(_HEADERS))
    return f"SLURM_CFLAGS=-isystem {root}/usr/include"
