"""What the machine's apt knows about reaching Debian, for the apt that runs in a build.

Mirror, proxy, trust and credentials: all of it is mounted while a build runs, and none of it is in an image.
"""

import re
import shlex
import shutil
import ssl
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools.images.recipe import SUITE

APT = Path("/etc/apt")

_SETTINGS = re.compile(
    r"Acquire::(https?::|ftp::|Check-Valid-Until|Check-Date|Retries|ForceIPv4|ForceIPv6|Max-FutureTime)",
    re.IGNORECASE,
)
"""What says how to reach a mirror. Which indexes to fetch, hooks and the like are the machine's own."""

_SCRIPTS = re.compile(r"Proxy-Auto-?Detect", re.IGNORECASE)
"""Programs of the machine, which a build can't run."""

_RELEASE_NAMES = ("stable", "oldstable", "oldoldstable", "testing")
_SUFFIXES = ("", "-updates", "-security")


@dataclass(frozen=True)
class Source:
    """A place to get packages of a suite from, and what verifies them (None: Debian's own keys)."""

    uri: str
    suite: str
    signed_by: str | None = None

    def line(self, keyrings: Path | None = None) -> str:
        """Return the line of a sources.list; `keyrings` is the folder that holds the key's file there."""
        key = self.signed_by
        if key is not None and keyrings is not None:
            key = str(keyrings / Path(key).name)
        return f"deb {f'[signed-by={key}] ' if key else ''}{self.uri} {self.suite} main"


def sources(mirror: str | None, apt: Path = APT, os_release: Path = Path("/etc/os-release")) -> list[Source]:
    """Return where to get Debian's packages from.

    Args:
        mirror: A Debian mirror's URL. Without one it is what this machine's apt uses, when that is a Debian.
        apt: The folder of apt's configuration.
        os_release: The file that says which system this is.

    Returns:
        The sources; none when nothing is given and this machine is no Debian.

    """
    found = derive(_read_sources(apt), _os_release(os_release))
    if mirror is None:
        return found
    security = [source for source in found if source.suite.endswith("-security")]
    key = next((source.signed_by for source in found if source.uri == mirror), None)
    return [Source(mirror, SUITE, key), Source(mirror, f"{SUITE}-updates", key), *security]


def derive(configured: Iterable[Source], system: dict[str, str]) -> list[Source]:
    """Turn the sources of a Debian machine into those of the images' suite, with updates and security."""
    if system.get("ID") != "debian":
        return []
    releases = (system.get("VERSION_CODENAME", SUITE), *_RELEASE_NAMES)
    suites = {release + suffix: SUITE + suffix for release in releases for suffix in _SUFFIXES}
    wanted = [
        replace(source, suite=suites[source.suite])
        for source in configured
        if source.suite in suites and source.uri.startswith(("http://", "https://"))
    ]
    return list(dict.fromkeys(wanted)) if any(source.suite == SUITE for source in wanted) else []


def parse_list(text: str) -> Iterator[Source]:
    """Read the sources of Debian's main component from a `.list` file: one line each."""
    pattern = re.compile(
        r"deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.*)"
    )
    for line in text.splitlines():
        match = pattern.fullmatch(line.partition("#")[0].strip())
        if match and "main" in match["components"].split():
            options = dict(part.split("=", 1) for part in (match["options"] or "").split() if "=" in part)
            yield Source(match["uri"], match["suite"], _key(options.get("signed-by", "")))


def parse_deb822(text: str) -> Iterator[Source]:
    """Read the sources of Debian's main component from a `.sources` file: paragraphs of fields."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        fields = {
            name.strip().lower(): " ".join(value.split())
            for name, value in re.findall(
                r"^([^\s:]+):((?:.*)(?:\n[ \t].*)*)", "\n".join(lines), re.MULTILINE
            )
        }
        enabled = fields.get("enabled", "yes").lower() not in {"no", "false", "0"}
        if not enabled or "deb" not in fields.get("types", "").split():
            continue
        if "main" not in fields.get("components", "").split():
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, _key(fields.get("signed-by", "")))


@dataclass(frozen=True)
class BuildApt:
    """A folder with what a build mounts over apt's own, and the same for an apt that runs on this machine."""

    folder: Path
    sources: list[Source]

    def volumes(self) -> list[str]:
        """Return the mounts for a build, as `buildah build --volume` takes them."""
        mounted = ("apt.conf.d", "sources.list.d", "auth.conf.d", "keyrings")
        return [f"{self.folder / name}:{APT / name}:ro" for name in mounted]

    def host_settings(self) -> Path:
        """Return the file of settings for an apt that runs outside of the image."""
        return self.folder / "host.conf"

    def host_lines(self) -> list[str]:
        """Return the sources for an apt that runs outside of the image."""
        return [source.line(self.folder / "keyrings") for source in self.sources]


