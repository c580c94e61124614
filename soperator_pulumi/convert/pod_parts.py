"""Parts of pods that both projects write as Kubernetes does: placement, resources, image pulls, mounted volumes."""

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from soperator_pulumi.convert.container_parts import SETTINGS_OF_IMAGES, is_of_images
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.spec.login import object_name
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.absolute_path import HOMES, SHARED_MEMORY
from soperator_pulumi.spec.types.quantity import GIB, amount

_TOLERATION = {
    "key": "key",
    "operator": "operator",
    "value": "value",
    "effect": "effect",
    "tolerationSeconds": "toleration_seconds",
}

_RDMA_DEVICES = "/dev/infiniband"
_JAIL_OF_SOPERATOR = "/mnt/jail.upper/"
"""Where soperator's pods have the tree of jobs and sessions."""
_LOGIN, _WORKER = SubmountRole.LOGIN, SubmountRole.WORKER


def place_pods(
    work: Conversion, role: dict[str, Any], pod: Section, further: Iterable[Leaf] = (), how: str = ""
) -> None:
    """Write the placement of pods: `nodeSelector`, `affinity`, `tolerations`.

    Args:
        work: The conversion.
        role: Role in the stack: `login`, or an item of `node_sets`.
        pod: Place in the input that holds the three keys.
        further: Further leaves of the origin, such as a reference to the place.
        how: Difference from the origin.
    """
    further = tuple(further)
    for key, value in pod.at("nodeSelector").entries():
        selector = work.mapping("node_selector", of=role)
        work.put(selector, key, value.text(), (*value.leaves(), *further), how)
    for entry in pod.at("tolerations").items():
        known = [(key, value) for key, value in entry.entries() if key in _TOLERATION and value]
        if known:
            leaves = [leaf for _, value in known for leaf in value.leaves()]
            toleration = {_TOLERATION[key]: value.plain() for key, value in known}
            work.add(work.listed("tolerations", of=role), toleration, (*leaves, *further), how)
    affinity = pod.at("affinity")
    if affinity.entries():
        by_pods = affinity.at("podAffinity") or affinity.at("podAntiAffinity")
        hows = [how, "pods here have other labels than those of podAffinity and podAntiAffinity" if by_pods else ""]
        how = "; ".join(filter(None, hows))
        work.put(role, "affinity", affinity.plain(), (*affinity.leaves(), *further), how)


def put_resources(work: Conversion, role: dict[str, Any], kind: str, amounts: Section) -> None:
    """Write CPUs and memory into `pod_resources.requests` or `.limits`. Other resources are left to the caller."""
    for name in ("cpu", "memory"):
        place = amounts.at(name)
        if place:
            work.put(work.mapping("pod_resources", kind, of=role), name, _accepted_quantity(place, name), place)


def put_pods(work: Conversion, role: dict[str, Any], resources: Section, pod: Section) -> None:
    """Write the placement, the priority and the resources of a role's pods in the form of Kubernetes."""
    place_pods(work, role, pod)
    for kind in ("requests", "limits"):
        put_resources(work, role, kind, resources.at(kind))
    put_priority(work, role, pod)


def _accepted_quantity(place: Section, name: str) -> object:
    """Return a quantity as the spec accepts it: memory always has a unit."""
    value = place.plain()
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    if name == "memory" and str(value).isdecimal():
        return f"{-(-int(value) // 1024)}Ki"
    return str(value)


