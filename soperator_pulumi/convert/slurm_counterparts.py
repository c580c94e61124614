"""Settings of slurm.conf that are keys of the spec, or follow from others."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any

from soperator_pulumi.convert.conversion import Conversion, Placed
from soperator_pulumi.convert.yaml_tree import Leaf
from soperator_pulumi.spec.accounting import Enforce, StoredPart
from soperator_pulumi.spec.node_set import CpuLayout

_FACTORS = ("boards", "socketsperboard", "sockets", "corespersocket", "threadspercore")
"""Factors of a node's number of CPUs."""

COUNTS = ("cpus", *_FACTORS)
"""Settings of a node that give its number of CPUs, in lower case."""

_CONSTRAINED = "it is the same here, as slurm.constrain is cgroup"

_ALWAYS = {
    "accountingstoragetres": (
        r"billing|cpu|energy|fs/disk|gres/(gpu|shard)(:[\w.-]+)?|mem|node|pages|vmem",
        "Slurm always records these and the types of GPUs",
    ),
    "grestypes": (r"gpu|shard", "it follows from node_sets[].gpus"),
    "jobacctgathertype": (r"jobacct_gather/cgroup", _CONSTRAINED),
    "proctracktype": (r"proctrack/cgroup", _CONSTRAINED),
    "suspendtime": (r"-1|infinite", "no node here is powered down"),
    "selecttype": (r"select/cons_tres", "it is the same here"),
    "taskplugin": (r"task/(affinity|cgroup)", "slurm.constrain is cgroup, which has task/cgroup and task/affinity"),
}
"""Entries that a cluster here has anyway, by parameter in lower case, with the reason."""

_ALL_RULES = (Enforce.ASSOCIATIONS, Enforce.LIMITS, Enforce.QOS, Enforce.SAFE, Enforce.WCKEYS)
"""Rules of `AccountingStorageEnforce=all` (slurm.conf(5))."""


def entries(work: Conversion, value: object, leaves: Sequence[Leaf]) -> list[tuple[str, tuple[Leaf, ...]]]:
    """Return the entries of a list in Slurm's form, `a,b`, every one with its own leaves."""
    words = [word.strip() for word in str(value).split(",")]
    if len(leaves) == 1 and len(words) > 1:
        leaves = work.split(leaves[0], words)
    own = [(leaf,) for leaf in leaves] if len(leaves) == len(words) else [tuple(leaves)] * len(words)
    return [(word, part) for word, part in zip(words, own, strict=True) if word]


def scheduled_cpus(given: Mapping[str, tuple[str, tuple[Leaf, ...]]]) -> tuple[int, list[Leaf]] | None:
    """Return the CPUs that a node's settings give, with their leaves; None if they give none.

    Args:
        given: Values with their leaves, by the settings in lower case.
    """
    numbers = _numbers(given)
    if not numbers:
        return None
    leaves = [leaf for key in numbers for leaf in given[key][1]]
    return numbers.get("cpus", math.prod(numbers[key] for key in _FACTORS if key in numbers)), leaves


def put_layout(work: Conversion, item: dict[str, Any], given: Mapping[str, tuple[str, tuple[Leaf, ...]]]) -> None:
    """Write the layout of a node's CPUs, if its settings give one of as many CPUs as Slurm schedules.

    A missing factor is 1, and missing sockets are those that the CPUs fill. A node whose CPUs are its cores gives jobs
    one thread of a core (slurm.conf(5), `CPUs`).

    Args:
        work: The conversion.
        item: The node set, with its `cpus`.
        given: Values with their leaves, by the settings in lower case.
    """
    numbers, cpus = _numbers(given), item["cpus"].value
    factors = [key for key in _FACTORS if key in numbers]
    if not {*factors} - {"boards"} or item["cpus"].to_add:
        return
    cores, threads = (numbers.get(key, 1) for key in ("corespersocket", "threadspercore"))
    if "sockets" in numbers or "socketsperboard" in numbers or "cpus" not in numbers:
        per_board = numbers.get("socketsperboard", numbers.get("sockets", 1))
        sockets = numbers.get("boards", 1) * per_board
    else:
        sockets = cpus // max(1, cores * threads)
    for layout in (CpuLayout(sockets, cores, threads), CpuLayout(sockets, cores, 1)):
        if math.prod(layout) == cpus:
            leaves = [leaf for key in factors for leaf in given[key][1]]
            for key, value in layout._asdict().items():
                how = (
                    "the machine's sockets, cores, and threads, in the node's configuration" if key == "sockets" else ""
                )
                work.put(item, key, value, leaves, how)
            return


def _numbers(given: Mapping[str, tuple[str, tuple[Leaf, ...]]]) -> dict[str, int]:
    return {key: int(value) for key, (value, _) in given.items() if key in COUNTS and value.isdecimal()}


def counterpart_of(key: str) -> "_Writer | None":
    """Return the function that writes a parameter into its place in the spec; None for all others."""
    return _COUNTERPARTS.get(key.lower())


def follows(key: str, value: object) -> str:
    """Return the reason why a cluster here has a parameter's value anyway; empty if it does not."""
    pattern, reason = _ALWAYS.get(key.lower(), ("", ""))
    return reason if all(re.fullmatch(pattern, word.strip().lower()) for word in str(value).split(",")) else ""


def _put_words(
    work: Conversion,
    value: object,
    leaves: Sequence[Leaf],
    *,
    key: str,
    allowed: type[StrEnum],
    groups: Mapping[str, tuple[StrEnum, ...]] = MappingProxyType({}),
) -> None:
    for word, own in entries(work, value, leaves):
        known = groups.get(word.lower(), (allowed(word.lower()),) if word.lower() in {*allowed} else ())
        if isinstance(work.stack.get("accounting"), Placed):
            work.needless(own, "accounting is off")
            continue
        for rule in known:
            work.add(work.listed("accounting", key), str(rule), own)
        work.cannot(own, f"accounting.{key} takes {', '.join(allowed)}")


def _put_max_nodes(work: Conversion, value: object, leaves: Sequence[Leaf]) -> None:
    number: Any = int(str(value)) if str(value).isdecimal() else value
    work.put(work.mapping("slurm"), "max_nodes", number, leaves)


_Writer = Callable[[Conversion, object, Sequence[Leaf]], None]

_COUNTERPARTS: dict[str, _Writer] = {
    "accountingstorageenforce": partial(_put_words, key="enforce", allowed=Enforce, groups={"all": _ALL_RULES}),
    "accountingstoreflags": partial(_put_words, key="store", allowed=StoredPart),
    "maxnodecount": _put_max_nodes,
}
