"""Programs of the Linux distribution: from PATH if new enough, else from its packages, unpacked into the cache.

Nothing is installed: `apt-get` resolves and fetches with its own lists, an empty status file and folders in the cache,
so that the machine's package state is neither read nor changed (only its sources and its trust are used); `dpkg -x`
unpacks; programs are run with `PATH` and `LD_LIBRARY_PATH` that lead there.
"""

import os
import platform
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
"""File that lists the packages left out because the machine has them installed."""

_HELPER_FOLDERS = ("usr/local/libexec/podman", "usr/local/lib/podman", "usr/libexec/podman", "usr/lib/podman")
"""Folders of helpers, below /: containers.conf(5), `helper_binaries_dir`."""


@dataclass(frozen=True)
class Program:
    """A program of the distribution's packages."""

    package: str
    oldest: tuple[int, ...] = ()
    """Oldest version known to work; empty for any."""

    version: tuple[str, ...] = ("--version",)
    """Arguments that make it print its version."""

    helper: str = ""
    """Program that it looks for in _HELPER_FOLDERS; empty: none."""


_CONTAINERD = Program("containerd", (1, 6))
_NFT = Program("nftables", (1, 0, 1))  # kube-proxy's nftables mode asks for 1.0.1
PROGRAMS: Mapping[str, Program] = {
    "containerd": _CONTAINERD,
    "ctr": _CONTAINERD,
    "containerd-shim-runc-v2": Program("containerd", (1, 6), ("-v",)),
    "runc": Program("runc", (1, 1)),
    "nft": _NFT,
    "conntrack": Program("conntrack"),
    "buildah": Program("buildah", (1, 28), helper="netavark"),  # that of Debian 13 builds nothing without it
    "mmdebstrap": Program("mmdebstrap", (1, 3)),
    "ip": Program("iproute2"),
    "ss": Program("iproute2"),
    "modprobe": Program("kmod"),
    "ssh": Program("openssh-client"),
}
"""Programs that the project runs, by name. The versions are those of Debian 12, which are tested."""

CNI_PLUGINS = ("bridge", "host-local", "loopback")
"""Network plugins that the embedded Kubernetes uses."""

PACKAGES = (
    *sorted({program.package for program in PROGRAMS.values()}),
    "containernetworking-plugins",
    "debian-archive-keyring",  # images are made of Debian packages on any distribution
    *(program.helper for program in PROGRAMS.values() if program.helper),
)
"""Packages to fetch if a program is missing: always all, as they share most requirements."""


@dataclass(frozen=True)
class Tool:
    """A program that is ready to run."""

    name: str
    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additions to the environment of the program."""

    def run(self, *arguments: str | Path, stdin: str = "", timeout_seconds: float = 60, what: str | None = None) -> str:
        """Run the program to its end and return its standard output; a failure is a UserError with its last lines."""
        return output(
            [self.path, *arguments],
            environment=self.environment,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            what=what,
        )


@cache
def tool(name: str) -> Tool:
    """Return a program, from PATH if it is new enough there, else from the unpacked packages.

    One on PATH whose helper the machine does not have gets that of the unpacked packages.
    """
    program = PROGRAMS[name]
    found = shutil.which(name)
    if found and _new_enough(Path(found), program):
        return Tool(name, Path(found), {} if _has_helper(program) else unpacked().environment)
    return Tool(name, unpacked().program(name), unpacked().environment)


@cache
def cni_plugins() -> Path:
    """Return the folder with CNI_PLUGINS."""
    for folder in (Path("/usr/lib/cni"), Path("/opt/cni/bin")):
        if all(os.access(folder / plugin, os.X_OK) for plugin in CNI_PLUGINS):
            return folder
    return unpacked().root / "usr/lib/cni"


def _new_enough(path: Path, program: Program) -> bool:
    if not program.oldest:
        return True
    try:
        return parse_version(output([path, *program.version])) >= program.oldest
    except UserError:  # it does not run
        return False


def _has_helper(program: Program) -> bool:
    return not program.helper or any((Path("/") / folder / program.helper).exists() for folder in _HELPER_FOLDERS)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the first dotted number in the version that a program prints, as comparable integers."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


@dataclass(frozen=True)
class Unpacked:
    """Files of the packages below one folder."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a program below `root` finds its libraries, helpers and modules."""
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
            "CONTAINERS_HELPER_BINARY_DIR": f"{self.root}/usr/lib/podman",
        }

    def program(self, name: str) -> Path:
        """Return the path of a program below `root`."""
        for base in ("usr/sbin", "usr/bin", "sbin", "bin"):
            if (path := self.root / base / name).exists():
                return path
        raise UserError(f"{name} is not in the packages unpacked at {self.root}. Remove that folder, then rerun")


@cache
def unpacked(packages: tuple[str, ...] = PACKAGES) -> Unpacked:
    """Return the unpacked packages. If the cache has none for this machine, fetch and unpack them first."""
    base = cache_dir() / "debs"
    key = sha256("\n".join([os.uname().machine, *packages]).encode()).hexdigest()[:12]
    root = base / f"{release()}-{key}"
    if not _complete(root):
        with locks.held(base / ".lock", "unpacking packages", wait_seconds=_APT_SECONDS):
            if not _complete(root):  # another program may have unpacked them meanwhile
                _unpack(Apt(base / "apt"), root, packages)
    return Unpacked(root)


def _complete(root: Path) -> bool:
    """Return True if `root` has every package that the machine lacks, as some may have been removed since."""
    left_out = root / _LEFT_OUT
    return left_out.exists() and set(left_out.read_text().split()) <= _installed()


def _unpack(apt: "Apt", root: Path, packages: tuple[str, ...]) -> None:
    with step("Fetching and unpacking packages that the machine does not have") as progress:
        progress("reading the package lists (apt-get update with folders of its own)")
        closure = apt.fresh_closure(packages)
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
    """Make links of packages (modprobe -> /bin/kmod) point to the unpacked files, not to the machine's."""
    for path in [path for path in root.rglob("*") if path.is_symlink()]:
        target = path.readlink()
        inside = root / target.relative_to("/") if target.is_absolute() else None
        if inside and inside.exists():
            path.unlink()
            path.symlink_to(os.path.relpath(inside, path.parent))


def release() -> str:
    """Return the machine's distribution and its release, such as `debian-bookworm`."""
    fields = platform.freedesktop_os_release()
    return f"{fields['ID']}-{fields.get('VERSION_CODENAME', '')}"


def _installed() -> set[str]:
    listed = output(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"])
    return {line.split()[0] for line in listed.splitlines() if line.endswith(" installed")}


class Apt:
    """`apt-get` with its own folders, using the machine's sources and trust."""

    def __init__(self, folder: Path, run: Callable[..., str] = output) -> None:
        self._run = run
        self._archives = folder / "archives"
        status = folder / "status"
        for needed in (folder / "lists/partial", self._archives / "partial"):
            needed.mkdir(parents=True, exist_ok=True)
        status.write_text("")  # nothing installed: closures do not depend on the machine's package state
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
        """Read the package lists, and return the names of `packages` and their requirements.

        An unreadable source, perhaps of a third party, does no harm if the others have the packages.
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
                f"{unread}{error}\nThe machine's package sources do not have these packages. "
                f"Add the distribution's sources, or install {', '.join(packages)}"
            ) from error

    def download(self, packages: Iterable[str]) -> list[Path]:
        """Fetch the archives of `packages`; apt verifies them."""
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
    """Return the packages in the output of `apt-get --simulate install`."""
    return {line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")}
