"""Node sets of soperator: items of `nodesets` in the values of its chart, and the spec of a NodeSet."""

import math
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.convert.container_parts import tell_of_proxies
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.gpu_parts import WRITTEN_BY_PODS, put_devices, put_gpu_type, put_gres
from soperator_pulumi.convert.pod_parts import (
    MountedVolume,
    Submounts,
    count_of,
    gib,
    is_in_jail,
    place_pods,
    put_resources,
    quantity,
)
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.slurm_counterparts import COUNTS, put_layout, scheduled_cpus
from soperator_pulumi.convert.slurm_text import lines, settings
from soperator_pulumi.convert.user_pod_parts import metadata_rules, put_pairs
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.absolute_path import SHARED_MEMORY

NO_CLAIMS = "login nodes and workers have no claims of their own: a submount is a shared claim or scratch"


@dataclass(frozen=True)
class SourceNodeSet:
    """A node set of the input."""

    name: Section
    spec: Section
    """Place with `replicas`, `slurmd` and so on."""


def convert_node_set(work: Conversion, source: SourceNodeSet, submounts: Submounts) -> dict[str, Any]:
    """Write a node set, and return its item in the stack."""
    item: dict[str, Any] = {}
    spec = source.spec
    work.listed("node_sets").append(item)
    work.put(item, "name", source.name.text(), source.name)
    if spec.at("replicas"):
        work.put(item, "replicas", count_of(spec.at("replicas")), spec.at("replicas"))
    put_devices(work, item, spec.at("slurmd", "resources"))
    _put_size(work, item, spec)
    put_gpu_type(work, item, spec.at("nodeConfig", "gresConfig"))
    for feature in spec.at("nodeConfig", "features").items():
        work.add(work.listed("features", of=item), feature.text(), feature)
    if spec.at("priorityClass").text():
        work.put(item, "priority_class", spec.at("priorityClass").text(), spec.at("priorityClass"))
    if (unavailable := spec.at("maxUnavailable")) and unavailable.text():
        updates = work.mapping("rolling_update", of=item)
        work.put(updates, "max_unavailable", unavailable.plain(), unavailable)
    place_pods(work, item, spec)
    tell_of_proxies(work, spec.at("slurmd", "customEnv"))
    put_pairs(work, item, "annotations", spec.at("workerAnnotations"))
    if (profile := spec.at("slurmd", "security", "appArmorProfile")).text() == "unconfined":
        work.put(work.mapping("jail"), "app_armor", "unconfined", profile, "for all slurmd and sshd containers")
    _put_volumes(spec.at("slurmd", "volumes"), source.name.text(), submounts)
    return item


def _put_size(work: Conversion, item: dict[str, Any], spec: Section) -> None:
    """Write the CPUs and memory that Slurm schedules, and the pod's resources if they differ."""
    resources = spec.at("slurmd", "resources")
    pod_cpus, memory = resources.at("cpu"), resources.at("memory")
    sizes = _sizes(work, item, spec.at("nodeConfig", "static"))
    counted = scheduled_cpus(sizes)
    found = quantity(pod_cpus.plain())
    if counted is not None and counted[0] != found:
        product, parts = counted
        work.put(item, "cpus", product, parts, "CPUs that Slurm schedules, from nodeConfig.static")
    elif found is not None:
        whole = max(1, math.floor(found))
        how = "" if pod_cpus.text() == str(whole) else f"{pod_cpus.text()} in whole CPUs"
        work.put(item, "cpus", whole, [*pod_cpus.leaves(), *(counted[1] if counted else ())], how)
    else:
        work.require(item, "cpus", "CPUs of a node that Slurm schedules; the input has no slurmd.resources.cpu")
    put_layout(work, item, sizes)
    amount = gib(memory.plain())
    if amount is None:
        work.require(item, "memory_gib", "memory of a node in GiB; the input has no slurmd.resources.memory")
    else:
        work.put(item, "memory_gib", amount, memory, f"{memory.text()} in GiB")
    if found is not None and amount is not None and found != item["cpus"].value:
        put_resources(work, item, "requests", resources)
        put_resources(work, item, "limits", resources)


def _sizes(work: Conversion, item: dict[str, Any], static: Section) -> dict[str, tuple[str, tuple[Leaf, ...]]]:
    """Return the numbers of CPUs in a node's static configuration, with their parts, and report the other settings."""
    if not static or not isinstance(static.tree, Leaf):
        return {}
    pairs = [setting for line in lines(static.text()) for setting in settings(line)]
    parts = work.split(static.tree, [pair.key for pair in pairs])
    numbers: dict[str, tuple[str, tuple[Leaf, ...]]] = {}
    for pair, part in zip(pairs, parts, strict=True):
        if pair.key.lower() in COUNTS and pair.value.isdecimal():
            numbers[pair.key.lower()] = (pair.value, (part,))
        elif pair.key.lower() == "gres":
            put_gres(work, item, pair.value, [part])
        elif pair.key in {"Feature", "State", "RealMemory"}:
            work.cannot([part], "written by soperator itself, from other fields")
        else:
            work.cannot(
                [part], "a node here has CPUs and their layout, memory, GPUs, and features, and no other configuration"
            )
    return numbers


