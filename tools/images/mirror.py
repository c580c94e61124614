"""Sources of Debian packages: a given mirror, or that of this machine's apt."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tools.images.recipe import SUITE

_RELEASE_NAMES = ("stable", "oldstable", "oldoldstable", "testing")
_SUFFIXES = ("", "-updates", "-security")

_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>\S.*)")
_FIELD = re.compile(r"^([^\s:]+):(.*(?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True)
class AptSource:
    """Source of a suite's packages, and the file of its keys (None: those that apt trusts)."""

    uri: str
    suite: str
    signed_by: Path | None = None

    def line(self) -> str:
        """Return the source as a line of a sources.list."""
        return f"deb {f'[signed-by={self.signed_by}] ' if self.signed_by else ''}{self.uri} {self.suite} main"


def sources(
    mirror: str | None,
    apt: Path = Path("/etc/apt"),
    os_release: Path = Path("/etc/os-release"),
    suite: str = SUITE,
) -> list[AptSource]:
    """Return the sources of Debian's packages.

    Args:
        mirror: URL of a Debian mirror; default: the mirror of this machine's apt, if the machine runs Debian.
        apt: Folder of apt's configuration.
        os_release: File that names this system.
        suite: Debian release of the packages.

    Returns:
        The sources; none without a mirror on a machine that does not run Debian.

    """
    found = derive(configured(apt), _os_release(os_release), suite)
    if mirror is None:
        return found
    key = next((source.signed_by for source in found if source.uri == mirror), None)
    security = [source for source in found if source.suite.endswith("-security")]
    return [AptSource(mirror, suite, key), AptSource(mirror, f"{suite}-updates", key), *security]


def derive(found: Iterable[AptSource], system: dict[str, str], suite: str = SUITE) -> list[AptSource]:
    """Return the sources of a suite, with updates and security, derived from those of a Debian machine."""
    if system.get("ID") != "debian":
        return []
    releases = (system.get("VERSION_CODENAME", suite), *_RELEASE_NAMES)
    suites = {release + suffix: suite + suffix for release in releases for suffix in _SUFFIXES}
    wanted = [
        replace(source, suite=suites[source.suite])
        for source in found
        if source.suite in suites and source.uri.startswith(("http://", "https://"))
    ]
    return list(dict.fromkeys(wanted)) if any(source.suite == suite for source in wanted) else []


def configured(apt: Path) -> Iterator[AptSource]:
    """Read the sources of the main component that a folder like /etc/apt configures."""
    for file in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        if file.suffix == ".list" and file.is_file():
            yield from parse_list(file.read_text())
        elif file.suffix == ".sources":
            yield from parse_deb822(file.read_text())


def parse_list(text: str) -> Iterator[AptSource]:
    """Parse the sources of the main component from a `.list` file, which has one per line."""
    for line in text.splitlines():
        match = _LINE.fullmatch(line.partition("#")[0].strip())
        if match and "main" in match["components"].split():
            options = dict(part.split("=", 1) for part in (match["options"] or "").split() if "=" in part)
            yield AptSource(match["uri"], match["suite"], _key(options.get("signed-by", "")))


def parse_deb822(text: str) -> Iterator[AptSource]:
    """Parse the sources of the main component from a `.sources` file, which has paragraphs of fields."""
    uncommented = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for paragraph in re.split(r"\n[ \t]*\n", uncommented):
        fields = {name.lower(): value.split() for name, value in _FIELD.findall(paragraph)}
        disabled = fields.get("enabled", ["yes"])[0].lower() in {"no", "false", "0"}
        if disabled or "deb" not in fields.get("types", ()) or "main" not in fields.get("components", ()):
            continue
        key = _key(" ".join(fields.get("signed-by", ())))
        for uri in fields.get("uris", ()):
            for suite in fields.get("suites", ()):
                yield AptSource(uri, suite, key)


def _key(signed_by: str) -> Path | None:
    """Return the file in a Signed-By; None for an inline key or a fingerprint, which apt handles."""
    return Path(signed_by) if signed_by.startswith("/") else None


def _os_release(file: Path) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    return {name: "".join(shlex.split(value)) for name, value in pairs}
