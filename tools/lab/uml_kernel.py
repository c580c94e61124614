"""Kernel of the lab's machines: Linux as a program, built once from Debian's sources and kept in the cache.

It has cgroup v2 with all controllers of a worker, AppArmor and filters of devices, which a kernel of the machine may
lack, and needs no virtualization by the processor.
"""

import os
import shutil
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from tools import locks
from tools.console import UserError, step
from tools.images import bootstrap
from tools.images.mirror import sources
from tools.kube import debs
from tools.kube.binaries import cores
from tools.kube.debs import Apt, Unpacked, tool
from tools.kube.process import output, watched
from tools.paths import cache_dir

CONFIG = Path(__file__).with_name("kernel.config")
"""Settings of the kernel that differ from the defaults of its architecture `um`."""

SERIES = "7.2"
"""Release of Linux. From 7.2 on, user-mode Linux has more than one processor, which cpusets need."""

_SUITE = "sid"
_PACKAGE = f"linux-source-{SERIES}"
_BUILD_TOOLS = ("bison", "flex")
_FROM_PATH = {"bc": "bc", "gcc": "gcc", "make": "make", "strip": "binutils", "xz": "xz-utils"}
"""Programs that a build runs, with their packages."""

_SECONDS = 2 * 3600
"""Time far beyond the slowest build seen: 16 minutes of a core, on two cores that five others used."""

_TREE_BYTES = 3 * 1024**3
"""Source and objects of a build (measured: 2.0 GB), with the archive."""


def kernel() -> Path:
    """Return the kernel, which is a program; build it if the cache has none.

    A killed build continues with the object at which it ended.

    Raises:
        UserError: A program or room is missing, the mirror does not have the sources, or the build fails.
    """
    program = folder() / "linux"
    if not program.exists():
        with locks.held(
            folder().with_name(f".{folder().name}.lock"), "building the lab's kernel", wait_seconds=_SECONDS
        ):
            if not program.exists():
                _build()
    return program


def folder() -> Path:
    """Return the folder of the kernel in the cache, named by its release and settings."""
    key = sha256(CONFIG.read_bytes()).hexdigest()[:12]
    return cache_dir() / "lab" / f"linux-{SERIES}-{key}"


def _build() -> None:
    _require_machine()
    building = folder().with_name(f".{folder().name}.new")
    tree = building / "source"
    if not tree.exists():
        shutil.rmtree(building, ignore_errors=True)
        _unpack_source(building, tree)
    packages = debs.unpacked(_BUILD_TOOLS)
    settings = tree / ".config"
    if not (building / "configured").exists():
        with step(f"Configuring Linux {SERIES} for the lab"):
            _make(tree, packages, "x86_64_defconfig")
            settings.write_text(settings.read_text() + CONFIG.read_text())
            _make(tree, packages, "olddefconfig")
            (building / "configured").touch()
    with step(f"Building Linux {SERIES} for the lab: 1,540 files, 16 minutes of a core") as progress:
        _make(tree, packages, "linux", report=lambda lines: progress(compiled(lines)))
    result = building / "result"
    shutil.rmtree(result, ignore_errors=True)
    result.mkdir()
    output(["strip", "-o", result / "linux", tree / "linux"])
    shutil.copyfile(settings, result / "config")
    result.rename(folder())
    shutil.rmtree(building)


def _require_machine() -> None:
    """Refuse a machine that cannot build the kernel, with all reasons at once."""
    base = cache_dir()
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = [
        f"there is no {program}: install the package {package}"
        for program, package in _FROM_PATH.items()
        if shutil.which(program) is None
    ]
    if os.uname().machine != "x86_64":
        found.append(f"the processor is {os.uname().machine}, and user-mode Linux runs on x86_64 only")
    if (free := shutil.disk_usage(base).free) < _TREE_BYTES:
        found.append(
            f"the file system of {base} has {free >> 20} MiB free, and a build takes {_TREE_BYTES >> 20} MiB: "
            "make room, or set XDG_CACHE_HOME to a folder elsewhere"
        )
    if found:
        raise UserError("this machine cannot build the lab's kernel yet:\n" + "\n".join(f"  - {one}" for one in found))


def _unpack_source(building: Path, tree: Path) -> None:
    with step(f"Fetching the source of Linux {SERIES} (164 MB) and unpacking it") as progress:
        archive = _fetch(building / "apt")
        progress(f"unpacking {archive.name}")
        output(["dpkg-deb", "-x", archive, building / "package"], timeout_seconds=600)
        unpacking = building / "source.new"
        unpacking.mkdir()
        tarball = building / "package" / "usr" / "src" / f"{_PACKAGE}.tar.xz"
        output(["tar", "-xf", tarball, "-C", unpacking, "--strip-components=1"], timeout_seconds=1200)
        for done in ("apt", "package"):
            shutil.rmtree(building / done)
        unpacking.rename(tree)


def _fetch(work: Path) -> Path:
    """Fetch the source package from the machine's mirror; apt verifies it with Debian's keys."""
    source = next((source for source in sources(None, suite=_SUITE) if source.suite == _SUITE), None)
    if source is None:
        raise UserError(f"the machine's apt has no Debian mirror, from which {_PACKAGE} comes. Use a Debian machine")
    work.mkdir(parents=True)
    signed_by = source.signed_by or bootstrap.keyring(tool("mmdebstrap").path)
    listed, settings = work / "sources.list", work / "apt.conf"
    listed.write_text(f"deb [signed-by={signed_by}] {source.uri} {_SUITE} main\n")
    settings.write_text(f'Dir::Etc::sourcelist "{listed}";\nDir::Etc::sourceparts "-";\n')
    apt = Apt(work, partial(output, environment={"APT_CONFIG": str(settings)}))
    apt.fresh_closure([_PACKAGE])
    (archive,) = apt.download([_PACKAGE])
    return archive


def _make(
    tree: Path, packages: Unpacked, target: str, report: Callable[[list[str]], None] = lambda _: None
) -> list[str]:
    """Run make at low priority, as a build shares the machine with other programs."""
    unpacked = {
        "BISON_PKGDATADIR": str(packages.root / "usr/share/bison"),
        "M4": str(packages.root / "usr/bin/m4"),
    }
    return watched(
        ["nice", "-n", "5", "make", "ARCH=um", f"-j{cores()}", target],
        environment={**packages.environment, **{name: path for name, path in unpacked.items() if Path(path).exists()}},
        cwd=tree,
        timeout_seconds=_SECONDS,
        what=f"make {target} of Linux {SERIES}",
        report=report,
    )


def compiled(lines: list[str]) -> str:
    """Return the progress of a build in the lines that make has printed."""
    return f"{sum(line.startswith(('  CC ', '  AS ')) for line in lines)} files compiled by this run"
