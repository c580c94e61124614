"""Parts that the values of Slinky's chart slurm share with the specs of its custom resources."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.convert.container_parts import put_plug_stack, tell_of_proxies
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.gpu_parts import NETWORKS, put_devices, put_gres, put_locked_memory, put_networks
from soperator_pulumi.convert.pod_parts import (
    MountedVolume,
    Submounts,
    count_of,
    gib,
    place_pods,
    put_pods,
    put_priority,
    put_resources,
    quantity,
    whole_gib,
)
from soperator_pulumi.convert.required_values import (
    NEW_STATE,
    require_images,
    require_jail_image,
)
from soperator_pulumi.convert.service_parts import put_login_service, put_metrics
from soperator_pulumi.convert.slinky_rules import FILE, FILES
from soperator_pulumi.convert.slurm_counterparts import entries, put_layout, scheduled_cpus
from soperator_pulumi.convert.slurm_text import (
    Partition,
    place_partitions,
    put_parameter,
    read_options,
    read_parameters,
    slurm_value,
)
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.spec.login import object_name
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.quantity import MIB_PER_GIB

_CPUS = "CPUs of a node that Slurm schedules. The input has no limit: Slinky takes what the machine has"
_MEMORY = "memory of a node in GiB. The input has no limit: Slinky takes what the machine has"

_ORDINAL = re.compile(r"-([0-9]+)$")
"""End of a name that pods have, and so no pool."""

_LONGEST_POOL_NAME = 36
"""Characters, with room for a number up to the 40 of a pool's name."""


@dataclass(frozen=True)
class SlinkyNodeSet:
    """A node set of the input."""

    name: str
    origin: tuple[Leaf, ...]
    """Leaves of the name; none if the name is the key of a set that is not empty."""
    spec: Section
    """Place with `replicas`, `slurmd` and so on."""
    pod: Section
    """Spec of the pod."""
    metadata: Section
    """Labels and annotations of the pod."""


def put_name(work: Conversion, name: Section) -> None:
    """Write the cluster's name."""
    if name.text():
        work.put(work.stack, "name", name.text(), name)


def put_controller(work: Conversion, spec: Section, pod: Section) -> None:
    """Write the pod of slurmctld, the claim of its state, and its metrics."""
    metrics, monitor = spec.at("metrics", "enabled"), spec.at("metrics", "serviceMonitor")
    put_metrics(work, [metrics], [monitor.at("interval")], [monitor.at("enabled")])
    role = work.mapping("controller")
    put_pods(work, role, spec.at("slurmctld", "resources"), pod)
    persistence = spec.at("persistence")
    if persistence.at("enabled").plain() is False:
        work.cannot(persistence, "slurmctld's state is always on a claim: storage.state")
        return
    work.needless(persistence.at("enabled"), "slurmctld's state is always on a claim")
    state = work.mapping("storage", "state")
    size = persistence.at("resources", "requests", "storage")
    amount = whole_gib(size.plain())
    if persistence.at("existingClaim").text():
        work.needless(size, "the input names an existing claim")
        work.cannot(persistence.at("existingClaim"), NEW_STATE)
    elif amount is not None:
        work.put(state, "size_gib", amount, size, f"a new claim; {size.text()} in whole GiB")
    storage_class = persistence.at("storageClassName")
    if storage_class.text() not in {"", "-"}:
        work.put(state, "storage_class", storage_class.text(), storage_class)


def put_login(work: Conversion, role: dict[str, Any], spec: Section, pod: Section, submounts: Submounts) -> None:
    """Write login nodes of the stack, `login` or one of its pools, from a LoginSet."""
    put_pods(work, role, spec.at("login", "resources"), pod)
    if spec.at("replicas"):
        work.put(role, "replicas", count_of(spec.at("replicas")), spec.at("replicas"))
    put_login_service(work, role, spec.at("service"))
    pools = work.mapping("login").get("pools", {})
    pool = next((name for name, pods in pools.items() if pods is role), None)
    _put_volumes(spec.at("login"), pod, (SubmountRole.LOGIN, object_name(pool)), submounts)


def login_pool(work: Conversion, name: str) -> dict[str, Any]:
    """Return a new pool of the stack for a further LoginSet, whose pods will have names that begin with `login-`."""
    short, whole = (_pool_name(text) for text in (name.rpartition("login-")[2], name))
    names = itertools.chain((short, whole), (f"{whole}{number}" for number in itertools.count(2)))
    pools = work.mapping("login", "pools")
    return work.mapping(next(pool for pool in names if pool not in pools), of=pools)


