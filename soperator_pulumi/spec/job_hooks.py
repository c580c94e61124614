"""Hooks of jobs, which run as root on a node before a job's first step there and after its last one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.node_health import Script
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.types.absolute_path import AbsolutePath
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import DnsLabel
from soperator_pulumi.spec.validation.base import Model
from soperator_pulumi.spec.validation.partial import known

HookTime = Annotated[Duration, lasting(timedelta(seconds=1), timedelta(minutes=10))]

MARGIN = timedelta(seconds=60)
"""Time for slurmctld's answers and the start of the programs, in addition to the hooks' own times."""


class HookAction(StrEnum):
    """Consequence of a hook's failure."""

    LOG = "log"
    """Report it in the log of the pod."""
    DRAIN = "drain"
    """Drain the node. The job starts, or ends, as usual."""
    REQUEUE = "requeue"
    """Drain the node, and start the job elsewhere. Only for a prolog."""


class Moment(StrEnum):
    """Moment at which a hook runs."""

    PROLOG = "prolog"
    """Before the job's first step on the node."""
    EPILOG = "epilog"
    """After the job's last step on the node."""


class JobHook(StrEnum):
    """A built-in hook."""

    GPUS_UNUSED_BEFORE = "gpus_unused_before"
    MAP_GPUS = "map_gpus"
    UNMAP_GPUS = "unmap_gpus"
    GPUS_UNUSED_AFTER = "gpus_unused_after"
    PROCESSES_ENDED = "processes_ended"
    DROP_PAGE_CACHE = "drop_page_cache"


@dataclass(frozen=True)
class HookDefaults:
    """Meaning and defaults of a built-in hook."""

    what: str
    moment: Moment
    action: HookAction
    timeout: timedelta
    on: bool = True
    of_gpus: bool = False
    """True for hooks that only run for jobs with whole GPUs of NVIDIA."""


DEFAULTS: Mapping[JobHook, HookDefaults] = {
    JobHook.GPUS_UNUSED_BEFORE: HookDefaults(
        "Waits until nothing uses the job's GPUs, according to the limits of the health checks `gpu_processes` and "
        "`gpu_memory_used`.",
        Moment.PROLOG,
        HookAction.REQUEUE,
        timedelta(seconds=15),
        of_gpus=True,
    ),
    JobHook.MAP_GPUS: HookDefaults(
        "Writes the job's id into the files of its GPUs in `job_mapping`, for dcgm-exporter.",
        Moment.PROLOG,
        HookAction.LOG,
        timedelta(seconds=5),
        of_gpus=True,
    ),
    JobHook.UNMAP_GPUS: HookDefaults(
        "Removes these files.", Moment.EPILOG, HookAction.LOG, timedelta(seconds=5), of_gpus=True
    ),
    JobHook.GPUS_UNUSED_AFTER: HookDefaults(
        "Waits until nothing uses the GPUs that the job had, by the same limits.",
        Moment.EPILOG,
        HookAction.DRAIN,
        timedelta(seconds=15),
        of_gpus=True,
    ),
    JobHook.PROCESSES_ENDED: HookDefaults(
        "Waits until processes of the job's user outside of steps have ended. They may stay if slurmctld lists "
        "another job of the user on the node.",
        Moment.EPILOG,
        HookAction.DRAIN,
        timedelta(seconds=40),
    ),
    JobHook.DROP_PAGE_CACHE: HookDefaults(
        "Drops the page cache of the machine, which all its pods share.",
        Moment.EPILOG,
        HookAction.LOG,
        timedelta(seconds=30),
        on=False,
    ),
}
"""Built-in hooks, in their order."""

_OF_MAPPING = (JobHook.MAP_GPUS, JobHook.UNMAP_GPUS)


class OurHookSpec(Model):
    """Changes to a built-in hook. Keys that are left out keep the hook's defaults (docs/job-hooks.md)."""

    enabled: StrictBool | None = None
    """Run the hook."""
    action: HookAction | None = None
    """Consequence of a failure: `log`, `drain`, or before a job `requeue`."""
    timeout: HookTime | None = None
    """Time until the hook counts as failed."""


class HookScriptSpec(Model):
    """Your own script. It runs as root in the worker's container, outside the jail."""

    script: Script
    """Script for /bin/sh, with the variables of slurmd's Prolog and Epilog (SLURM_JOB_ID, SLURM_JOB_UID, and so on).
    Status 0 means success, any other status failure, with the first printed line as the reason. Do not start programs
    of the jail or of users in it: they would run as root."""
    action: HookAction = HookAction.DRAIN
    """Consequence of a failure: `log`, `drain`, or before a job `requeue`. Default: drain."""
    timeout: HookTime = timedelta(seconds=30)
    """Time until the script is killed, which is a failure. Default: 30s."""


