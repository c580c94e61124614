"""Sizes of nodes that a preflight writes into a file, in place of `all` and `all but 2`.

Only these words change: comments, order, and spelling of the file stay.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.admitting_machines import MACHINES
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis
from soperator_pulumi.operations.preflight.machine_fit import DAEMON_SETS, Room, least_room
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPlatform
from soperator_pulumi.spec.node_set import LEAST_GIB, MOST_CPUS, MOST_GIB, CpuLayout
from soperator_pulumi.spec.types.machine_size import kept_back
from soperator_pulumi.stack.preflight_plan import plans_of_file
from soperator_pulumi.stack.stack_config import DEFAULTS, ONE, SEVERAL
from soperator_pulumi.stack.stack_file import full_key, read_stack_file
from soperator_pulumi.whole_files import write_whole
from soperator_pulumi.yaml_reader import read_nodes

_CPUS, _MEMORY, _NODE_SETS, _MERGE = "cpus", "memory_gib", "node_sets", "<<"
_PROVISIONAL = {_CPUS: MOST_CPUS, _MEMORY: MOST_GIB}
"""Sizes with which the clusters are planned: the largest ones, which reserved cores and volumes in memory fit."""

_Pairs = Mapping[str, yaml.Node]


@dataclass(frozen=True)
class _Placeholder:
    """A placeholder of one cluster. Several clusters may share the place in the file."""

    cluster: str
    """Name of the cluster's description, such as `soperator:cluster`."""
    node_set: int
    field: str
    kept: float
    """CPUs or GiB that are left to others on the machine."""
    node: yaml.ScalarNode

    @property
    def place(self) -> str:
        return f"{self.cluster}.{_NODE_SETS}[{self.node_set}].{self.field}"

    @property
    def span(self) -> tuple[int, int]:
        """Start and end in the text, with quotes and without an anchor."""
        end = self.node.end_mark.index
        return end - len(self.node.value) - (2 if self.node.style else 0), end


@dataclass(frozen=True)
class _Size:
    """Number that takes the place of a placeholder."""

    value: int | float
    source: str
    """Machines that decide it, in words."""


def write_sizes(
    file: Path,
    stack_outputs: Mapping[str, Mapping[str, str]],
    access: Access,
    kube_of: Callable[[Access], Kube],
    report: Callable[[str], None],
) -> None:
    """Write the sizes for which the machines have room into a file, in place of placeholders.

    Args:
        file: A description of a cluster, or the file of a stack.
        stack_outputs: Outputs of other stacks, by stack and name, which the file may name.
        access: Kubernetes in place of the one that the file names.
        kube_of: Returns the client of a Kubernetes.
        report: Function that shows what is written.

    Raises:
        SpecError: The file has problems or cannot be written, or a placeholder has no number. The file is unchanged.
        KubernetesError: Machines or DaemonSets cannot be read. The file is unchanged.
    """
    stack = read_stack_file(file, stack_outputs, access)
    with file.open(encoding="utf-8", newline="") as opened:
        text = opened.read()
    found = [*_placeholders(file, text, None if stack is None else stack.project)]
    if not found:
        report(f"{file}: has no size to write: no node set has `cpus: all` or `memory_gib: all but 8`")
        return
    plans = plans_of_file(file, stack_outputs, access, _provisional if stack is None else _provisional_config)
    sizes: dict[tuple[int, int], _Size] = {}
    problems: list[Problem] = []
    for one, room in _rooms(found, plans, kube_of):
        size = _size(one, room)
        if isinstance(size, Problem):
            problems.append(size)
        elif one.span not in sizes or size.value < sizes[one.span].value:
            sizes[one.span] = size
    if problems:
        raise SpecError(str(file), problems)
    for (start, end), size in sorted(sizes.items(), reverse=True):
        text = f"{text[:start]}{size.value:g}{text[end:]}"
    _write(file, text)
    for one in found:
        size = sizes[one.span]
        report(f"{one.place}: writes {size.value:g}, {size.source}")


def _rooms(
    found: Sequence[_Placeholder],
    plans: Sequence[tuple[PlannedCluster | PlannedPlatform, Access]],
    kube_of: Callable[[Access], Kube],
) -> Iterator[tuple[_Placeholder, Room | Diagnosis]]:
    """Yield the placeholders with the room for their node sets. Every Kubernetes is read once."""
    clusters = {planned.key: (planned, access) for planned, access in plans if isinstance(planned, PlannedCluster)}
    read: dict[Access, tuple[list[Json], list[Json]]] = {}
    for (cluster, node_set), placeholders in groupby(found, lambda one: (one.cluster, one.node_set)):
        planned, access = clusters[cluster]
        if access not in read:
            kube = kube_of(access)
            read[access] = kube.find(MACHINES), kube.find(DAEMON_SETS)
        room = least_room(planned.workers[node_set], *read[access])
        yield from ((one, room) for one in placeholders)