def _pool_name(name: str) -> str:
    """Return the name of a LoginSet as that of a pool may be (`spec/login.py`)."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not words[:1].isalpha():
        words = f"pool{words}"
    return _ORDINAL.sub(r"\1", words[:_LONGEST_POOL_NAME].rstrip("-"))


def put_no_login(work: Conversion) -> None:
    """Set the number of login nodes to 0, as the input has none."""
    work.put(work.mapping("login"), "replicas", 0, (), "the input has no login nodes")


def put_node_set(work: Conversion, source: SlinkyNodeSet, submounts: Submounts) -> dict[str, Any]:
    """Write a node set, and return its item in the stack."""
    item: dict[str, Any] = {}
    spec, pod = source.spec, source.pod
    work.listed("node_sets").append(item)
    work.put(item, "name", source.name, source.origin)
    if spec.at("scalingMode").text() == "DaemonSet":
        work.cannot(spec.at("scalingMode"), "a node set here has a number of nodes, not one per machine")
        work.require(item, "replicas", "number of nodes. The input has one node per machine")
    elif spec.at("replicas"):
        work.put(item, "replicas", count_of(spec.at("replicas")), spec.at("replicas"))
    if spec.at("ordinalPadding").plain() == 0:
        work.needless(spec.at("ordinalPadding"), "names of nodes end in a plain number")
    resources = spec.at("slurmd", "resources")
    _put_size(work, item, resources)
    put_devices(work, item, resources.at("limits"), resources.at("requests"))
    put_networks(work, item, source.metadata.at("annotations", NETWORKS))
    put_locked_memory(work, item, spec.at("slurmd", "securityContext"))
    if pod.at("runtimeClassName").text():
        work.put(item, "runtime_class", pod.at("runtimeClassName").text(), pod.at("runtimeClassName"))
    _put_extra(work, item, spec)
    place_pods(work, item, pod)
    put_priority(work, item, pod)
    unavailable = spec.at("updateStrategy", "rollingUpdate", "maxUnavailable")
    if unavailable.text() and spec.at("updateStrategy", "type").text() in {"", "RollingUpdate"}:
        work.put(work.mapping("rolling_update", of=item), "max_unavailable", unavailable.plain(), unavailable)
    _put_volumes(spec.at("slurmd"), pod, (SubmountRole.WORKER, source.name), submounts)
    _put_jail_image(work, spec.at("slurmd", "image"))
    tell_of_proxies(work, spec.at("slurmd", "env"))
    return item


def own_partition(work: Conversion, name: str, place: Section) -> Partition | None:
    """Return the partition that Slinky creates for a node set; None if it creates none."""
    if not place.at("enabled").is_on():
        work.needless(place, "the node set has no partition of its own")
        return None
    leaves = tuple(place.at("enabled").leaves())
    partition = Partition(name, leaves, [(name, leaves)])
    partition.options = _options(work, place)
    return partition


def shared_partition(work: Conversion, name: str, place: Section) -> Partition:
    """Return a partition listed under `partitions` of the values."""
    partition = Partition(name, tuple(place.at("enabled").leaves()))
    partition.nodes = [(name.text(), tuple(name.leaves())) for name in place.at("nodesets").items()]
    partition.options = _options(work, place)
    return partition


def finish(
    work: Conversion, partitions: list[Partition], items: dict[str, dict[str, Any]], submounts: Submounts
) -> None:
    """Write partitions and pods of submounts, and placeholders for values that Slinky's input never has."""
    submounts.choose_pods(items)
    names = {name: work.listed("partitions", of=item) for name, item in items.items()}
    place_partitions(work, partitions, names)
    require_images(work)
    if "source" not in work.mapping("jail"):
        require_jail_image(work)
    if not items:
        work.require(work.stack, "node_sets", "the input has no enabled node set; give at least one")


def put_extra_conf(work: Conversion, place: Section) -> list[Partition]:
    """Write `extraConf` or `extraConfMap` of slurm.conf, and return the partitions defined in it."""
    if place.at("extraConf").text():
        work.needless(place.at("extraConfMap"), "extraConf is given, and that counts")
        return read_parameters(work, place.at("extraConf"))
    for key, value in place.at("extraConfMap").entries():
        if value.tree is not None and not _is_empty(value):
            put_parameter(work, key, slurm_value(value), value)
    return []


def put_files(work: Conversion, files: Section) -> None:
    """Write the files next to slurm.conf: `containers` for Pyxis in plugstack.conf. The others have no counterpart."""
    for name, text in files.entries():
        if name == "plugstack.conf":
            put_plug_stack(work, text)
        else:
            work.cannot(text, FILES.get(name, FILE))


def _options(work: Conversion, place: Section) -> list[tuple[str, object, tuple[Leaf, ...]]]:
    work.needless([leaf for leaf in place.leaves() if leaf.is_empty], "empty")
    if place.at("config").text():
        work.needless(place.at("configMap"), "config is given, and that counts")
        return read_options(work, place.at("config"))
    return read_options(work, place.at("configMap"))


