"""Debian packages in var/lib/dpkg/status: versions and dependencies (deb-control(5))."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

STATUS = "var/lib/dpkg/status"
INFO = "var/lib/dpkg/info"
TRIGGERS = "var/lib/dpkg/triggers/File"
"""Paths whose changes start a trigger of a package: `/usr/share/man man-db`."""

_RELATION = re.compile(r"\s*([a-z0-9][a-z0-9.+-]*)(?::[a-z0-9-]+)?\s*(?:\(\s*(<<|<=|=|>=|>>)\s*([^\s)]+)\s*\))?")
_PART = re.compile(r"([^0-9]*)([0-9]*)")

_INSTALLED = {"installed", "triggers-awaited", "triggers-pending"}
_WHOLE = _INSTALLED | {"config-files", "not-installed", ""}


@dataclass(frozen=True)
class Package:
    """One paragraph of dpkg's status."""

    name: str
    architecture: str
    version: str
    state: str
    """Last word of its status: `installed`, `config-files`, or what a broken installation left."""
    paragraph: str

    @property
    def installed(self) -> bool:
        """True if dpkg has the package as unpacked and configured."""
        return self.state in _INSTALLED

    @property
    def key(self) -> str:
        """Name and architecture, by which dpkg knows a package."""
        return f"{self.name}:{self.architecture}"

    @property
    def lists(self) -> tuple[str, str]:
        """Possible paths of the package's file list. The first is used if several architectures can be installed."""
        return f"{INFO}/{self.key}.list", f"{INFO}/{self.name}.list"

    def field(self, name: str) -> str:
        """Return a field of the paragraph on one line; "" if it is missing."""
        found = re.search(rf"(?m)^{name}:(.*(?:\n[ \t].*)*)", self.paragraph)
        return " ".join(found.group(1).split()) if found else ""


def parse(status: bytes) -> dict[str, Package]:
    """Return all packages of a status file by their keys, in its order."""
    found = {}
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", status.decode("utf-8", "surrogateescape")):
        fields = dict(re.findall(r"(?m)^(Package|Architecture|Version|Status):[ \t]*(.*?)[ \t]*$", paragraph))
        if "Package" in fields:
            package = Package(
                fields["Package"],
                fields.get("Architecture", ""),
                fields.get("Version", ""),
                fields.get("Status", "").rpartition(" ")[2],
                paragraph.strip("\n"),
            )
            found[package.key] = package
    return found


def format_status(packages: Iterable[Package]) -> bytes:
    """Return a status file."""
    return "".join(f"{package.paragraph}\n\n" for package in packages).encode("utf-8", "surrogateescape")


def installed(packages: Mapping[str, Package]) -> dict[str, Package]:
    """Return the installed packages. For others, dpkg only keeps configuration files."""
    return {key: package for key, package in packages.items() if package.installed}


def broken(packages: Mapping[str, Package]) -> list[Package]:
    """Return packages that are neither installed nor removed: an installation failed or is running."""
    return [package for package in packages.values() if package.state not in _WHOLE]


def compare_versions(one: str, other: str) -> int:
    """Return -1, 0 or 1 if `one` is older than, the same as, or newer than `other` (deb-version(7))."""
    for ours, theirs in zip(_split(one), _split(other), strict=True):
        difference = _compare(ours, theirs)
        if difference:
            return difference
    return 0


def merge_triggers(ours: bytes, theirs: bytes, carried: Iterable[Package]) -> bytes:
    """Return `theirs` with the lines of `ours` for packages that are carried over."""
    wanted = {package.name.encode() for package in carried}
    there = set(theirs.splitlines())
    lines = [line for line in ours.splitlines() if line not in there and _owner(line) in wanted]
    return theirs + b"".join(line + b"\n" for line in lines)


def _owner(trigger: bytes) -> bytes:
    return trigger.rpartition(b" ")[2].partition(b"/")[0].partition(b":")[0]


def unmet(package: Package, there: Iterable[Package]) -> list[str]:
    """Return the missing dependencies of a package, as dpkg writes them."""
    versions: dict[str, list[str | None]] = {}
    for other in there:
        versions.setdefault(other.name, []).append(other.version)
        for name, relation, version in _relations(other.field("Provides").replace(",", "|")):
            versions.setdefault(name, []).append(version if relation else None)
    wanted = ",".join(filter(None, (package.field("Pre-Depends"), package.field("Depends"))))
    return [
        group.strip()
        for group in wanted.split(",")
        if group.strip() and not any(_satisfied(relation, versions) for relation in _relations(group))
    ]


def _relations(group: str) -> Iterator[tuple[str, str, str]]:
    for alternative in group.split("|"):
        found = _RELATION.match(alternative)
        if found:
            yield found.group(1), found.group(2) or "", found.group(3) or ""


def _satisfied(wanted: tuple[str, str, str], versions: Mapping[str, list[str | None]]) -> bool:
    name, relation, version = wanted
    for there in versions.get(name, []):
        if not relation:
            return True
        if there is None:
            continue
        order = compare_versions(there, version)
        if {"<<": order < 0, "<=": order <= 0, "=": order == 0, ">=": order >= 0, ">>": order > 0}[relation]:
            return True
    return False


def _split(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    upstream, dash, revision = (rest if colon else version).rpartition("-")
    return (epoch if colon else "0"), (upstream if dash else revision), (revision if dash else "0")


def _compare(one: str, other: str) -> int:
    """Compare text in dpkg's character order and numbers by value, alternately."""
    for (our_text, our_number), (their_text, their_number) in zip_longest(
        _PART.findall(one), _PART.findall(other), fillvalue=("", "")
    ):
        ours, theirs = _weights(our_text), _weights(their_text)
        if ours != theirs:
            return 1 if ours > theirs else -1
        difference = int(our_number or 0) - int(their_number or 0)
        if difference:
            return 1 if difference > 0 else -1
    return 0


def _weights(text: str) -> list[int]:
    """Return sort keys: a tilde sorts before the end, the end before letters, and letters before the rest."""
    return [-1 if char == "~" else ord(char) + (0 if char.isalpha() else 256) for char in text] + [0]
