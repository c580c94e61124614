"""Settings of the quick checks of nodes, which slurmd runs between and during jobs (HealthCheckProgram)."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.health_checks import (
    DEFAULTS,
    Bound,
    HealthAction,
    HealthCheck,
    NodeUse,
    UndrainRule,
)
from soperator_pulumi.spec.long_checks import LongCheck, LongCheckSpec
from soperator_pulumi.spec.types.duration import Duration, duration_text, lasting
from soperator_pulumi.spec.validation.base import Matches, Model, number, whole
from soperator_pulumi.spec.validation.partial import known

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)

_MAX_SCRIPT = 65_536

Script = Annotated[
    str, Matches(r"[^\x00]*[^\s\x00][^\x00]*", "needs the text of a script for /bin/sh, at most 64 KiB.", _MAX_SCRIPT)
]
"""Text of a script. It is not secret: every user who may read the cluster's ConfigMaps sees it."""


class HealthCheckNodeState(StrEnum):
    """Nodes on which slurmctld starts checks (slurm.conf(5), HealthCheckNodeState)."""

    ANY = "ANY"
    """All nodes that answer, including drained ones."""
    ALLOC = "ALLOC"
    """Nodes all of whose CPUs are allocated."""
    IDLE = "IDLE"
    """Nodes without a job."""
    MIXED = "MIXED"
    """Nodes some of whose CPUs are allocated."""
    NONDRAINED_IDLE = "NONDRAINED_IDLE"
    """Nodes without a job that are not drained."""


class CheckSpec(Model):
    """Changes to one check. Keys that are left out keep the check's defaults (docs/health-checks.md)."""

    enabled: StrictBool = True
    """Run the check."""
    limit: Annotated[float, number(-1000, 1_000_000_000, what="a number without a unit,")] | None = None
    """Limit of the value, in the check's unit. Default: the check's own, for the GPU model if it has one."""
    action: HealthAction | None = None
    """Consequence of a failure: `log`, `drain`, or `drain_and_replace`."""
    undrain: UndrainRule | None = None
    """Rule that ends a drain by the check. `auto`: the check passes again. `verify`: a long check of the same hardware
    passes (docs/long-checks.md); without one, an administrator undrains the node. `never`: an administrator undrains
    the node."""
    failures: Annotated[int, whole(1, 100)] | None = None
    """Consecutive failed rounds before the action."""
    passes: Annotated[int, whole(1, 1000)] | None = None
    """Consecutive passed rounds before the drain ends."""
    every: Annotated[Duration, lasting(timedelta(seconds=10), _DAY)] | None = None
    """Time between two rounds of the check, at least `health.interval`."""
    node_use: tuple[NodeUse, ...] | None = None
    """Use of the node during which the check counts: `idle`, `busy`, or both."""


class HealthProgramSpec(Model):
    """Your own check, in addition to the built-in ones: the check `program`. It runs as root outside the jail."""

    script: Script
    """Script for /bin/sh in the worker's container. Status 0 means healthy, any other status failure, with the first
    printed line as the value in the reason. Do not start programs of the jail or of users in it: they would run as
    root."""
    timeout: Annotated[Duration, lasting(timedelta(seconds=1), timedelta(seconds=50))] = timedelta(seconds=5)
    """Time until the script is killed, which is a failure."""


class HealthSpec(Model):
    """Quick checks of the nodes. A node that fails one gets no further jobs; running jobs end as usual."""

    enabled: StrictBool = True
    """Run the checks. If false, drains of earlier checks stay until you undrain their nodes."""
    interval: Annotated[Duration, lasting(timedelta(seconds=10), _HOUR)] = timedelta(minutes=1)
    """Time between two rounds on a node (HealthCheckInterval)."""
    node_states: tuple[HealthCheckNodeState, ...] = (HealthCheckNodeState.ANY,)
    """Nodes on which rounds start (HealthCheckNodeState). If drained nodes are left out, no node undrains itself."""
    spread: StrictBool = True
    """Spread the rounds of the nodes over the interval, instead of starting them all at once
    (HealthCheckNodeState=CYCLE)."""
    timeout: Annotated[
        Duration, lasting(timedelta(seconds=2), timedelta(seconds=50), why="slurmd ends a round after 60 s.")
    ] = timedelta(seconds=10)
    """Total time of a round. A program of a check gets half of it; taking longer is a failure."""
    checks: dict[HealthCheck, CheckSpec] = Field(default_factory=dict)
    """Changes to checks, by name (docs/health-checks.md)."""
    program: HealthProgramSpec | None = None
    """Your own check. Default: none."""
    long_checks: dict[LongCheck, LongCheckSpec] = Field(default_factory=dict)
    """Long checks, by name (docs/long-checks.md): jobs on idle nodes. Default: none."""
    verify_new_nodes: StrictBool = False
    """Keep new nodes drained until all long checks of one node have passed there once, on their schedules. Default:
    false."""


def problems(health: HealthSpec) -> Iterator[Problem]:
    """Yield problems between the keys of `health`."""
    if not known(health):
        return
    if known(health.node_states) and not health.node_states:
        yield Problem("health.node_states", 'empty. Name at least one state, or set "health.enabled" to false.')
    if not known(health.checks):
        return
    for name, check in health.checks.items():
        if known(check):
            yield from _check_problems(name, check, health)
    yield from _program_problems(health)


def _program_problems(health: HealthSpec) -> Iterator[Problem]:
    program, longest = health.program, health.timeout
    if program is None or not known(program, longest) or not known(program.timeout):
        return
    if program.timeout > longest:
        yield Problem(
            "health.program.timeout",
            f'"{duration_text(program.timeout)}" is longer than a round, health.timeout = "{duration_text(longest)}". '
            "Lower it, or raise health.timeout.",
        )


def _check_problems(name: HealthCheck, check: CheckSpec, health: HealthSpec) -> Iterator[Problem]:
    path, defaults = f"health.checks.{name}", DEFAULTS[name]
    if known(check.limit) and check.limit is not None and defaults.bound is Bound.NONE:
        yield Problem(f"{path}.limit", "has no effect: the check compares no number. Remove it.")
    if known(check.limit) and check.limit is not None and defaults.bound is Bound.EXACT:
        yield Problem(f"{path}.limit", "is fixed: it is the node set's gpus.count. Remove it.")
    if defaults.shared and known(check.action) and check.action not in {None, HealthAction.LOG}:
        yield Problem(
            f"{path}.action",
            f'got "{check.action}", but only "log" is allowed: one outage would fail the check on all nodes and drain '
            "them.",
        )
    if known(check.node_use) and check.node_use == ():
        yield Problem(f"{path}.node_use", 'empty. Name "idle", "busy" or both, or set "enabled" to false.')
    if known(check.every, health.interval) and check.every is not None and check.every < health.interval:
        yield Problem(
            f"{path}.every",
            f'"{duration_text(check.every)}" is shorter than health.interval = "{duration_text(health.interval)}", in '
            "which the node has one round. Raise it, or lower the interval.",
        )
    if name is HealthCheck.PROGRAM and known(health.program) and health.program is None:
        yield Problem(path, "has no effect without health.program. Add the program, or remove it.")


def merged_checks(health: HealthSpec) -> Mapping[HealthCheck, CheckSpec]:
    """Return the changes to every check, empty for checks that the spec does not name."""
    return {name: health.checks.get(name, CheckSpec()) for name in HealthCheck}