def quantity(value: object) -> Decimal | None:
    """Return a quantity as a number of CPUs or bytes; None if the value is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return amount(str(value))
    except (ValueError, ArithmeticError):
        return None


def count_of(place: Section) -> object:
    """Return a number of pods as the chart writes it, from a number or a text of digits; any other value as it is."""
    value = place.plain()
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def gib(value: object) -> float | int | None:
    """Return a quantity of memory in GiB, exactly: an int if it is whole."""
    found = quantity(value)
    if found is None:
        return None
    exact = found / GIB
    return int(exact) if exact == int(exact) else float(exact)


def whole_gib(value: object) -> int | None:
    """Return a quantity of storage in whole GiB, rounded up."""
    found = quantity(value)
    return None if found is None else max(1, math.ceil(found / GIB))


def put_priority(work: Conversion, role: dict[str, Any], pod: Section) -> None:
    """Write the class of the pods, `priorityClassName`."""
    name = pod.at("priorityClassName")
    if name.text():
        work.put(role, "priority_class", name.text(), name)


def pull_settings(work: Conversion, policies: Iterable[Section], secrets: Iterable[Section]) -> None:
    """Write `pull_policy` and `pull_secrets`, which are the same for all images of a cluster here."""
    images = work.mapping("images")
    for place in policies:
        if not place or not place.text():
            continue
        before = images.get("pull_policy")
        if before is None or before.value == place.text():
            work.put(images, "pull_policy", place.text(), place)
        else:
            work.cannot(place, f"all images have one pull_policy: {before.value}, from an earlier image")
    for place in secrets:
        for secret in place.items():
            name = secret.at("name")
            if name.text():
                work.add(work.listed("pull_secrets", of=images), name.text(), name)


@dataclass
class MountedVolume:
    """A volume that the input mounts for jobs or sessions."""

    path: Section
    """Place of the mount path."""
    source: Section
    """A Kubernetes volume: a mapping with `persistentVolumeClaim`, `hostPath`, `emptyDir` or another kind."""
    pods: tuple[SubmountRole, str]
    """Role of the pods, with the name of their node set or of their StatefulSet of login nodes."""
    sub_path: Section
    read_only: Section
    further: tuple[Leaf, ...] = ()
    """Further leaves of the origin: the names that connect mount and volume."""

    @property
    def place(self) -> str:
        """Mount path as jobs and sessions see it."""
        return self.path.text().replace(_JAIL_OF_SOPERATOR, "/", 1).rstrip("/") or self.path.text()


def is_in_jail(mount_path: Section) -> bool:
    """Return True for a mount of soperator's pods into the tree of jobs and sessions."""
    return mount_path.text().startswith(_JAIL_OF_SOPERATOR)


@dataclass
class _Submount:
    """A volume at a path, in the pods that have it."""

    path: str
    plain: dict[str, Any]
    """Fields of the volume, as plain values."""
    pods: set[tuple[SubmountRole, str]]
    item: dict[str, Any]
    """The submount in the stack."""


