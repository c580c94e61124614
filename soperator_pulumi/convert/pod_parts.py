"""Parts of pods that both projects write as Kubernetes does: placement, resources, image pulls, mounted volumes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.convert.amounts import gib, whole_gib
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.spec.types.absolute_path import HOMES, SHARED_MEMORY

_TOLERATION = {
    "key": "key",
    "operator": "operator",
    "value": "value",
    "effect": "effect",
    "tolerationSeconds": "toleration_seconds",
}
_BOTH = {"login", "worker"}


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
    """Write CPUs and memory into `pod_resources.requests` or `.limits`. Other resources are not accounted for."""
    for name in ("cpu", "memory"):
        place = amounts.at(name)
        if place:
            work.put(work.mapping("pod_resources", kind, of=role), name, _quantity(place, name), place)


def put_pods(work: Conversion, role: dict[str, Any], resources: Section, pod: Section) -> None:
    """Write the placement, the priority and the resources of a role's pods in the form of Kubernetes."""
    place_pods(work, role, pod)
    for kind in ("requests", "limits"):
        put_resources(work, role, kind, resources.at(kind))
    put_priority(work, role, pod)


def _quantity(place: Section, name: str) -> object:
    """Return a quantity as the spec accepts it: memory always has a unit."""
    value = place.plain()
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    if name == "memory" and str(value).isdecimal():
        return f"{-(-int(value) // 1024)}Ki"
    return str(value)


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
    roles: tuple[str, ...]
    sub_path: Section
    read_only: Section
    further: tuple[Leaf, ...] = ()
    """Further leaves of the origin: the names that connect mount and volume."""
    how: str = ""


@dataclass
class Submounts:
    """Volumes of the input as submounts of the jail, one per path and role."""

    work: Conversion
    _items: list[tuple[str, set[str], dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    """Submounts: path, roles, and fields as plain and as placed values."""

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
        path = volume.path.text()
        roles = {*_BOTH} if path == HOMES else {*volume.roles}
        there = [known for known in self._items if known[0] == path]
        same = next((known for known in there if known[2] == plain), None)
        if any(known is not same and known[1] & roles for known in there):
            work.cannot(_origins(volume), f"{path} has another volume: add this one by hand, and node_sets to both")
        elif same is None:
            self._items.append((path, roles, plain, self._appended(path, fields, volume)))
        else:
            same[1].update(roles)
            self._widen(same[3], fields, volume)

    def _appended(self, path: str, fields: dict[str, Any], volume: MountedVolume) -> dict[str, Any]:
        work = self.work
        for_all = path == HOMES and set(volume.roles) != _BOTH
        how = "homes are the same in sessions and in jobs" if for_all else volume.how
        item: dict[str, Any] = {"path": work.value(path, (*volume.path.leaves(), *volume.further), how)}
        for key, (value, leaves) in fields.items():
            changed = key in {"scratch_gib", "memory_gib"} and leaves
            item[key] = work.value(value, leaves, f"{leaves[0].value} in GiB" if changed else "")
        if path != HOMES and set(volume.roles) != _BOTH:
            item["roles"] = [work.value(role) for role in volume.roles]
        work.listed("jail", "submounts").append(item)
        return item

    def _widen(self, item: dict[str, Any], fields: dict[str, Any], volume: MountedVolume) -> None:
        """Add an origin and its roles to a submount."""
        for key, (_, leaves) in fields.items():
            self.work.extend(item[key], leaves)
        self.work.extend(item["path"], (*volume.path.leaves(), *volume.further))
        if "roles" in item and {role.value for role in item["roles"]} | {*volume.roles} == _BOTH:
            del item["roles"]


def _fields(volume: MountedVolume) -> dict[str, tuple[Any, tuple[Leaf, ...]]] | str:
    """Return the fields of a submount for a volume, or the reason against it."""
    source = volume.source
    if claim := source.at("persistentVolumeClaim", "claimName").text():
        read_only = source.at("persistentVolumeClaim", "readOnly").leaves()
        name = source.at("persistentVolumeClaim", "claimName").leaves()
        return {"existing_claim": (claim, (*name, *read_only))}
    if host_path := source.at("hostPath", "path").text():
        return {"host_path": (host_path, tuple(source.at("hostPath").leaves()))}
    if source.at("emptyDir").tree is not None:
        return _scratch(source.at("emptyDir"), volume.path.text())
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