class HooksSpec(Model):
    """Hooks of jobs: built-in hooks, and scripts in the order of their names."""

    prolog: dict[DnsLabel, HookScriptSpec] = Field(default_factory=dict)
    """Scripts before a job's first step on a node, by name. They run after the built-in hooks."""
    epilog: dict[DnsLabel, HookScriptSpec] = Field(default_factory=dict)
    """Scripts after a job's last step on a node, by name. They run before the built-in hooks."""
    ours: dict[JobHook, OurHookSpec] = Field(default_factory=dict)
    """Changes to the built-in hooks, by name (docs/job-hooks.md)."""
    job_mapping: AbsolutePath | None = None
    """Directory on the machines with a file per GPU that names the GPU's job, which dcgm-exporter reads: the
    `job_mapping` of the platform's GPU operator. Pods of node sets with GPUs mount it. Default: none."""


def has_whole_gpus(node_set: NodeSetSpec) -> bool:
    """Return True if jobs get only whole NVIDIA GPUs: MIG instances and shards are parts of one.

    False if a key has a problem.
    """
    gpus = node_set.gpus
    return (
        gpus is not None
        and known(gpus)
        and known(gpus.count, gpus.mig, gpus.shards_per_gpu)
        and gpus.of_nvidia
        and gpus.count > 0
        and not gpus.mig
        and gpus.shards_per_gpu is None
    )


def our_hooks(hooks: HooksSpec, moment: Moment, *, gpus: bool) -> Iterator[tuple[JobHook, HookAction, timedelta]]:
    """Yield the built-in hooks of a moment that run, with their actions and times.

    Args:
        hooks: The hooks.
        moment: The moment.
        gpus: True if a node set of the cluster has whole GPUs.
    """
    for name, defaults in DEFAULTS.items():
        change = hooks.ours.get(name, OurHookSpec())
        on = defaults.on if change.enabled is None else change.enabled
        has_what_it_needs = (gpus or not defaults.of_gpus) and (hooks.job_mapping or name not in _OF_MAPPING)
        if on and has_what_it_needs and defaults.moment is moment:
            yield name, change.action or defaults.action, change.timeout or defaults.timeout


def longest(hooks: HooksSpec, *, gpus: bool) -> timedelta:
    """Return the longest total time of the hooks of one moment."""
    scripts = {Moment.PROLOG: hooks.prolog, Moment.EPILOG: hooks.epilog}
    times = [
        sum((script.timeout for script in scripts[moment].values()), MARGIN)
        + sum((timeout for _, _, timeout in our_hooks(hooks, moment, gpus=gpus)), timedelta())
        for moment in Moment
    ]
    return max(times)


def problems(
    hooks: HooksSpec | None, extra: Mapping[str, str], node_sets: tuple[NodeSetSpec, ...]
) -> Iterator[Problem]:
    """Yield problems between the keys of `hooks`, and with Slurm's parameters."""
    if not known(hooks) or hooks is None:
        return
    if known(extra):
        for parameter in sorted({"Prolog", "Epilog"} & extra.keys()):
            text = f"given together with hooks, which set it. Give its script as hooks.{parameter.lower()}."
            yield Problem(f"slurm.extra.{parameter}", text)
    if known(hooks.epilog):
        for script, hook in hooks.epilog.items():
            yield from _never_requeued(f"hooks.epilog.{script}", hook.action)
    if known(hooks.ours, hooks.job_mapping):
        for name, change in hooks.ours.items():
            yield from _our_problems(name, change, has_mapping=hooks.job_mapping is not None)
    if known(extra, hooks.prolog, hooks.epilog, hooks.ours, hooks.job_mapping, node_sets):
        yield from _too_short(hooks, extra, node_sets)


def _our_problems(name: JobHook, change: OurHookSpec, *, has_mapping: bool) -> Iterator[Problem]:
    if DEFAULTS[name].moment is Moment.EPILOG:
        yield from _never_requeued(f"hooks.ours.{name}", change.action)
    if name in _OF_MAPPING and not has_mapping:
        yield Problem(f"hooks.ours.{name}", "has no effect without hooks.job_mapping. Give the path, or remove it.")


def _too_short(hooks: HooksSpec, extra: Mapping[str, str], node_sets: tuple[NodeSetSpec, ...]) -> Iterator[Problem]:
    scripts = [*hooks.prolog.values(), *hooks.epilog.values()]
    if not known(*(script.timeout for script in scripts), *(script.timeout for script in hooks.ours.values())):
        return
    needed = longest(hooks, gpus=any(map(has_whole_gpus, node_sets))).total_seconds()
    for name in ("EpilogTimeout", "PrologEpilogTimeout", "PrologTimeout"):
        given = extra.get(name, "")
        if given.isdecimal() and int(given) < needed:
            text = (
                f"got {given}, but the hooks take up to {needed:.0f} s together, and slurmd would kill them. Raise it, "
            )
            yield Problem(f"slurm.extra.{name}", f"{text}remove it, or lower the hooks' timeouts.")


def _never_requeued(path: str, action: HookAction | None) -> Iterator[Problem]:
    if known(action) and action is HookAction.REQUEUE:
        yield Problem(f"{path}.action", 'got "requeue", but the job has ended by then. Choose "log" or "drain".')
