"""How nodes leave: what happens to the jobs on them before Kubernetes takes their pods away."""

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
    """What happens when nodes are not free in time."""

    ABORT = "abort"
    """Everything is put back: the nodes are in service again, no pod is taken away, the deployment fails."""
    REQUEUE = "requeue"
    """The jobs that are left go back to the queue and start again elsewhere."""
    CANCEL = "cancel"
    """The jobs that are left are cancelled."""
    WAIT = "wait"
    """The deployment goes on waiting, until `max_wait`; then everything is put back and it fails."""


class NotRequeueable(StrEnum):
    """What happens to a job that cannot be requeued: an interactive one, or one submitted with `--no-requeue`."""

    ABORT = "abort"
    """No job is touched, everything is put back, and the deployment fails."""
    CANCEL = "cancel"
    """It is cancelled."""


class Reaction(StrEnum):
    """What follows when something counts on a node that is to leave."""

    REPORT = "report"
    """It is shown, and the node leaves."""
    REFUSE = "refuse"
    """Nothing is drained, and the deployment fails."""


class DrainSpec(Model):
    """How nodes are freed of jobs before their pods are taken away."""

    timeout: Annotated[Duration, lasting(timedelta(), _YEAR)] = timedelta(hours=2)
    """How long running jobs may go on, before `on_timeout` says what follows: `90s`, `10m`, `2h`, `7d`, `1h30m`.
    `0s` gives them no time."""
    on_timeout: OnTimeout = OnTimeout.ABORT
    """What happens then. `abort`: everything is put back and the deployment fails. `requeue` and `cancel` are done to
    the jobs that are left. `wait` goes on to `max_wait`."""
    max_wait: Annotated[Duration, lasting(timedelta(seconds=1), _YEAR)] = timedelta(days=7)
    """With `on_timeout: wait`, how long the deployment waits in all; then it aborts."""
    not_requeueable: NotRequeueable = NotRequeueable.ABORT
    """With `on_timeout: requeue`, what happens to jobs that cannot be requeued (interactive ones, `--no-requeue`).
    `abort`: no job is touched and everything is put back."""
    reservations: Reaction = Reaction.REPORT
    """Whether nodes that a reservation names may leave: `report` shows it, `refuse` drains nothing and fails."""
    pending_jobs: Reaction = Reaction.REPORT
    """The same for nodes that a pending job asks for by name."""
    wait: StrictBool = True
    """Whether a deployment waits for the jobs. If not, it drains the nodes and ends well; those that are not free stay,
    and a later deployment goes on. `timeout` and `on_timeout` count for nothing then."""
    grace: Annotated[Duration, lasting(timedelta(seconds=30), _YEAR, why="slurmd needs time to stop its jobs.")] = (
        timedelta(minutes=5)
    )
    """How long a worker pod that somebody deletes behind Pulumi's back goes on for its jobs; Kubernetes kills it then
    (`terminationGracePeriodSeconds`). A changed value restarts the workers as any change of their pods does."""

    @model_validator(mode="after")
    def _follow_the_rules(self) -> "DrainSpec":
        found = list(problems(self))
        if found:
            raise broken_rules(found)
        return self


def _some(share: Share) -> Share:
    if share.amount == 0:
        raise refused("needs at least 1 node or 1%: with none, no node could ever be renewed.")
    return share


class RollingUpdateSpec(Model):
    """How workers are renewed when their pods have changed."""

    max_unavailable: Annotated[Share, AfterValidator(_some)] = Share(10, percent=True)
    """How many nodes may be out of service for it at a time: a number, or a percentage of the node set, rounded down.
    One always may."""


def parse_drain(data: object, where: str) -> DrainSpec:
    """Return the drain policy that `data` describes: a mapping as under `drain` of a node set.

    Args:
        data: the mapping.
        where: how the error calls it.

    Raises:
        SpecError: with all problems at once.
    """
    return parse(DrainSpec, data, where, "how nodes are drained", problems)


def problems(drain: DrainSpec, path: str = "") -> Iterator[Problem]:
    """Yield what is wrong between the fields of `drain`; `path` is where it stands, with a '.' at its end."""
    longest, timeout = drain.max_wait, drain.timeout
    if known(drain.on_timeout, longest, timeout) and drain.on_timeout is OnTimeout.WAIT and longest < timeout:
        yield Problem(
            f"{path}max_wait",
            f'"{duration_text(longest)}" is shorter than {path}timeout = "{duration_text(timeout)}", after which it '
            "goes on. Raise it, or lower the timeout.",
        )