def _put_volumes(volumes: Section, name: str, submounts: Submounts) -> None:
    inside = [mount for mount in volumes.at("customVolumeMounts").items() if is_in_jail(mount.at("mountPath"))]
    for mount in (*volumes.at("jailSubMounts").items(), *inside):
        if mount.at("volumeClaimTemplateSpec").tree is not None:
            submounts.work.cannot(mount, NO_CLAIMS)
            continue
        submounts.add(
            MountedVolume(
                path=mount.at("mountPath"),
                source=mount.at("volumeSource"),
                pods=(SubmountRole.WORKER, name),
                sub_path=mount.at("subPath"),
                read_only=mount.at("readOnly"),
                further=tuple(mount.at("name").leaves()),
            )
        )
    size = volumes.at("sharedMemorySize")
    if size and not size.leaves()[0].is_default:
        leaf = size.leaves()[0]
        submounts.add(
            MountedVolume(
                path=Section(Leaf(leaf.path, leaf.keys, SHARED_MEMORY, leaf.line)),
                source=Section({"emptyDir": {"sizeLimit": leaf}}),
                pods=(SubmountRole.WORKER, name),
                sub_path=Section(None),
                read_only=Section(None),
            )
        )


_DIRECTORIES = "users come from `users`; directories such as LDAP are not supported yet"

NODE_SET_RULES: tuple[Rule, ...] = (
    *empty("nodeConfig.features", "priorityClass", "nodeSelector", "affinity", "tolerations"),
    *empty("slurmd.volumes.jailSubMounts", "imagePullSecrets", "*.image.imagePullSecrets", "*.image.pullPolicy"),
    *needless("gpus.count sets the GPUs", "gpu.enabled"),
    *cannot(
        "gdrdrv is a device: declare its resource in extra_resources", "gpu.**", switch="gpu.nvidia.gdrCopyEnabled"
    ),
    *needless(WRITTEN_BY_PODS, "nodeConfig.gresConfig.**"),
    *cannot("Docker in jobs is not supported", "docker.**", switch="docker.enabled"),
    *cannot("nodes that Slurm starts and stops are not supported yet", "ephemeralNodes", switch="ephemeralNodes"),
    *cannot(
        "nodes that Slurm starts and stops are not supported yet",
        "initialNumberEphemeralNodes",
        "ephemeralTopologyWaitTimeout",
        switch="ephemeralNodes",
    ),
    *cannot("Slurm's topology is not supported yet", "topology.**"),
    *cannot("nodes here register without additional settings", "nodeConfig.dynamic"),
    *cannot(
        "a node here has CPUs and their layout, memory, GPUs, and features, and no other configuration",
        "nodeConfig.static",
    ),
    *cannot(WHY, "*.image.**"),
    *cannot(
        "daemons take no environment from the spec; variables of jobs are node_sets[].environment",
        "slurmd.customEnv.**",
    ),
    *cannot(
        "the volume is mounted outside the jail, where no job sees it; jail.submounts mounts into the jail",
        "slurmd.volumes.customVolumeMounts.**",
    ),
    *needless("slurmd's spool is a directory of the pod", "slurmd.volumes.spool.emptyDir.**"),
    *cannot(
        "workers have no claims: slurmd's spool is a directory of the pod, and scratch_gib at /var/spool/slurmd gives "
        "it a size",
        "slurmd.volumes.spool.**",
        "slurmd.volumes.persistentVolumeClaimRetentionPolicy.**",
    ),
    *needless("the jail is one volume of the cluster: jail.storage", "slurmd.volumes.jail.**"),
    *needless("it is soperator's default; /dev/shm here is half of a pod's memory", "slurmd.volumes.sharedMemorySize"),
    *cannot("limits of users' processes are max_processes and lock_memory", "*.security.limitsConfig"),
    *cannot("slurmd and sshd run unconfined or under the runtime's profile", "slurmd.security.**"),
    *needless("the container has the runtime's profile", "munge.security.**"),
    *needless("the munged of a daemon has its own small resources", "munge.resources.**"),
    *needless("probes and ports are fixed", "*.livenessProbe.**", "*.readinessProbe.**", "slurmd.port"),
    *cannot(_DIRECTORIES, "sssd.**", switch="sssd.enabled"),
    *cannot(_DIRECTORIES, "sssdConfSecretRefName", "sssdLdapCAConfigMapRefName"),
    *needless("it belongs to sssd", "sssdDebugLevel"),
    *cannot("daemons have their own configuration here", "configMapRefSupervisord", "configMapRefSshd"),
    *needless("pods here share the user namespace of the machine", "enableHostUserNamespace"),
    *cannot("workers start at once", "workerInitRandomDelaySeconds"),
    *needless("a node is always drained before its pod is recreated", "updateStrategy"),
    *needless("nodes are never suspended", "nodeConfig.autoResume"),
    *metadata_rules("workerAnnotations"),
    *needless("node sets are part of their cluster", "annotations.slurm*parental-cluster-ref"),
    *cannot("annotations are set for all objects together (annotations)", "annotations.**"),
    *cannot("labels are set for all objects together (labels)", "labels.**"),
    *cannot("pods here take no additional containers", "customInitContainers.**"),
    *cannot("metrics are not supported yet", "nodeExporter.**", switch="nodeExporter.enabled"),
    *needless("node sets are part of their cluster", "clusterName"),
)
"""Accounts of values that `convert_node_set` does not convert."""
