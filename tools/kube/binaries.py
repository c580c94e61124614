"""The servers' binaries, built once from pinned Go modules and kept in the cache by version and source."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tools.console import UserError, step
from tools.kube import golang, locks
from tools.kube.process import watched
from tools.paths import cache_dir

_SOURCES = Path(__file__).parent / "go"
_BUILD_SECONDS = 3600
"""Far beyond what the slowest build took (below), so that only one that hangs is ended."""


@dataclass(frozen=True)
class Module:
    """A Go module below tools/kube/go, and what is built from it."""

    name: str
    dependency: str
    """The module path whose version in go.mod is the binary's version; empty: our own code."""

    usual_seconds: int
    """What a cold build took on 2 cores."""

    programs: tuple[str, ...] = ()
    """Names that the one binary is called by; empty: its own."""

    stamp: str = ""
    """The Go package that wants to know its version (`-X <stamp>.gitVersion=...`)."""

    @property
    def folder(self) -> Path:
        """Where its sources are."""
        return _SOURCES / self.name

    @property
    def version(self) -> str:
        """The version that go.mod pins."""
        if not self.dependency:
            return "own"
        pinned = re.search(
            rf"^(?:require)?\s*{re.escape(self.dependency)} (\S+)",
            (self.folder / "go.mod").read_text(),
            re.MULTILINE,
        )
        if not pinned:
            raise UserError(f"{self.folder / 'go.mod'} does not require {self.dependency}")
        return pinned[1]

    @property
    def installed(self) -> Path:
        """The folder in the cache that has (or will have) its programs."""
        return cache_dir() / "bin" / f"{self.name}-{self.version}-{self.key}"

    @property
    def key(self) -> str:
        """A hash of all that decides the binary but the Go release."""
        digest = sha256(" ".join([*self.build_flags, *self.programs, os.uname().machine]).encode())
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and not file.name.endswith("_test.go"):
                digest.update(f"{file.relative_to(self.folder)}\0".encode() + file.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def build_flags(self) -> list[str]:
        """Flags of `go build`: reproducible, from the pinned modules only, without debugging tables."""
        link = "-s -w"
        if self.stamp:  # without it the API server says v0.0.0, and clients misbehave
            major, minor, *_ = self.version.removeprefix("v").split(".")
            values = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
            link += "".join(f" -X {self.stamp}.{name}={value}" for name, value in values.items())
        return ["-trimpath", "-mod=readonly", "-buildvcs=false", f"-ldflags={link}"]


KUBERNETES = Module(
    "kubernetes",
    "k8s.io/kubernetes",
    usual_seconds=336,
    programs=(
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
        "kubectl",
    ),
    stamp="k8s.io/component-base/version",
)
ETCD = Module("etcd", "go.etcd.io/etcd/server/v3", usual_seconds=50)
COREDNS = Module("coredns", "github.com/coredns/coredns", usual_seconds=100)
NODE = Module("node", "", usual_seconds=93)
PAUSE = Module("pause", "", usual_seconds=5)
MODULES = (KUBERNETES, ETCD, COREDNS, NODE)


def build(module: Module) -> Path:
    """Return the folder with the module's programs, building them first when the cache has none."""
    installed = module.installed
    if not installed.exists():
        lock = installed.with_name(f".{module.name}.lock")
        with locks.held(lock, f"building {module.name}", wait_seconds=_BUILD_SECONDS):
            if not installed.exists():  # nobody has built it while we waited
                _build(module, installed)
    return installed


def _build(module: Module, installed: Path) -> None:
    usual = f"{module.usual_seconds // 60} min {module.usual_seconds % 60:02} s"
    with step(f"Building {module.name} {module.version} (from nothing it took {usual} on 2 cores)") as progress:
        building = installed.with_name(f".{module.name}.new")
        shutil.rmtree(building, ignore_errors=True)  # of a build that was killed
        building.mkdir(parents=True)
        _compile(module, building / module.name, progress)
        for program in module.programs:
            (building / program).symlink_to(module.name)
        building.rename(installed)


def _compile(module: Module, target: Path, progress: Callable[[str], None]) -> None:
    go = golang.go(module.folder)
    environment = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}

    def run(what: str, *arguments: str, report: Callable[[list[str]], str]) -> list[str]:
        return watched(
            [go, *arguments],
            environment=environment,
            cwd=module.folder,
            timeout_seconds=_BUILD_SECONDS,
            what=f"{what} {module.name} {module.version} with {go}",
            report=lambda lines: progress(report(lines)),
        )

    listed = run(
        "fetching the modules of",
        *("list", "-deps", "-mod=readonly", "."),
        report=lambda lines: f"fetched {sum(map(_is_download, lines))} modules",
    )
    packages = sum(not _is_download(line) for line in listed)
    run(
        "compiling",
        *("build", "-v", *module.build_flags, "-o", str(target), "."),
        report=lambda lines: f"compiled {len(lines)} packages, of {packages} less those that Go has cached",
    )


def _is_download(line: str) -> bool:
    return line.startswith("go: ")
