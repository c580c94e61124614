"""Policy on Slurm's settings: jobs stay within their limits, and no setting ends jobs or keeps them from starting."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from soperator_pulumi.lifecycle.keys_in_use import KEYS_BEFORE, KeyKind
from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look, mapped, whole_number
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.render.change_impact import SlurmConf, parse_conf
from soperator_pulumi.spec.validation.base import whole

SLURM_CONF: Path = ("files", "slurm.conf")
"""Path to the text of slurm.conf in a `ConfigFiles`."""

_CGROUP_CONF: Path = ("files", "cgroup.conf")
_LIMITS = ("constraincores", "constrainramspace")


class SlurmSettings(PolicySettings):
    """Settings of `slurm-settings`."""

    minimum_slurmd_timeout: Annotated[int, whole(0)] = 60
    """Smallest `SlurmdTimeout` in seconds, after which the jobs of a silent node fail. Default: 60."""


def conf_of(resource: ResourceView, path: Path) -> SlurmConf | None:
    """Return a parsed Slurm file of a `ConfigFiles`; None for other resources, and if the text is not known."""
    text = look(resource.props, *path) if resource.acts_as("ConfigFiles") else None
    try:
        return parse_conf(text) if isinstance(text, str) else None
    except ValueError:
        return None  # slurmctld refuses it, and the old file stays in force


def lowered(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with names and values in lower case: Slurm ignores case."""
    return {name.lower(): value.lower() for name, value in settings.items()}


def _unsafe(resource: ResourceView, _run: Circumstances, settings: SlurmSettings) -> Iterator[Finding]:
    for path in (SLURM_CONF, _CGROUP_CONF):
        if resource.acts_as("ConfigFiles") and look(resource.props, *path) is UNKNOWN:
            yield not_known(resource, path)
    if (cgroups := conf_of(resource, _CGROUP_CONF)) is not None:
        limits = lowered(cgroups.parameters)
        if limits.get("cgroupplugin") == "disabled" or any(limits.get(name) != "yes" for name in _LIMITS):
            yield Finding(resource, _CGROUP_CONF, "does not limit jobs to their cores and their memory")
    if (conf := conf_of(resource, SLURM_CONF)) is not None:
        timeout = whole_number(lowered(conf.parameters).get("slurmdtimeout"))
        if timeout and timeout < settings.minimum_slurmd_timeout:  # 0 never fails a job
            needs = f"needs {settings.minimum_slurmd_timeout} or more"
            yield Finding(resource, SLURM_CONF, f"SlurmdTimeout: got {timeout} s, {needs}: a short outage fails jobs")
        for name, row in conf.rows("PartitionName").items():
            if lowered(row).get("state", "up") != "up":
                yield Finding(resource, SLURM_CONF, f'the partition "{name}" is not UP, so it starts no jobs')
    yield from _other_key(resource)


def _other_key(resource: ResourceView) -> Iterator[Finding]:
    """Yield a munge key that changes and moves to another Secret at once: new pods get it, running ones do not."""
    before = _munge_key(resource.input(KEYS_BEFORE))
    now = _munge_key(resource.input("keys"))
    if not resource.acts_as("KeysInUse") or not before or not now:
        return
    moves = any(before.get(name) != now.get(name) for name in ("secret", "key"))
    if moves and (now.get("fingerprint") is None or now["fingerprint"] != before.get("fingerprint")):
        text = "the munge key moves to another Secret that does not have the present key, and daemons refuse each other"
        yield Finding(resource, ("keys",), text)


def _munge_key(keys: object) -> Mapping[str, object]:
    return next((mapped(key) for key in listed(keys) if look(key, "kind") == KeyKind.MUNGE), {})


SLURM_SETTINGS = ResourcePolicy(
    name="slurm-settings",
    description="Slurm's settings limit jobs to what they asked for, and neither end jobs nor keep them out.",
    violated_by="`slurm.constrain: none`; `slurm.extra.SlurmdTimeout` below `minimum_slurmd_timeout`; a partition with "
    "`State: DOWN`, `DRAIN` or `INACTIVE`; another Secret in `secrets.munge_key` with another key",
    cure="Remove the setting; close a partition for a while with scontrol. Copy the present munge key into its new "
    "Secret, and change it in a later up.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "slurm"),
    settings=SlurmSettings,
    check=_unsafe,
)
