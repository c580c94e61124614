"""Go programs, built once from pinned modules and cached by version and source."""

import math
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tools import locks
from tools.console import UserError, step
from tools.kube import golang
from tools.paths import cache_dir

GO = Path(__file__).parent / "go"
"""Module of the embedded Kubernetes. Go compiles packages that its programs share only once."""

_LOCK_SECONDS = 3600
_PACKAGE_SECONDS = (0.25, 0.75)
"""Core time for a package, including linking: on a fast machine, and on the slowest seen."""


@dataclass(frozen=True)
class Binary:
    """A `main` package and the binary built from it."""

    name: str
    """Folder in the module."""

    dependency: str = ""
    """Module path whose version in go.mod is the binary's version; empty for this project's code."""

    programs: tuple[str, ...] = ()
    """Names of links to the file; empty for its own name only."""

    stamp: str = ""
    """Go package to stamp with the version (`-X <stamp>.gitVersion=...`)."""

    package: str = ""
    """Import path of a dependency's `main` package; empty for the folder in the module."""

    tags: tuple[str, ...] = ()
    """Build tags, which binaries of one build share."""

    more_link_flags: str = ""
    """Further flags of the linker."""

    module: Path = GO

    @property
    def version(self) -> str:
        """Version that go.mod pins."""
        if not self.dependency:
            return "own"
        go_mod = self.module / "go.mod"
        pinned = re.search(rf"^(?:require)?\s*{re.escape(self.dependency)} (\S+)", go_mod.read_text(), re.MULTILINE)
        if not pinned:
            raise UserError(f"{go_mod} does not require {self.dependency}")
        return pinned[1]

    @property
    def installed(self) -> Path:
        """Folder of its programs in the cache, even before they are built."""
        return _folder() / f"{self.name}-{self.version}-{self.key}"

    @property
    def key(self) -> str:
        """Hash of everything but the Go release that decides the binary: flags, sources and requirements."""
        decisive = [*golang.FLAGS, *self.tags, self.link_flags, *self.programs, os.uname().machine]
        digest = sha256(" ".join(decisive).encode())
        own = (self.module / self.name).rglob("*")
        for file in sorted({self.module / "go.mod", self.module / "go.sum", *own}):
            if file.is_file() and not file.name.endswith("_test.go"):
                digest.update(f"{file.relative_to(self.module)}\0".encode() + file.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def link_flags(self) -> str:
        """Flags of the linker that stamp the version."""
        if not self.stamp:
            return self.more_link_flags
        major, minor, *_ = self.version.removeprefix("v").split(".")
        values = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
        stamps = [f"-X {self.stamp}.{name}={value}" for name, value in values.items()]
        return " ".join([*stamps, self.more_link_flags]).strip()


KUBERNETES = Binary(
    "kubernetes",
    "k8s.io/kubernetes",
    programs=(
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
        "kubectl",
    ),
    stamp="k8s.io/component-base/version",  # unstamped, the API server is v0.0.0, and clients misbehave
)
ETCD = Binary("etcd", "go.etcd.io/etcd/server/v3")
COREDNS = Binary("coredns", "github.com/coredns/coredns")
NODE = Binary("node")
SERVERS = (KUBERNETES, ETCD, COREDNS, NODE)
PAUSE = Binary("pause")
ALL = (*SERVERS, PAUSE)


def missing(binaries: Sequence[Binary]) -> list[Binary]:
    """Return the binaries that the cache lacks."""
    return [binary for binary in binaries if not binary.installed.exists()]


def build(*binaries: Binary) -> None:
    """Build the binaries of one module that the cache lacks."""
    if not missing(binaries):
        return
    with locks.held(_folder() / ".go.lock", "building Go programs", wait_seconds=_LOCK_SECONDS):
        if still := missing(binaries):  # another program may have built some meanwhile
            _build(still)


def _build(binaries: Sequence[Binary]) -> None:
    building = _folder() / ".go.new"
    shutil.rmtree(building, ignore_errors=True)  # of a build that was killed
    temporary = building / "temporary"
    temporary.mkdir(parents=True)
    _compile(binaries, building / "bin", {"GOTMPDIR": str(temporary)})
    for binary in binaries:
        folder = building / binary.installed.name
        folder.mkdir()
        (building / "bin" / binary.name).rename(folder / binary.name)
        for program in binary.programs:
            (folder / program).symlink_to(binary.name)
        folder.rename(binary.installed)
    shutil.rmtree(building)


def _compile(binaries: Sequence[Binary], target: Path, environment: dict[str, str]) -> None:
    """Compile with one `go build`, so that shared packages compile once, and linking overlaps with compiling."""
    module = binaries[0].module
    names = ", ".join(f"{binary.name} {binary.version}".removesuffix(" own") for binary in binaries)
    packages = [binary.package or f"./{binary.name}" for binary in binaries]
    tags = ",".join(dict.fromkeys(tag for binary in binaries for tag in binary.tags))
    flags = [
        *golang.FLAGS,
        *([f"-tags={tags}"] if tags else []),
        f"-ldflags=-s -w {' '.join(binary.link_flags for binary in binaries)}",
    ]
    with step(f"Fetching the Go modules of {names}") as progress:
        listed = golang.run(
            module,
            *("list", "-deps", *flags, "-f={{if .Stale}}{{.ImportPath}}{{end}}", *packages),
            what=f"fetching the Go modules of {names}",
            report=lambda lines: progress(_fetched(sum(map(_is_download, lines)))),
            environment=environment,
        )
    stale = sum(not _is_download(line) for line in listed)
    with step(f"Building {names}: {stale} packages, {usual_time(stale, cores())}") as progress:
        golang.run(
            module,
            *("build", "-v", *flags, f"-o={target}/", *packages),
            what=f"building {names}",
            report=lambda lines: progress(_progress(len(lines), stale)),
            environment=environment,
        )


def _fetched(modules: int) -> str:
    return f"fetched {modules} modules" if modules else "listing packages to compile"


def _progress(compiled: int, stale: int) -> str:
    return f"compiled {compiled} of {stale} packages" if compiled < stale else f"compiled {stale} packages, linking"


def usual_time(packages: int, cores: int) -> str:
    """Return the usual time to compile this many packages, as a range in words."""
    least, most = (math.ceil(packages * seconds / 60 / cores) for seconds in _PACKAGE_SECONDS)
    shown = f"{least} to {most} minutes" if most > 1 else "a minute at most"
    return f"{shown} on {cores} core{'s' * (cores > 1)}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _folder() -> Path:
    return cache_dir() / "bin"


def _is_download(line: str) -> bool:
    return line.startswith("go: ")
