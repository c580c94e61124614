"""Programs of the Linux distribution: from PATH when new enough, else from its packages, unpacked into the cache.

Nothing is installed: `apt-get` resolves and fetches with its own lists, an empty status file and folders in the cache,
so that the machine's package state is neither read nor changed (only its sources and its trust are used); `dpkg -x`
unpacks; programs are run with `PATH` and `LD_LIBRARY_PATH` that lead there.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from tools import locks
from tools.console import UserError, step
from tools.kube.process import output
from tools.paths import cache_dir

_APT_SECONDS = 900
_LEFT_OUT = "left-out"
"""The file that names the packages which were not unpacked because the machine has them installed."""


@dataclass(frozen=True)
class Program:
    """A program that is taken from the distribution."""

    package: str
    oldest: tuple[int, ...] = ()
    """The oldest version that is known to work; empty: any."""

    version: tuple[str, ...] = ("--version",)
    """Arguments that make it print its version."""


_CONTAINERD = Program("containerd", (1, 6))
_NFT = Program("nftables", (1, 0, 1))  # kube-proxy's nftables mode asks for 1.0.1
PROGRAMS: Mapping[str, Program] = {
    "containerd": _CONTAINERD,
    "ctr": _CONTAINERD,
    "containerd-shim-runc-v2": Program("containerd", (1, 6), ("-v",)),
    "runc": Program("runc", (1, 1)),
    "nft": _NFT,
    "conntrack": Program("conntrack"),
    "buildah": Program("buildah", (1, 28)),
    "mmdebstrap": Program("mmdebstrap", (1, 3)),
    "ip": Program("iproute2"),
    "ss": Program("iproute2"),
    "modprobe": Program("kmod"),
    "ssh": Program("openssh-client"),
}
"""What the project runs, by name. The versions are Debian 12's, with which all of it was run."""

CNI_PLUGINS = ("bridge", "host-local", "loopback")
"""The network plugins that the embedded Kubernetes uses."""

PACKAGES = (
    *sorted({program.package for program in PROGRAMS.values()}),
    "containernetworking-plugins",
    "debian-archive-keyring",  # images are made of Debian packages on any distribution
)
"""What is fetched when a program is missing: always all, because they share most of what they need."""


@dataclass(frozen=True)
class Tool:
    """A program of the distribution, ready to run."""

    name: str
    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """To be added to the environment that it is run in."""

    def run(self, *arguments: str | Path, stdin: str = "", timeout_seconds: float = 60, what: str | None = None) -> str:
        """Run it to its end and return its standard output; a failure is a UserError with its last words."""
        return output(
            [self.path, *arguments],
            environment=self.environment,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            what=what,
        )


@cache
def tool(name: str) -> Tool:
    """Return a program of the distribution: the one on PATH when new enough, else the one of the unpacked packages."""
    program = PROGRAMS[name]
    found = shutil.which(name)
    if found and _new_enough(Path(found), program):
        return Tool(name, Path(found))
    return Tool(name, unpacked().program(name), unpacked().environment)


@cache
def cni_plugins() -> Path:
    """Return the folder that has CNI_PLUGINS."""
    for folder in (Path("/usr/lib/cni"), Path("/opt/cni/bin")):
        if all(os.access(folder / plugin, os.X_OK) for plugin in CNI_PLUGINS):
            return folder
    return unpacked().root / "usr/lib/cni"


def _new_enough(path: Path, program: Program) -> bool:
    if not program.oldest:
        return True
    try:
        return parse_version(output([path, *program.version])) >= program.oldest
    except UserError:  # it does not even run
        return False


def parse_version(text: str) -> tuple[int, ...]:
    """Return the first dotted number in what a program prints as its version, as comparable integers."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


@dataclass(frozen=True)
class Unpacked:
    """The packages' files below one folder."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a program below `root` needs to find its libraries, helpers and modules."""
        triplet = f"{os.uname().machine}-linux-gnu"
        libraries = [f"{self.root}/{base}/{triplet}" for base in ("usr/lib", "lib")]
        modules = sorted(
            str(folder)
            for pattern in (
                "usr/share/perl5",
                "usr/share/perl/5.*",
                f"usr/lib/{triplet}/perl/5.*",
                f"usr/lib/{triplet}/perl5/5.*",
            )
            for folder in self.root.glob(pattern)
        )
        folders = [f"{self.root}/{base}" for base in ("usr/sbin", "usr/bin", "sbin", "bin")]
        return {
            "PATH": ":".join([*folders, os.environ.get("PATH", os.defpath)]),
            "LD_LIBRARY_PATH": ":".join(libraries),
            "PERL5LIB": ":".join(modules),
        }

    def program(self, name: str) -> Path:
        """Return the path of a program below `root`."""
        for base in ("usr/sbin", "usr/bin", "sbin", "bin"):
            if (path := self.root / base / name).exists():
                return path
        raise UserError(f"{name} is not in the packages unpacked at {self.root}: remove that folder and try again")


