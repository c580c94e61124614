"""Settings of job hooks: a JSON file and scripts that workers read for every job, and lines of slurm.conf."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.job_hooks import HookScriptSpec, HooksSpec, Moment, has_whole_gpus, longest, our_hooks

FORMAT = 1
"""Format of the file (`images/health/job_hooks/hook_settings.py`)."""


def hook_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of the ConfigMap: the settings, and the site's own scripts."""
    hooks = spec.hooks
    if hooks is None:
        return {}
    scripts = {
        _file(moment, name): script.script for moment in Moment for name, script in _scripts(hooks, moment).items()
    }
    settings = {
        "format": FORMAT,
        "whole_gpus": [node_set.name for node_set in spec.node_sets if has_whole_gpus(node_set)],
        "prolog": [*_ours(spec, hooks, Moment.PROLOG), *_of_site(hooks, Moment.PROLOG)],
        "epilog": [*_of_site(hooks, Moment.EPILOG), *_ours(spec, hooks, Moment.EPILOG)],
    }
    return {layout.HOOKS_FILE: json.dumps(settings, indent=1) + "\n", **scripts}


def hook_parameters(spec: ClusterSpec) -> dict[str, str]:
    """Return the slurm.conf parameters that make slurmd run the hooks; none if there are no hooks."""
    hooks = spec.hooks
    if hooks is None:
        return {}
    timeout = longest(hooks, gpus=_has_gpus(spec)).total_seconds()
    return {
        **({"Prolog": layout.JOB_PROLOG} if has_prolog(spec) else {}),
        "Epilog": layout.JOB_EPILOG,
        **({} if "PrologEpilogTimeout" in spec.slurm.extra else {"PrologEpilogTimeout": f"{timeout:.0f}"}),
    }


def hook_flags(spec: ClusterSpec) -> dict[str, str]:
    """Return entries of lists in slurm.conf for a prolog.

    With `Alloc`, it runs on all nodes of a job before anything of the job does. With `nohold_on_prolog_fail`, slurmctld
    restarts a job elsewhere if its prolog failed; by default it holds the job until an admin releases it.
    """
    if not has_prolog(spec):
        return {}
    return {"PrologFlags": "Alloc", "SchedulerParameters": "nohold_on_prolog_fail"}


def has_prolog(spec: ClusterSpec) -> bool:
    """Return True if a hook runs before jobs."""
    hooks = spec.hooks
    return hooks is not None and bool(hooks.prolog or [*_ours(spec, hooks, Moment.PROLOG)])


def _has_gpus(spec: ClusterSpec) -> bool:
    return any(has_whole_gpus(node_set) for node_set in spec.node_sets)


def _scripts(hooks: HooksSpec, moment: Moment) -> Mapping[str, HookScriptSpec]:
    return hooks.prolog if moment is Moment.PROLOG else hooks.epilog


def _file(moment: Moment, name: str) -> str:
    return f"{moment}-{name}.sh"


def _of_site(hooks: HooksSpec, moment: Moment) -> Iterator[dict[str, Any]]:
    for name, hook in sorted(_scripts(hooks, moment).items()):
        command = ["/bin/sh", f"{layout.HEALTH_SETTINGS}/{_file(moment, name)}"]
        yield {"name": name, "action": hook.action, "seconds": hook.timeout.total_seconds(), "command": command}


def _ours(spec: ClusterSpec, hooks: HooksSpec, moment: Moment) -> Iterator[dict[str, Any]]:
    for name, action, timeout in our_hooks(hooks, moment, gpus=_has_gpus(spec)):
        yield {"name": name, "action": action, "seconds": timeout.total_seconds(), "command": []}
