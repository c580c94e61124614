"""Texts in the syntax of slurm.conf: parameters, partitions, and the parts that the spec accepts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from soperator_pulumi.convert.conversion import TO_ADD, Conversion, Placed
from soperator_pulumi.convert.slurm_counterparts import counterpart_of, entries, follows
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.spec.slurm_parameters import (
    FORBIDDEN_ENTRIES,
    OWNED_PARAMETERS,
    OWNED_PARTITION_OPTIONS,
    PARAMETERS,
    PARTITION_OPTIONS,
    Kind,
)
from soperator_pulumi.spec.slurm_settings import settings_problems

ALL = "ALL"
"""Slurm's word for all nodes."""

_DEFAULT = "DEFAULT"
"""Slurm's word for a line with options of all partitions after it."""

_WHOLE_LINES = ("downnodes", "frontendname", "include", "nodename", "nodeset")
"""Beginnings of lines whose settings are not parameters."""

_ANY = "main"
"""Partition of node sets that are in no partition."""

_PAIR = re.compile(r'([A-Za-z]\w*)\s*=\s*("[^"]*"|\S*)|(\S+)')


@dataclass(frozen=True)
class Setting:
    """A `Key=Value` pair of a text. A word without `=` has the key "text"."""

    key: str
    value: str


@dataclass
class Partition:
    """A partition of the input."""

    name: str
    origins: tuple[Leaf, ...]
    """Leaves of the name."""
    nodes: list[tuple[str, tuple[Leaf, ...]]] = field(default_factory=list)
    """Names of node sets, or `ALL`, with their leaves."""
    options: list[tuple[str, object, tuple[Leaf, ...]]] = field(default_factory=list)
    """Options on the partition's line, with their leaves."""


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a Slurm configuration file as Slurm's parse_config.c reads them.

    A comment ends with its line. A line goes on if an odd number of backslashes ends it, with blanks after them or not.
    """
    begun = ""
    for line in [*text.splitlines(), ""]:
        piece = re.sub(r"(?<!\\)#.*", "", line)
        ending = re.search(r"\\+(?=\s*$)", piece)
        if ending and len(ending[0]) % 2:
            begun += piece[: ending.end() - 1]
            continue
        if whole := (begun + piece).strip():
            yield whole
        begun = ""


def settings(line: str) -> list[Setting]:
    """Return the `Key=Value` pairs of a line."""
    found = []
    for key, value, word in _PAIR.findall(line):
        found.append(Setting("text", word) if word else Setting(key, value.strip('"')))
    return found


def put_parameter(work: Conversion, key: str, value: object, origin: Section | tuple[Leaf, ...]) -> None:
    """Write a parameter of slurm.conf into its place in the spec or `slurm.extra`, or note the reason against it."""
    leaves = tuple(origin.leaves() if isinstance(origin, Section) else origin)
    if put := counterpart_of(key):
        put(work, value, leaves)
        return
    if why := follows(key, value):
        work.needless(leaves, why)
        return
    value, leaves = _without_forbidden(work, key, value, leaves)
    if not leaves:
        return
    name, reason = _checked(key, value, PARAMETERS, OWNED_PARAMETERS)
    if reason:
        work.cannot(leaves, reason)
    else:
        work.put(work.mapping("slurm", "extra"), name, value, leaves)


def read_parameters(work: Conversion, place: Section) -> list[Partition]:
    """Write the parameters of a text into `slurm.extra`, and return the partitions defined in it."""
    partitions = []
    for leaf in place.leaves():
        if not isinstance(leaf.value, str):
            continue
        found = [settings(line) for line in lines(leaf.value)]
        parts = iter(work.split(leaf, [_shown(line[0], setting) for line in found for setting in line]))
        for line in found:
            own = [(setting, next(parts)) for setting in line]
            first = line[0].value if line[0].key == "text" else line[0].key
            if first.lower() == "partitionname":
                partitions.append(_partition(work, own))
            elif first.lower() in _WHOLE_LINES:
                work.cannot([part for _, part in own], f"{first} {OWNED_PARAMETERS[first.lower()]}")
            else:
                for setting, part in own:
                    if setting.key == "text":
                        work.cannot([part], "not a Slurm setting: it has no '='")
                    else:
                        put_parameter(work, setting.key, setting.value, (part,))
    return with_defaults(work, partitions)


def read_options(work: Conversion, place: Section) -> list[tuple[str, object, tuple[Leaf, ...]]]:
    """Return settings that are given as text or as a mapping."""
    if entries := place.entries():
        return [(key, slurm_value(entry), tuple(entry.leaves())) for key, entry in entries]
    options: list[tuple[str, object, tuple[Leaf, ...]]] = []
    for leaf in place.leaves():
        found = [setting for line in lines(str(leaf.value)) for setting in settings(line)] if leaf.value else []
        for setting, part in zip(found, work.split(leaf, [setting.key for setting in found]), strict=True):
            if setting.key == "text":
                work.cannot([part], "not a Slurm setting: it has no '='")
            else:
                options.append((setting.key, setting.value, (part,)))
    return options


def read_partition_line(work: Conversion, leaf: Leaf) -> Partition | None:
    """Return the partition of a text `PartitionName=...`; None for any other text."""
    found = [setting for line in lines(str(leaf.value)) for setting in settings(line)]
    if not found or found[0].key.lower() != "partitionname":
        work.cannot([leaf], 'not a line "PartitionName=..."')
        return None
    parts = work.split(leaf, [setting.key for setting in found])
    return _partition(work, list(zip(found, parts, strict=True)))


def with_defaults(work: Conversion, partitions: list[Partition]) -> list[Partition]:
    """Return partitions with the options that lines `PartitionName=DEFAULT` before them give (slurm.conf(5))."""
    found: list[Partition] = []
    common = Partition("", ())
    for partition in partitions:
        own = {key.lower() for key, _, _ in partition.options}
        inherited = [option for option in common.options if option[0].lower() not in own]
        whole = replace(partition, nodes=partition.nodes or common.nodes, options=[*partition.options, *inherited])
        if partition.name.upper() == _DEFAULT:
            common = whole
            work.needless(partition.origins, "the partitions after it have its options")
        else:
            found.append(whole)
    used = {leaf for partition in found for _, _, leaves in partition.options for leaf in leaves}
    used |= {leaf for partition in found for _, leaves in partition.nodes for leaf in leaves}
    for partition in partitions:
        given = [leaves for _, _, leaves in partition.options] + [leaves for _, leaves in partition.nodes]
        unused = [leaf for leaves in given for leaf in leaves if leaf not in used]
        work.needless(unused, "no partition after it takes this default")
    return found


def place_partitions(work: Conversion, partitions: list[Partition], node_sets: Mapping[str, list[object]]) -> None:
    """Write partitions, and add their names to the node sets.

    Args:
        work: The conversion.
        partitions: The partitions, in Slurm's order.
        node_sets: The `partitions` lists of the stack's node sets, by the name that partitions use.
    """
    for partition in partitions:
        members = _members(work, partition, node_sets)
        if not members:
            unused = [*partition.origins, *(leaf for _, _, leaves in partition.options for leaf in leaves)]
            work.cannot(unused, f"the partition {partition.name} has no node set: a partition here has at least one")
            continue
        for name, leaves in members.items():
            work.add(node_sets[name], partition.name, (*partition.origins, *leaves))
        _place(work, partition)
    _choose_default(work)


def _choose_default(work: Conversion) -> None:
    """Keep one default partition, the last one, as Slurm does. Report a default that only the stack has."""
    items = work.stack.get("partitions", [])
    defaults = [item for item in items if "default" in item and item["default"].value]
    for item in defaults[:-1]:
        work.withdraw(item.pop("default"), f"Slurm takes the last default partition, {_name(defaults[-1])}")
    first = next((item for item in items if "default" not in item), None)
    if not defaults and first is not None:
        work.remarks.append(
            "No partition of the input is the default, so Slurm refuses jobs that name none. Here, "
            f"{_name(first)} is the default; to have none, set `default: false` in all partitions."
        )


def _name(item: Mapping[str, Placed]) -> object:
    return item["name"].value


def give_every_node_set_a_partition(work: Conversion) -> None:
    """Give every node set that is in no partition its own: jobs reach nodes only through partitions."""
    node_sets = work.stack.get("node_sets")
    for item in node_sets if isinstance(node_sets, list) else []:
        if not item.get("partitions"):
            name = item["name"].value
            own = _ANY if name == TO_ADD else name
            item["partitions"] = [work.value(own, (), "in no partition there; nodes here are in at least one")]


def _place(work: Conversion, partition: Partition) -> None:
    item: dict[str, object] = {}
    work.listed("partitions").append(item)
    work.put(item, "name", partition.name, partition.origins)
    for key, value, leaves in partition.options:
        name, reason = _checked(key, value, PARTITION_OPTIONS, OWNED_PARTITION_OPTIONS)
        if key.lower() == "default":
            work.put(item, "default", str(value).lower() in {"yes", "true", "1", "up"}, leaves)
        elif reason:
            work.cannot(leaves, reason)
        else:
            work.put(work.mapping("options", of=item), name, value, leaves)


def _members(
    work: Conversion, partition: Partition, node_sets: Mapping[str, list[object]]
) -> dict[str, tuple[Leaf, ...]]:
    """Return the node sets in a partition, with the leaves that name them."""
    found: dict[str, tuple[Leaf, ...]] = {}
    for name, leaves in partition.nodes:
        if name.upper() == ALL:
            found.update({name: (*found.get(name, ()), *leaves) for name in node_sets})
        elif name in node_sets:
            found[name] = (*found.get(name, ()), *leaves)
        else:
            work.cannot(leaves, f'the input has no node set "{name}"; partitions here contain whole node sets only')
    return found


def _partition(work: Conversion, found: list[tuple[Setting, Leaf]]) -> Partition:
    partition = Partition(found[0][0].value, (found[0][1],))
    for setting, part in found[1:]:
        if setting.key.lower() == "nodes":
            names = [name for name in re.split(r",(?![^\[]*\])", setting.value) if name]
            partition.nodes += [(name, (part,)) for name in names]
            if not names:
                work.needless([part], "empty")
        elif setting.key == "text":
            work.cannot([part], "not a Slurm setting: it has no '='")
        else:
            partition.options.append((setting.key, setting.value, (part,)))
    return partition


def _without_forbidden(
    work: Conversion, key: str, value: object, leaves: tuple[Leaf, ...]
) -> tuple[object, tuple[Leaf, ...]]:
    """Return a list without the entries that it may not have, and the leaves of the others."""
    forbidden = FORBIDDEN_ENTRIES.get(key.lower(), {})
    words = [word.strip().partition("=")[0].lower() for word in str(value).split(",")]
    if not forbidden.keys() & {*words}:
        return value, leaves
    kept = []
    for word, own in entries(work, value, leaves):
        if reason := forbidden.get(word.partition("=")[0].lower()):
            work.cannot(own, f"{key} has the entry {word}, which {reason}")
        else:
            kept.append((word, own))
    return ",".join(word for word, _ in kept), tuple(leaf for _, own in kept for leaf in own)


def _shown(first: Setting, setting: Setting) -> str:
    """Return the name of a setting in the report, with the partition if it belongs to one."""
    if first.key.lower() == "partitionname" and setting is not first:
        return f"{first.key}={first.value} {setting.key}"
    return setting.key


def _checked(key: str, value: object, table: Mapping[str, Kind], owned: Mapping[str, str]) -> tuple[str, str]:
    """Return Slurm's spelling of a key, and the reason against the setting; empty if there is none."""
    found = settings_problems({key: value}, table, owned)
    spelling = next((name for name in table if name.lower() == key.lower()), key)
    if not found:
        return spelling, ""
    text = found[0].text.removesuffix(" Remove it.")
    return spelling, f"{key}: {text}" if text[0].isupper() else f"{key} {text}"


def slurm_value(place: Section) -> object:
    """Return a value; a list in the form that Slurm writes."""
    value = place.plain()
    return ",".join(map(str, value)) if isinstance(value, list) else value
