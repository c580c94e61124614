"""A driver for tests, compiled here, and the layouts in which container runtimes bring one into a container.

Its libraries need no C library and its program needs two functions of one, as NVIDIA's own run on any glibc.
"""

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.device_plugin import DriverMount
from tests.unit.spank_plugin.compiler import toolchain

_SOURCES = Path(__file__).with_name("driver")
_COMPILE_SECONDS = 120
_FLAGS = ("-O2", "-fPIC", "-fno-builtin", "-fno-tree-loop-distribute-patterns")
"""Flags with which the compiler makes no calls of memcpy or strlen from loops."""

VERSIONS = ("550.54.15", "570.86.10")
"""Versions of drivers: clusters have several, one a node."""


@dataclass(frozen=True)
class Driver:
    """A compiled driver: `libcuda.so.<version>`, `libnvidia-ml.so.<version>` and `nvidia-smi` in one folder."""

    version: str
    folder: Path

    @property
    def number(self) -> int:
        """Answer of `cuDriverGetVersion`."""
        return driver_number(self.version)

    @property
    def libraries(self) -> list[Path]:
        return [self.folder / f"{name}.so.{self.version}" for name in ("libcuda", "libnvidia-ml")]

    @property
    def program(self) -> Path:
        return self.folder / "nvidia-smi"


def driver_number(version: str) -> int:
    """Return a driver's version as one number: 55054 of 550.54.15."""
    major, minor, _ = version.split(".")
    return int(major) * 100 + int(minor)


def compiled(folder: Path, version: str) -> Driver:
    """Compile a driver of a version into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    driver = Driver(version, folder)
    cuda, nvml = driver.libraries
    alone = ("-shared", "-nostdlib")
    _compile("libcuda.c", cuda, *alone, "-Wl,-soname,libcuda.so.1", f"-DDRIVER_NUMBER={driver.number}")
    _compile("libnvidia_ml.c", nvml, *alone, "-Wl,-soname,libnvidia-ml.so.1", f'-DDRIVER_VERSION="{version}"')
    _compile("nvidia_smi.c", driver.program, "-nostartfiles", "-pie", nvml)
    for path in (folder, *driver.libraries, driver.program):
        path.chmod(0o755)
    return driver


def library(folder: Path, soname: str, number: int) -> Path:
    """Compile a library of this soname, whose `cuDriverGetVersion` gives a number."""
    path = folder / soname
    _compile("libcuda.c", path, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-DDRIVER_NUMBER={number}")
    return path


def by_hook(driver: Driver) -> list[DriverMount]:
    """Return the mounts of NVIDIA's container hook: file by file, at the places of the container's distribution."""
    libraries = [DriverMount(path, f"/usr/lib/x86_64-linux-gnu/{path.name}") for path in driver.libraries]
    return [*libraries, DriverMount(driver.program, "/usr/bin/nvidia-smi")]


def by_cdi(driver: Driver) -> list[DriverMount]:
    """Return the mounts of a CDI specification, at the machine's own places, with a Vulkan manifest next to them."""
    manifest = driver.folder / "nvidia_icd.json"
    manifest.write_text('{"file_format_version": "1.0.1", "ICD": {"library_path": "libcuda.so.1"}}\n')
    libraries = [DriverMount(path, f"/usr/lib64/{path.name}") for path in driver.libraries]
    program = DriverMount(driver.program, "/usr/bin/nvidia-smi")
    return [*libraries, program, DriverMount(manifest, "/etc/vulkan/icd.d/nvidia_icd.json")]


def by_host(driver: Driver) -> list[DriverMount]:
    """Return the one mount of a driver's folder on the machine, as on GKE."""
    home = driver.folder / "home"
    for name, files in (("lib64", driver.libraries), ("bin", [driver.program])):
        (home / name).mkdir(parents=True, exist_ok=True)
        for file in files:
            link = home / name / file.name
            if not link.exists():
                link.hardlink_to(file)
    return [DriverMount(home, "/usr/local/nvidia")]


def _compile(source: str, target: Path, *arguments: str | Path) -> None:
    tools = toolchain()
    compiler = shlex.split(tools.variables[0].removeprefix("CC="))
    done = subprocess.run(
        [*compiler, *_FLAGS, "-o", target, _SOURCES / source, *arguments],
        env={**os.environ, **tools.environment},
        capture_output=True,
        text=True,
        timeout=_COMPILE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{source}:\n{done.stdout}{done.stderr}"
