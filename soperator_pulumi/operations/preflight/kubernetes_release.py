"""Release of Kubernetes, compared with the features that the planned objects use."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned

CHECK = "release"

OLDEST_MINOR = 29
"""Oldest supported minor release: native sidecars, which every pod of Slurm has, are on by default (KEP-753)."""

_FEATURES: Sequence[tuple[int, str, Callable[[str, Any], bool]]] = (
    (25, "ranges of ports in NetworkPolicies (endPort)", lambda key, _value: key == "endPort"),
    (29, "native sidecars", lambda key, value: key == "initContainers" and any("restartPolicy" in e for e in value)),
    (29, "Jobs that stop at a failure that no retry cures", lambda key, _value: key == "podFailurePolicy"),
    (30, "a field for the AppArmor profile", lambda key, _value: key == "appArmorProfile"),
)
"""Features by the minor release in which they are on by default: kubernetes.io, Feature Gates."""


def release_findings(kube: Kube, objects: Sequence[Json] = ()) -> Iterator[Diagnosis]:
    """Yield findings about the server's release, by the features that the objects use."""
    answer = kube.get("/version") or {}
    shown = str(answer.get("gitVersion", "of an unknown version"))
    number = re.match(r"\d+", str(answer.get("minor", "")))
    if number is None:
        text = f"the API server is {shown}: the release cannot be judged"
        yield warned(CHECK, "Kubernetes", text, f"Kubernetes 1.{OLDEST_MINOR} or newer", "Look it up by hand.")
        return
    used = [(since, feature) for since, feature, uses in _FEATURES if any(_any(object_, uses) for object_ in objects)]
    minor = int(number[0])
    missing = [feature for since, feature in used if since > minor]
    if missing or minor < OLDEST_MINOR:
        newest = max(OLDEST_MINOR, *(since for since, _ in used), 0)
        without = f", without {', '.join(missing)}" if missing else ""
        yield refused(
            CHECK,
            "Kubernetes",
            f"the API server is {shown}{without}",
            f"Kubernetes 1.{newest} or newer",
            "Upgrade the control plane and the machines.",
        )
    else:
        yield passed(CHECK, "Kubernetes", f"the API server is {shown}")


def kubelet_findings(machines: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield machines whose kubelet is too old."""
    for machine in machines:
        shown = str(machine.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", ""))
        match = re.match(r"v1\.(\d+)", shown)
        if match and int(match[1]) < OLDEST_MINOR:
            yield refused(
                CHECK,
                f"machine {machine['metadata']['name']}",
                f"its kubelet is {shown}",
                f"v1.{OLDEST_MINOR} or newer, for native sidecars",
                "Upgrade the machine, or keep Slurm's pods from it by node_selector.",
            )


def _any(value: object, uses: Callable[[str, Any], bool]) -> bool:
    if isinstance(value, dict):
        return any(uses(key, item) or _any(item, uses) for key, item in value.items())
    return isinstance(value, list) and any(_any(item, uses) for item in value)
