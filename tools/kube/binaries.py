"""The servers' binaries, built once from pinned Go modules and kept in the cache by version and source."""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tools.console import UserError, step
from tools.kube import golang
from tools.kube.process import output
from tools.paths import cache_dir

_SOURCES = Path(__file__).parent / "go"
_PROGRESS_SECONDS = 5
_LAST_LINES = 20
_BUILD_MINUTES = 60
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
    if module.installed.exists():
        return module.installed
    usual = f"{module.usual_seconds // 60} min {module.usual_seconds % 60:02} s"
    with step(f"building {module.name} {module.version} (took {usual} on 2 cores)") as progress:
        module.installed.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{module.name}-", dir=module.installed.parent) as folder:
            building = Path(folder) / module.name
            building.mkdir()
            _go_build(module, building / module.name, progress)
            for program in module.programs:
                (building / program).symlink_to(module.name)
            building.rename(module.installed)
    return module.installed


def _go_build(module: Module, target: Path, progress: Callable[[str], None]) -> None:
    go = golang.go()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    progress("fetching its modules")
    output(
        [go, "mod", "download"],
        environment=environment,
        cwd=module.folder,
        timeout_seconds=_BUILD_MINUTES * 60,
    )
    packages = len(
        output([go, "list", "-deps", "."], environment=environment, cwd=module.folder, timeout_seconds=300).split()
    )
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [go, "build", "-v", *module.build_flags, "-o", target, "."],
            cwd=module.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        started = time.monotonic()
        try:
            while process.poll() is None:
                try:
                    process.wait(_PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    log.seek(0)
                    compiled = sum(1 for _ in log)
                    progress(f"compiled {compiled} packages, of {packages} less those that Go has cached")
                if time.monotonic() - started > _BUILD_MINUTES * 60:
                    raise UserError(f"building {module.name} did not end within {_BUILD_MINUTES} minutes")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            log.seek(0)
            last = "".join(f"    {line}" for line in log.readlines()[-_LAST_LINES:])
            raise UserError(
                f"building {module.name} {module.version} with {go} failed (exit {process.returncode}):\n{last}"
            )