@cache
def unpacked() -> Unpacked:
    """Return the unpacked packages; fetch and unpack them first when the cache has none for this machine."""
    base = cache_dir() / "debs"
    key = sha256("\n".join([os.uname().machine, *PACKAGES]).encode()).hexdigest()[:12]
    root = base / f"{_release()}-{key}"
    if not _complete(root):
        with locks.held(base / ".lock", "unpacking packages", wait_seconds=_APT_SECONDS):
            if not _complete(root):  # nobody has done it while we waited
                _unpack(Apt(base / "apt"), root)
    return Unpacked(root)


def _complete(root: Path) -> bool:
    """Tell whether `root` has all that the machine itself has not (packages may have been removed from it since)."""
    left_out = root / _LEFT_OUT
    return left_out.exists() and set(left_out.read_text().split()) <= _installed()


def _unpack(apt: "Apt", root: Path) -> None:
    with step("Packages of the distribution: fetching and unpacking what the machine lacks") as progress:
        progress("reading the package lists (apt-get update with folders of its own)")
        closure = apt.fresh_closure(PACKAGES)
        installed = _installed()
        missing = sorted(closure - installed)
        progress(f"fetching {len(missing)} packages: {', '.join(missing)}")
        building = root.with_name(f".{root.name}.new")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        for archive in apt.download(missing):
            output(["dpkg", "-x", archive, building])
        _keep_links_inside(building)
        (building / _LEFT_OUT).write_text("\n".join(sorted(closure & installed)) + "\n")
        shutil.rmtree(root, ignore_errors=True)
        building.rename(root)


def _keep_links_inside(root: Path) -> None:
    """Let links of packages (modprobe -> /bin/kmod) lead to the unpacked files in place of the machine's."""
    for path in [path for path in root.rglob("*") if path.is_symlink()]:
        target = path.readlink()
        inside = root / target.relative_to("/") if target.is_absolute() else None
        if inside and inside.exists():
            path.unlink()
            path.symlink_to(os.path.relpath(inside, path.parent))


def _release() -> str:
    fields = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return "-".join(fields.get(name, "").strip('"') for name in ("ID", "VERSION_CODENAME"))


def _installed() -> set[str]:
    listed = output(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"])
    return {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}


class Apt:
    """`apt-get` with folders of its own, on the machine's sources and trust."""

    def __init__(self, folder: Path, run: Callable[..., str] = output) -> None:
        self._run = run
        self._archives = folder / "archives"
        status = folder / "status"
        for needed in (folder / "lists/partial", self._archives / "partial"):
            needed.mkdir(parents=True, exist_ok=True)
        status.write_text("")  # as if nothing were installed: closures do not depend on the machine's package state
        settings = {
            "Dir::State": folder,
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": status,
            "Dir::Cache": folder,
            "Dir::Cache::archives": self._archives,
            "APT::Sandbox::User": "root",  # the cache is in root's home, where apt's own user cannot write
            "Acquire::Languages": "none",
            "Acquire::http::Timeout": 30,
            "Acquire::Retries": 3,
            "APT::Install-Recommends": "false",
        }
        self._options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def _apt(self, *arguments: str) -> str:
        return self._run(
            ["apt-get", *self._options, *arguments],
            timeout_seconds=_APT_SECONDS,
            what=f"apt-get {arguments[0]}",
        )

    def fresh_closure(self, packages: Iterable[str]) -> set[str]:
        """Read the package lists, and return the names of `packages` and of all that they need.

        A source that cannot be read (one of a third party, perhaps) is no harm when the others have the packages.
        """
        unread = ""
        try:
            self._apt("update")
        except UserError as error:
            unread = f"{error}\n"
        try:
            return parse_closure(self._apt("install", "--simulate", *packages))
        except UserError as error:
            raise UserError(
                f"{unread}{error}\nThe machine's package sources lack what is needed: "
                f"let them have the distribution's packages, or install {', '.join(packages)}"
            ) from error

    def download(self, packages: Iterable[str]) -> list[Path]:
        """Fetch the archives of `packages`, verified by apt."""
        for old in self._archives.glob("*.deb"):
            old.unlink()
        names = list(packages)
        self._run(
            ["apt-get", *self._options, "download", *names],
            cwd=self._archives,
            timeout_seconds=_APT_SECONDS,
            what="apt-get download",
        )
        return sorted(self._archives.glob("*.deb"))


def parse_closure(simulated: str) -> set[str]:
    """Return the packages that `apt-get --simulate install` would install."""
    return {line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")}
