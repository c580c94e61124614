"""A program on a library that stands for Slurm's, with a guard of images/bounds between them."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.unit.spank_plugin.compiler import toolchain
from tools.paths import ROOT


def compiled(folder: Path, guard: str, library: str, program: str, defined: dict[str, str] | None = None) -> Path:
    """Return a new folder with the guard, and with `program`, which takes the guard from LD_PRELOAD.

    Args:
        folder: Folder in which the new one is made.
        guard: Name of the guard, such as `known_messages.so`.
        library: Source of what stands for Slurm's library, in C.
        program: Source of the program, in C.
        defined: Macros of both sources.
    """
    tools, build = toolchain(), folder / "build"
    shutil.copytree(ROOT / "images" / "bounds", build)
    (build / "library.c").write_text(library)
    (build / "program.c").write_text(program)
    macros = [f"-D{name}={value}" for name, value in (defined or {}).items()]
    compiler = [*tools.compiler, *tools.slurm.removeprefix("SLURM_CFLAGS=").split(), *macros]
    for command in (
        [str(tools.make), "--silent", *tools.variables, guard],
        [*compiler, "-fPIC", "-shared", "-o", "libguarded.so", "library.c"],
        [*compiler, "-o", "program", "program.c", "-L.", "-lguarded", f"-Wl,-rpath,{build}"],
    ):
        subprocess.run(command, cwd=build, env={**os.environ, **tools.environment}, check=True, timeout=300)
    return build