@dataclass
class Submounts:
    """Volumes of the input as submounts of the jail, one per path and volume."""

    work: Conversion
    _known: list[_Submount] = field(default_factory=list)

    def add(self, volume: MountedVolume) -> None:
        """Write a volume as a submount, or note the reason against it."""
        work, fields = self.work, _fields(volume)
        if isinstance(fields, str):
            work.cannot(_origins(volume), fields)
            return
        if volume.sub_path.text():
            fields["sub_path"] = (volume.sub_path.text(), tuple(volume.sub_path.leaves()))
        if volume.read_only.is_on() or volume.source.at("persistentVolumeClaim", "readOnly").is_on():
            fields["read_only"] = (True, tuple(volume.read_only.leaves()))
        plain = {key: value for key, (value, _) in fields.items()}
        path = volume.place
        there = [known for known in self._known if known.path == path]
        same = next((known for known in there if known.plain == plain), None)
        others = [known for known in there if known is not same]
        if path == HOMES and others:
            work.cannot(_origins(volume), f"{HOMES} is one volume in sessions and in all jobs, and has another here")
        elif any(volume.pods in known.pods for known in others):
            work.cannot(_origins(volume), f"{path} has another volume in the same pods")
        elif same is None:
            self._known.append(_Submount(path, plain, {volume.pods}, self._appended(path, fields, volume)))
        else:
            same.pods.add(volume.pods)
            for key, (_, leaves) in fields.items():
                work.extend(same.item[key], leaves)
            work.extend(same.item["path"], (*volume.path.leaves(), *volume.further))

    def _appended(self, path: str, fields: dict[str, Any], volume: MountedVolume) -> dict[str, Any]:
        work = self.work
        how = "as jobs and sessions see it" if is_in_jail(volume.path) else ""
        item: dict[str, Any] = {"path": work.value(path, (*volume.path.leaves(), *volume.further), how)}
        for key, (value, leaves) in fields.items():
            changed = key in {"scratch_gib", "memory_gib"} and leaves
            item[key] = work.value(value, leaves, f"{leaves[0].value} in GiB" if changed else "")
        work.listed("jail", "submounts").append(item)
        return item

    def choose_pods(self, node_sets: Collection[str]) -> None:
        """Write the roles, node sets, and login nodes of the submounts that not all pods have.

        Args:
            node_sets: Names of all node sets of the stack.
        """
        pools = self.work.stack.get("login", {}).get("pools", {})
        logins = [object_name(None), *map(object_name, pools)]
        every = {*((_WORKER, name) for name in node_sets), *((_LOGIN, name) for name in logins)}
        for known in self._known:
            workers = [name for name in node_sets if (_WORKER, name) in known.pods]
            sessions = [name for name in logins if (_LOGIN, name) in known.pods]
            if known.path == HOMES:
                if not workers or known.pods != every:
                    known.item["path"].how = "for sessions and all node sets: homes are the same everywhere"
                continue
            if not workers or not sessions:
                known.item["roles"] = [self.work.value("worker" if workers else "login")]
            if workers and len(workers) < len(node_sets):
                known.item["node_sets"] = [self.work.value(name) for name in workers]
            if sessions and len(sessions) < len(logins):
                known.item["logins"] = [self.work.value(name) for name in sessions]


def _fields(volume: MountedVolume) -> dict[str, tuple[Any, tuple[Leaf, ...]]] | str:
    """Return the fields of a submount for a volume, or the reason against it."""
    source = volume.source
    if is_of_images(volume.place):
        return SETTINGS_OF_IMAGES
    if claim := source.at("persistentVolumeClaim", "claimName").text():
        read_only = source.at("persistentVolumeClaim", "readOnly").leaves()
        name = source.at("persistentVolumeClaim", "claimName").leaves()
        return {"existing_claim": (claim, (*name, *read_only))}
    host_path = source.at("hostPath", "path").text()
    if host_path.startswith(_RDMA_DEVICES):
        return "devices of RDMA come from a device plugin: node_sets[].rdma names its resource"
    if host_path:
        return {"host_path": (host_path, tuple(source.at("hostPath").leaves()))}
    if source.at("emptyDir").tree is not None:
        return _scratch(source.at("emptyDir"), volume.place)
    kinds = [key for key, _ in source.entries() if key != "name"]
    kind = kinds[0] if kinds else "no kind"
    return (
        f"a submount is a claim, a directory of the machine, or scratch; this is a volume of the kind {kind}. Create a "
        "PersistentVolume and a claim for it, and name the claim in jail.submounts"
    )


def _scratch(empty_dir: Section, path: str) -> dict[str, tuple[Any, tuple[Leaf, ...]]] | str:
    in_memory = empty_dir.at("medium").text() == "Memory" or path == SHARED_MEMORY
    size = empty_dir.at("sizeLimit")
    amount = gib(size.plain()) if in_memory else whole_gib(size.plain())
    if amount is None:
        return "scratch needs a size (scratch_gib or memory_gib), and the emptyDir has no sizeLimit"
    leaves = (*size.leaves(), *empty_dir.at("medium").leaves())
    return {"memory_gib" if in_memory else "scratch_gib": (amount, leaves)}


def _origins(volume: MountedVolume) -> list[Leaf]:
    places = (volume.path, volume.source, volume.sub_path, volume.read_only)
    return [*(leaf for place in places for leaf in place.leaves()), *volume.further]