def _put_size(work: Conversion, item: dict[str, Any], resources: Section) -> None:
    """Write the CPUs and memory that Slurm schedules, from the limits, and the pod's resources if they differ."""
    limits, requests = resources.at("limits"), resources.at("requests")
    cpus, memory = quantity(limits.at("cpu").plain()), gib(limits.at("memory").plain())
    if cpus is None:
        work.require(item, "cpus", _CPUS)
    else:
        whole = max(1, math.floor(cpus))
        work.put(item, "cpus", whole, limits.at("cpu"), "" if limits.at("cpu").text() == str(whole) else "whole CPUs")
    if memory is None:
        work.require(item, "memory_gib", _MEMORY)
    else:
        work.put(item, "memory_gib", memory, limits.at("memory"), f"{limits.at('memory').text()} in GiB")
    exact = cpus is not None and cpus == item["cpus"].value and memory is not None
    same = all(requests.at(name).plain() in {None, limits.at(name).plain()} for name in ("cpu", "memory"))
    if not (exact and same):
        put_resources(work, item, "requests", requests)
        put_resources(work, item, "limits", limits)
    else:
        work.needless([*requests.at("cpu").leaves(), *requests.at("memory").leaves()], "same as the limits")


def _put_extra(work: Conversion, item: dict[str, Any], spec: Section) -> None:
    """Write the settings given to `slurmd --conf`: features, GPUs, and sizes that no limit gives."""
    if spec.at("extraConf").text():
        work.needless(spec.at("extraConfMap"), "extraConf is given, and that counts")
        given = read_options(work, spec.at("extraConf"))
    else:
        conf = [(key, value) for key, value in spec.at("extraConfMap").entries() if not _is_empty(value)]
        given = [(key, slurm_value(value), tuple(value.leaves())) for key, value in conf]
    sizes = {key.lower(): (str(value), leaves) for key, value, leaves in given}
    if cpus := scheduled_cpus(sizes):
        _put_conf_size(work, item, "cpus", *cpus)
        put_layout(work, item, sizes)
    memory, leaves = sizes.get("realmemory", ("", ()))
    if memory.isdecimal():
        _put_conf_size(work, item, "memory_gib", int(memory) / MIB_PER_GIB, leaves)
    for key, value, leaves in given:
        _put_node_setting(work, item, key, str(value), leaves)


def _put_conf_size(work: Conversion, item: dict[str, Any], key: str, value: float, leaves: Sequence[Leaf]) -> None:
    """Write a size from a node's configuration, unless the pod has a limit."""
    if item[key].to_add:
        work.put(item, key, value, leaves, "size of the node in its configuration; the pod has no limit")
    elif item[key].value == value:
        work.extend(item[key], leaves)
    else:
        work.cannot(leaves, f"the limit of the pod counts: {key}")


def _put_node_setting(work: Conversion, item: dict[str, Any], key: str, value: str, leaves: tuple[Leaf, ...]) -> None:
    if key.lower() in {"features", "feature"}:
        for feature, own in entries(work, value, leaves):
            work.add(work.listed("features", of=item), feature, own)
    elif key.lower() == "gres":
        put_gres(work, item, value, leaves)
    elif key.lower() == "realmemory" and not value.isdecimal():
        work.cannot(leaves, f"got {value}, and RealMemory is a number of MiB; give node_sets[].memory_gib")
    else:
        work.cannot(
            leaves, "a node here has CPUs and their layout, memory, GPUs, and features, and no other configuration"
        )


def _put_volumes(container: Section, pod: Section, pods: tuple[SubmountRole, str], submounts: Submounts) -> None:
    volumes = {volume.at("name").text(): volume for volume in pod.at("volumes").items()}
    for mount in container.at("volumeMounts").items():
        source = volumes.get(mount.at("name").text())
        if source is None:
            submounts.work.cannot(mount, "the pod has no volume of this name")
            continue
        submounts.add(
            MountedVolume(
                path=mount.at("mountPath"),
                source=source,
                pods=pods,
                sub_path=mount.at("subPath"),
                read_only=mount.at("readOnly"),
                further=(*mount.at("name").leaves(), *source.at("name").leaves()),
            )
        )


def _put_jail_image(work: Conversion, image: Section) -> None:
    """Write the root filesystem of jobs: the image of the first node set."""
    reference, leaves = _image(image)
    if not reference:
        return
    source = work.mapping("jail", "source")
    how = "Slinky's jobs run in the image of slurmd; jobs and sessions here run in a copy of it, the jail"
    before = source.get("image")
    if before is None:
        work.put(source, "image", reference, leaves, how)
    elif before.value == reference:
        work.extend(before, leaves)
    else:
        work.cannot(leaves, "there is one jail for all node sets, from the image of the first one")


def _image(place: Section) -> tuple[str, list[Leaf]]:
    """Return an image's reference, and the leaves that it is composed of."""
    if isinstance(place.tree, Leaf):
        return place.text(), place.leaves()
    repository, tag, digest = place.at("repository"), place.at("tag"), place.at("digest")
    if not repository.text():
        return "", []
    if digest.text():
        return f"{repository.text()}@{digest.text()}", [*repository.leaves(), *digest.leaves()]
    return f"{repository.text()}:{tag.text()}", [*repository.leaves(), *tag.leaves()]


def _is_empty(place: Section) -> bool:
    return all(leaf.is_empty for leaf in place.leaves())
