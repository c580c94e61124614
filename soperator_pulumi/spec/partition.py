"""Partitions: the queues that jobs are submitted to."""

from collections.abc import Iterator

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.slurm_settings import PartitionOptions
from soperator_pulumi.spec.types.names import SlurmName
from soperator_pulumi.spec.validation.base import Model
from soperator_pulumi.spec.validation.partial import known


class PartitionSpec(Model):
    """A queue with the nodes of all node sets that name it."""

    name: SlurmName
    """Name of the partition, for `--partition`."""
    default: StrictBool | None = None
    """Use it for jobs that name no partition; false: never. Default: use the first partition without this key, if none
    has true. Without a default partition, Slurm refuses jobs that name none."""
    options: PartitionOptions = Field(default_factory=dict)
    """Further options of slurm.conf's partition line, such as `MaxTime: 2-00:00:00`, checked against Slurm's
    options."""


def all_partitions(
    declared: tuple[PartitionSpec, ...], node_sets: tuple[NodeSetSpec, ...]
) -> tuple[PartitionSpec, ...]:
    """Return the partitions in Slurm's order: the declared ones, then those that only node sets name.

    The default is the one declared as such, or else the first that is not declared otherwise.
    """
    named = dict.fromkeys(name for node_set in node_sets for name in node_set.partitions)
    missing = named.keys() - {partition.name for partition in declared}
    every = (*declared, *(PartitionSpec(name=name) for name in named if name in missing))
    if any(partition.default for partition in every):
        return every
    first = next((partition for partition in every if partition.default is None), None)
    return tuple(partition.model_copy(update={"default": partition is first}) for partition in every)


def problems(partitions: tuple[PartitionSpec, ...], node_sets: tuple[NodeSetSpec, ...]) -> Iterator[Problem]:
    """Yield problems between partitions and node sets."""
    named_by_sets = [node_set.partitions for node_set in node_sets]
    reachable = {name for names in named_by_sets for name in names}
    first_with: dict[str, int] = {}
    default_at: int | None = None
    for index, partition in enumerate(partitions):
        path = f"partitions[{index}]"
        if known(partition.default) and partition.default:
            if default_at is not None:
                yield Problem(
                    f"{path}.default",
                    f"partitions[{default_at}] is the default as well. Slurm has one: choose one.",
                )
            default_at = index if default_at is None else default_at
        if not known(partition.name):
            continue
        if partition.name in first_with:
            yield Problem(
                f"{path}.name",
                f'"{partition.name}" is also the name of partitions[{first_with[partition.name]}]. '
                "Partitions need distinct names.",
            )
        elif known(node_sets, *named_by_sets) and partition.name not in reachable:
            yield Problem(
                f"{path}.name",
                f'got "{partition.name}", but no node set names it. Add it to the partitions of one, or remove it.',
            )
        first_with.setdefault(partition.name, index)
