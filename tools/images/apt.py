"""Access to a mirror for the apt of a build, as the machine's apt has it: proxy, trust and credentials.

All of it is mounted during a build, and none of it is in an image.
"""

import re
import shutil
import ssl
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools.images.mirror import AptSource

APT = Path("/etc/apt")

TESTING = ("forky",)
"""Releases that are not stable yet. Indexes expire within days, and a mirror may be older than that."""

_MOUNTED = ("apt.conf.d", "sources.list.d", "auth.conf.d", "keyrings")

_SETTINGS = re.compile(
    r"Acquire::(https?::|ftp::|Check-Valid-Until|Check-Date|Retries|ForceIPv4|ForceIPv6|Max-FutureTime)",
    re.IGNORECASE,
)
"""Settings for reaching a mirror. Others, such as indexes and hooks, stay with the machine."""

_SCRIPTS = re.compile(r"Proxy-Auto-?Detect", re.IGNORECASE)
"""Settings that name programs of the machine, which a build cannot run."""

_ALWAYS = ('Acquire::Languages "none";',)
_IN_BOOTSTRAP = ('APT::Sandbox::User "root";',)  # the user _apt cannot read keys in a cache that root alone can read
_IN_BUILDS = (
    'DPkg::Options { "--force-unsafe-io"; };',  # a killed build starts over: no need to sync each file
    'Dir::Cache::pkgcache "";',  # parsed indexes would be 90 MB in the cache
    'Dir::Cache::srcpkgcache "";',
)


@dataclass(frozen=True)
class BuildApt:
    """Folder of files that builds mount over apt's own folders, also usable by an apt of this machine.

    Attributes:
        folder: Readable for its owner alone, since it may hold a proxy's password.
        sources: Sources of packages, with keys in the folder.
    """

    folder: Path
    sources: list[AptSource]

    @property
    def volumes(self) -> list[str]:
        """Mounts of a build, as `buildah build --volume` takes them."""
        return [f"{self.folder / name}:{APT / name}:ro" for name in _MOUNTED]

    @property
    def settings(self) -> Path:
        """Settings file for an apt of this machine that installs into another root."""
        return self.folder / "apt.conf"


def prepare(
    folder: Path, sources: Iterable[AptSource], settings: str | None = None, apt: Path = APT, *, stale: bool = False
) -> BuildApt:
    """Write the files with which builds reach a mirror.

    Args:
        folder: Folder to make and write to.
        sources: Sources of packages.
        settings: Output of `apt-config dump`; with None, that of this machine.
        apt: Folder of this machine's apt, for its credentials.
        stale: Take indexes that have expired. Signatures are checked all the same.

    """
    if settings is None:
        settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    folder.mkdir(mode=0o700)
    for name in _MOUNTED:
        (folder / name).mkdir()
    for file in (apt / "auth.conf", *sorted((apt / "auth.conf.d").glob("*.conf"))):
        if file.is_file():
            shutil.copyfile(file, folder / "auth.conf.d" / file.name)
            (folder / "auth.conf.d" / file.name).chmod(0o600)

    keyrings = folder / "keyrings"
    relocated = list(_relocate(settings, keyrings))
    ours = [replace(source, signed_by=source.signed_by and _take(source.signed_by, keyrings)) for source in sources]
    credentials = f'Dir::Etc::netrcparts "{folder / "auth.conf.d"}";'
    always = [*_ALWAYS, *(['Acquire::Check-Valid-Until "false";'] if stale else [])]
    (folder / "apt.conf").write_text(_lines(*relocated, credentials, *always, *_IN_BOOTSTRAP))
    mounted = [line.replace(str(keyrings), str(APT / "keyrings")) for line in relocated]
    (folder / "apt.conf.d" / "90build").write_text(_lines(*mounted, *always, *_IN_BUILDS))
    (folder / "sources.list.d" / "build.list").write_text(
        _lines(*(source.line().replace(str(keyrings), str(APT / "keyrings")) for source in ours))
    )
    return BuildApt(folder, ours)


def _relocate(settings: str, keyrings: Path) -> Iterator[str]:
    """Yield the settings for reaching mirrors, with copies of the certificates that they name."""
    trusts = False
    for line in settings.splitlines():
        name, _, rest = line.partition(" ")
        if not _SETTINGS.match(name) or _SCRIPTS.search(name):
            continue
        value = rest.strip().removesuffix(";").strip('"')
        if value.startswith("/") and Path(value).is_file():
            value = str(_take(Path(value), keyrings))
        trusts |= name.lower() == "acquire::https::cainfo"
        yield f'{name} "{value}";'
    bundle = ssl.get_default_verify_paths().cafile
    if not trusts and bundle is not None:
        # A minimal image trusts no one yet, and this machine may trust a company's own authority.
        yield f'Acquire::https::CAInfo "{_take(Path(bundle), keyrings)}";'


def _take(file: Path, folder: Path) -> Path:
    """Copy a file into a folder under a unique name."""
    copy = folder / "-".join(file.parts[1:])
    shutil.copyfile(file, copy)
    return copy


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