def _size(one: _Placeholder, room: Room | Diagnosis) -> _Size | Problem:
    """Return the number for a placeholder: whole CPUs, and whole GiB from 1 on."""
    if isinstance(room, Diagnosis):
        return Problem(one.place, room.found, room.needed, room.cure)
    has, decides = (room.cpus, room.fewest_cpus) if one.field == _CPUS else (room.gib, room.least_memory)
    what = "CPUs" if one.field == _CPUS else "GiB"
    source = f"of the {has:g} {what} that {decides} has for a pod, the smallest of {room.machines} machines"
    value = has - one.kept
    value = math.floor(value) if value >= 1 or one.field == _CPUS else value
    if value < (1 if one.field == _CPUS else LEAST_GIB):
        cure = "Keep less back, or choose other machines by node_selector."
        return Problem(one.place, f"nothing would be left {source}", "", cure)
    return _Size(value, source)


def _write(file: Path, text: str) -> None:
    """Replace a file's text as a whole or not at all: the file may hold the only copy of a stack's encrypted values."""
    try:
        write_whole(file.resolve(), text)
    except OSError as error:
        raise SpecError(str(file), [Problem("", f"{error.strerror}. Name a file that can be written.")]) from None


def _provisional_config(config: dict[str, Any]) -> dict[str, Any]:
    several = config.get(SEVERAL)
    changed = {key: _provisional(config[key]) for key in (ONE, DEFAULTS) if key in config}
    if isinstance(several, Mapping):
        changed[SEVERAL] = {name: _provisional(described) for name, described in several.items()}
    return {**config, **changed}


def _provisional(described: Any) -> Any:  # noqa: ANN401 - YAML
    """Return a description with numbers in place of placeholders."""
    if not isinstance(described, Mapping) or not isinstance(described.get(_NODE_SETS), list):
        return described
    node_sets = [
        {**item, **{key: number for key, number in _PROVISIONAL.items() if kept_back(item.get(key)) is not None}}
        if isinstance(item, Mapping)
        else item
        for item in described[_NODE_SETS]
    ]
    return {**described, _NODE_SETS: node_sets}


def _placeholders(file: Path, text: str, project: str | None) -> Iterator[_Placeholder]:
    """Yield the placeholders of a file.

    Raises:
        SpecError: A placeholder has no number, or its place in the file is unclear.
    """
    problems: list[Problem] = []
    for cluster, described, defaults in _descriptions(file, _pairs(read_nodes(text)), project):
        node_sets = described.get(_NODE_SETS, defaults.get(_NODE_SETS))
        for index, item in enumerate(node_sets.value if isinstance(node_sets, yaml.SequenceNode) else ()):
            pairs = _pairs(item)
            for field in _PROVISIONAL:
                node = pairs.get(field)
                if not isinstance(node, yaml.ScalarNode) or (kept := kept_back(node.value)) is None:
                    continue
                one = _Placeholder(cluster, index, field, kept, node)
                problems += _without_number(one, pairs)
                has_tag = "!" in text[node.start_mark.index : one.span[0]]
                if has_tag or text[slice(*one.span)].strip("\"'") != node.value:
                    plainly = "Write it on the line of its key, without a block, a tag, or an escape."
                    problems.append(Problem(one.place, f'got "{node.value}" in another form. {plainly}'))
                yield one
    if problems:
        raise SpecError(str(file), problems)


def _without_number(one: _Placeholder, node_set: _Pairs) -> Iterator[Problem]:
    given = f'got "{one.node.value}", but'
    if "pod_resources" in node_set:
        yield Problem(
            one.place, f"{given} pod_resources is the size of the pod. Give a number, or remove pod_resources."
        )
    elif one.field == _CPUS and any(name in node_set for name in CpuLayout._fields):
        text = "it is the product of the layout. Give the number, and leave CPUs to daemons by pod_resources."
        yield Problem(one.place, f"{given} {text}")
    if one.field == _CPUS and one.kept % 1:
        yield Problem(one.place, f"{given} CPUs are whole numbers. Round it.")


def _descriptions(file: Path, content: _Pairs, project: str | None) -> Iterator[tuple[str, _Pairs, _Pairs]]:
    """Yield the clusters of a file: name of the description, its keys, and those of the defaults."""
    if project is None:
        yield str(file), content, {}
        return
    config = {full_key(project, key): node for key, node in _pairs(content.get("config")).items()}
    defaults = _pairs(config.get(DEFAULTS))
    if ONE in config:
        yield ONE, _pairs(config[ONE]), defaults
    for name, node in _pairs(config.get(SEVERAL)).items():
        yield f"{SEVERAL}.{name}", _pairs(node), defaults


def _pairs(node: yaml.Node | None, within: tuple[yaml.Node, ...] = ()) -> dict[str, yaml.Node]:
    """Return the keys of a mapping with their nodes, also those of merged mappings (`<<`) that it is not `within`."""
    if not isinstance(node, yaml.MappingNode) or node in within:
        return {}
    others = [
        other
        for key, value in node.value
        if key.value == _MERGE
        for other in (value.value if isinstance(value, yaml.SequenceNode) else [value])
    ]
    merged = [pair for other in reversed(others) for pair in _pairs(other, (*within, node)).items()]
    return {**dict(merged), **{str(key.value): value for key, value in node.value if key.value != _MERGE}}
