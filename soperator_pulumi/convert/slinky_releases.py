"""Releases of Slinky's chart slurm, told apart by their keys, with the defaults that differ from those here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.errors import ConversionError

SAMPLE = "slinky"
"""Name of the sets that the chart has itself, until 1.1."""

_UPDATES = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}}}
_LOGIN = {"replicas": 1, "service": {"spec": {"type": "LoadBalancer"}}}


def _slurmd(tag: str) -> dict[str, Any]:
    return {"slurmd": {"image": {"repository": "ghcr.io/slinkyproject/slurmd", "tag": tag}}}


@dataclass(frozen=True)
class SlinkyRelease:
    """A range of releases of the chart."""

    name: str
    node_set: Mapping[str, Any]
    """Defaults of all node sets, or, with samples, of the sample."""
    has_samples: bool = True
    """The chart has a node set and a set of login nodes itself, and others exist only with `enabled: true`."""

    def of_node_set(self, name: str) -> Mapping[str, Any]:
        """Return the defaults of a node set."""
        return self.node_set if name == SAMPLE or not self.has_samples else {"replicas": 1, **_UPDATES}

    def of_login_set(self, name: str) -> Mapping[str, Any]:
        """Return the defaults of a set of login nodes."""
        if not self.has_samples:
            return {"enabled": True, **_LOGIN}
        return _LOGIN if name == SAMPLE else {"replicas": 1}

    @property
    def partitions(self) -> Mapping[str, Any]:
        """Partitions that the chart has."""
        of_all = {"nodesets": ["ALL"], "configMap": {"Default": "YES", "MaxTime": "UNLIMITED"}}
        return {"all": {"enabled": self.has_samples, **of_all}}


_SAMPLE = {"enabled": True, "replicas": 1}

NEWEST = SlinkyRelease("1.2 or later", {**_SAMPLE, **_slurmd("26.05-ubuntu26.04"), **_UPDATES}, has_samples=False)
_RELEASES = {
    (0, 4): SlinkyRelease(
        "0.4", {**_SAMPLE, **_slurmd("25.05-ubuntu24.04"), "partition": {"enabled": True}, **_UPDATES}
    ),
    (1, 0): SlinkyRelease(
        "1.0", {**_SAMPLE, **_slurmd("25.11-ubuntu24.04"), "partition": {"enabled": True}, **_UPDATES}
    ),
    (1, 1): SlinkyRelease("1.1", {**_SAMPLE, **_slurmd("25.11-ubuntu24.04"), **_UPDATES}),
    (1, 2): NEWEST,
    (1, 3): NEWEST,
}

_BEFORE = ("authcred", "compute", "jwt")
"""Keys of 0.1 to 0.3 alone."""

_MARKS = {
    (0, 4): ("slurm-exporter", "accounting.initconf"),
    (1, 2): (
        "loginsetDefaults",
        "nodesetDefaults",
        "extraObjects",
        "controller.ha",
        "controller.inplaceReconfigure",
        "restapi.pdb",
        "nodesets.*.oversubscribeNode",
    ),
    (1, 0): (
        "jwtHs256KeyRef",
        "slurmKeyRef",
        "priorityClassName",
        "loginsets.*.sssdConf",
        "nodesets.*.useResourceLimits",
    ),
    (1, 1): ("nodesets.*.taintKubeNodes",),
}
"""Keys that only some releases have, the most certain first."""


def release_of(root: Section, version: str, name: str, given: str = "") -> tuple[SlinkyRelease, str]:
    """Return the release that values are written for, and the reason in words; an empty reason if it is a guess.

    Args:
        root: The values.
        version: Version of the chart, as a HelmRelease or an Application names it, or an empty text.
        name: Name of the file in errors.
        given: Release that the user names, which counts; by default none.

    Raises:
        ConversionError: The values are those of 0.1 to 0.3, which have another form, or the named release is not known.
    """
    number = _number(version)
    lists = [key for key in ("nodesets", "loginsets") if isinstance(root.at(key).tree, Sequence)]
    before = [key for key in _BEFORE if root.at(key)] or [f"{key} as a list" for key in lists]
    if before or (number is not None and number < (0, 4)):
        found = f"version {version}" if number is not None else ", ".join(before)
        raise ConversionError(
            f"{name}: values of Slinky 0.x ({found}), which have another form. Give the values of 1.x: write "
            "`nodesets`, `loginsets` and `partitions` as its chart slurm has them."
        )
    told, why = _told(root, version)
    if not given:
        return told, why
    named = _RELEASES.get(_number(given) or (0, 0))
    if named is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in _RELEASES)
        raise ConversionError(f'--release: got "{given}". Give one of the known releases of the chart slurm: {known}.')
    other = f". The input tells {told.name}: {why}" if why and told is not named else ""
    return named, f"--release names it{other}"


def _number(version: str) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)\b", version)
    return (int(found[1]), int(found[2])) if found else None


def _told(root: Section, version: str) -> tuple[SlinkyRelease, str]:
    """Return the release of the input, and the reason in words; without evidence the newest, and no reason."""
    number = _number(version)
    if number is not None:
        return _RELEASES.get(number, NEWEST), f"its version is {version}"
    for mark, paths in _MARKS.items():
        found_paths = [path for path in paths if _has(root, path.split("."))]
        if found_paths:
            return _RELEASES.get(mark, NEWEST), f"only it has the key {found_paths[0]}"
    if SAMPLE in dict(root.at("nodesets").entries()):
        return _RELEASES[1, 1], f"it has a node set {SAMPLE}"
    return NEWEST, ""


def _has(place: Section, keys: Sequence[str]) -> bool:
    if not keys:
        return place.tree is not None
    first, *rest = keys
    if first == "*":
        return any(_has(below, rest) for _, below in place.entries())
    return _has(place.at(first), rest)