def prepare(folder: Path, found: list[Source], settings: str | None = None) -> BuildApt:
    """Write what builds mount.

    Args:
        folder: Where to write it; only the owner can look into it, since it may hold a proxy's password.
        found: Where packages come from.
        settings: What `apt-config dump` prints on this machine; asked for when None.

    """
    if settings is None:
        settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    folder.mkdir(mode=0o700)
    for name in ("apt.conf.d", "sources.list.d", "auth.conf.d", "keyrings"):
        (folder / name).mkdir()
    _copy_credentials(folder / "auth.conf.d")
    for key in {source.signed_by for source in found if source.signed_by}:
        _copy(Path(key), folder / "keyrings")

    files: dict[Path, str] = {}
    for place, conf in ((folder, folder / "host.conf"), (APT, folder / "apt.conf.d" / "90build")):
        lines = list(_relocated(settings, place / "keyrings", files))
        lines.append(f'Dir::Etc::netrcparts "{place / "auth.conf.d"}";')
        if conf.name == "90build":
            # What an image has is written once, or the build starts anew: no need to sync each file.
            lines.append('DPkg::Options { "--force-unsafe-io"; };')
        conf.write_text("\n".join([*lines, 'Acquire::Languages "none";', ""]))
    for source, name in files.items():
        shutil.copyfile(source, folder / "keyrings" / name)
    (folder / "sources.list.d" / "build.list").write_text(
        "".join(f"{source.line(APT / 'keyrings')}\n" for source in found)
    )
    return BuildApt(folder, found)


def _relocated(settings: str, keyrings: Path, files: dict[Path, str]) -> Iterator[str]:
    """Give the settings that reach mirrors, with certificates named where the build finds them."""
    trusts = False
    for line in settings.splitlines():
        name, _, rest = line.partition(" ")
        if not _SETTINGS.match(name) or _SCRIPTS.search(name):
            continue
        value = rest.strip().rstrip(";").strip('"')
        if value.startswith("/") and Path(value).is_file():
            files[Path(value)] = Path(value).name
            value = str(keyrings / Path(value).name)
        trusts |= name.lower() == "acquire::https::cainfo"
        yield f'{name} "{value}";'
    bundle = ssl.get_default_verify_paths().cafile
    if not trusts and bundle is not None:
        # A minimal image trusts nobody yet; a machine behind a company's proxy trusts its authority.
        files[Path(bundle)] = Path(bundle).name
        yield f'Acquire::https::CAInfo "{keyrings / Path(bundle).name}";'


def _copy_credentials(target: Path) -> None:
    for file in (APT / "auth.conf", *sorted((APT / "auth.conf.d").glob("*.conf"))):
        if file.is_file():
            _copy(file, target)
            (target / file.name).chmod(0o600)


def _copy(file: Path, folder: Path) -> None:
    shutil.copyfile(file, folder / file.name)


def _key(signed_by: str) -> str | None:
    """Return the file of a Signed-By. A key written in place or a fingerprint is left to apt's own keys."""
    return signed_by if signed_by.startswith("/") else None


def _read_sources(apt: Path) -> list[Source]:
    found: list[Source] = []
    for file in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if file.suffix == ".list" and file.is_file():
            found += parse_list(file.read_text())
        elif file.suffix == ".sources":
            found += parse_deb822(file.read_text())
    return found


def _os_release(file: Path) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    return {name: "".join(shlex.split(value)) for name, value in pairs}
