"""Policies of a drain: treatment of the jobs on leaving nodes, before Kubernetes deletes the pods."""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, StrictBool, model_validator

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.duration import Duration, duration_text, lasting
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.validation.base import Model, broken_rules, refused
from soperator_pulumi.spec.validation.parse import parse
from soperator_pulumi.spec.validation.partial import known

_YEAR = timedelta(days=365)


class OnTimeout(StrEnum):
    """Reaction if nodes are not free in time."""

    ABORT = "abort"
    """Undrain all nodes, delete no pod, and fail."""
    REQUEUE = "requeue"
    """Requeue the remaining jobs."""
    CANCEL = "cancel"
    """Cancel the remaining jobs."""
    WAIT = "wait"
    """Continue to wait until `max_wait`; then abort."""


class NotRequeueable(StrEnum):
    """Treatment of a job that cannot be requeued: an interactive one, or one submitted with `--no-requeue`."""

    ABORT = "abort"
    """Leave all jobs alone, undrain all nodes, and fail."""
    CANCEL = "cancel"
    """Cancel the job."""


class Reaction(StrEnum):
    """Reaction to a reservation or a pending job that names a leaving node."""

    REPORT = "report"
    """Report it, and drain."""
    REFUSE = "refuse"
    """Drain nothing, and fail."""


class DrainSpec(Model):
    """Drain of nodes before their pods are deleted."""

    timeout: Annotated[Duration, lasting(timedelta(), _YEAR)] = timedelta(hours=2)
    """Time for running jobs to end, before `on_timeout` applies: `90s`, `10m`, `2h`, `7d`, `1h30m`. With `0s` they get
    none."""
    on_timeout: OnTimeout = OnTimeout.ABORT
    """Reaction after `timeout`. `abort`: undrain all nodes, and fail. `requeue`, `cancel`: requeue or cancel the
    remaining jobs. `wait`: continue to wait until `max_wait`."""
    max_wait: Annotated[Duration, lasting(timedelta(seconds=1), _YEAR)] = timedelta(days=7)
    """With `on_timeout: wait`, total time before the deployment aborts."""
    not_requeueable: NotRequeueable = NotRequeueable.ABORT
    """With `on_timeout: requeue`, treatment of jobs that cannot be requeued (interactive ones, `--no-requeue`).
    `abort`: leave all jobs alone, and undrain all nodes."""
    reservations: Reaction = Reaction.REPORT
    """Reaction to a reservation that names a leaving node. `report`: report it, and drain. `refuse`: drain nothing, and
    fail."""
    pending_jobs: Reaction = Reaction.REPORT
    """The same for a pending job that requests a leaving node by name."""
    wait: StrictBool = True
    """Wait for the jobs. If false, the deployment drains the nodes and succeeds; nodes that are not free stay until a
    later deployment, and `timeout` and `on_timeout` have no effect."""
    grace: Annotated[Duration, lasting(timedelta(seconds=30), _YEAR, why="slurmd needs time to stop its jobs.")] = (
        timedelta(minutes=5)
    )
    """Time for the jobs of a worker pod that is deleted outside Pulumi, before Kubernetes kills it
    (`terminationGracePeriodSeconds`). A changed value recreates the workers, like any change to their pods."""

    @model_validator(mode="after")
    def _follow_the_rules(self) -> "DrainSpec":
        found = list(problems(self))
        if found:
            raise broken_rules(found)
        return self


def _some(share: Share) -> Share:
    if share.amount == 0:
        raise refused("needs at least 1 node or 1%: with none, no node could ever be recreated.")
    return share


class RollingUpdateSpec(Model):
    """Recreation of workers whose pods have changed."""

    max_unavailable: Annotated[Share, AfterValidator(_some)] = Share(10, percent=True)
    """Nodes out of service at a time: a number, or a percentage of the node set, rounded down, but at least one
    node."""
    idle_wait: Annotated[Duration, lasting(timedelta(), _YEAR)] = timedelta()
    """Time for nodes to become idle by themselves: `4h`, `2d`. Until it is over, only idle nodes are drained. Default:
    nodes with jobs are drained at once. Without effect if `drain.wait` is false."""


def parse_drain(data: object, where: str) -> DrainSpec:
    """Return the drain policy in a mapping, as under `drain` of a node set.

    Args:
        data: The mapping.
        where: Origin of the data in an error.

    Raises:
        SpecError: The mapping has problems; all of them at once.
    """
    return parse(DrainSpec, data, where, "a drain policy", problems)


def problems(drain: DrainSpec, path: str = "") -> Iterator[Problem]:
    """Yield problems between the fields of `drain`; `path` is its path, ending with a '.'."""
    longest, timeout = drain.max_wait, drain.timeout
    if known(drain.on_timeout, longest, timeout) and drain.on_timeout is OnTimeout.WAIT and longest < timeout:
        yield Problem(
            f"{path}max_wait",
            f'"{duration_text(longest)}" is shorter than {path}timeout = "{duration_text(timeout)}", after which the '
            "wait continues. Raise max_wait, or lower the timeout.",
        )
