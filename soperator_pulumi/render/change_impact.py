"""Impact of a change of Slurm's files: a reconfigure, a restart of slurmctld, or the loss of jobs.

Since 23.11 `scontrol reconfigure` restarts slurmctld and every slurmd from the new files without touching jobs
(scontrol(1)), so every change takes effect by it "unless otherwise noted" (slurm.conf(5) of 24.11). The table holds the
notes, and measurements with 24.11.5: a running and a pending job, the change, a reconfigure; then both jobs are still
there, the running one can be cancelled and leaves no process, and a new one runs. That held for KillWait, MaxNodeCount
(raised), NodeSet, Nodes of a partition, SelectTypeParameters, ProctrackType, TaskPlugin, JobAcctGatherType,
cgroup.conf (both ways of `slurm.constrain`, and of ConstrainDevices), GresTypes (added and removed), PriorityType,
PreemptType, PreemptMode, MCSPlugin, MaxJobId, MaxArraySize and SlurmctldParameters.

AccountingStorageTRES has no note, and stands in no table: the slurmctld that a reconfigure starts adds new ones to the
database, as at any start (`_init_tres` in src/slurmctld/controller.c).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from soperator_pulumi.render.layout import ACCOUNTING_CLUSTER_ID
from soperator_pulumi.spec.slurm_parameters import PARAMETERS

_PAIR = re.compile(r'\s*(?P<key>\w+)\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
"""Slurm's `keyvalue_pattern` (src/common/parse_config.c), without its operators."""

_CONTINUED = re.compile(r"\\\s*?\n")
"""End of a line that continues in the next one."""

_ROWS = ("NodeSet", "PartitionName", "NodeName", "DownNodes")
_SPELLING = {name.lower(): name for name in PARAMETERS}

Row = Mapping[str, str]
"""Pairs of one line, without the first."""


@dataclass(frozen=True)
class SlurmConf:
    """A slurm.conf, parsed as far as rendered files need."""

    parameters: Mapping[str, str]
    """Parameters in Slurm's spelling. If one is repeated, the last value counts."""
    lines: Mapping[str, Mapping[str, Row]]
    """Lines that may repeat, by kind and name."""

    def rows(self, kind: str) -> Mapping[str, Row]:
        """Return the lines that begin with a key, by name."""
        return self.lines.get(kind, {})


def parse_conf(text: str) -> SlurmConf:
    """Return a parsed slurm.conf.

    Raises:
        ValueError: A line is not a list of `key=value`.
    """
    parameters: dict[str, str] = {}
    lines: dict[str, dict[str, Row]] = {}
    uncommented = "\n".join(line.partition("#")[0] for line in text.splitlines())
    for line in _CONTINUED.sub("", uncommented).splitlines():
        content = line.strip()
        if not content:
            continue
        pairs = _pairs(content)
        (key, value), *rest = pairs
        if key in _ROWS:
            lines.setdefault(key, {})[value] = dict(rest)
        else:
            parameters.update(pairs)
    return SlurmConf(parameters, lines)


def _pairs(content: str) -> list[tuple[str, str]]:
    pairs, position = [], 0
    while position < len(content):
        match = _PAIR.match(content, position)
        if match is None:
            raise ValueError(f"not key=value: {content[position:]!r}")
        key = match["key"]
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        pairs.append((_SPELLING.get(key.lower(), key), value))
        position = match.end()
    return pairs


class Effect(IntEnum):
    """Impact of a change, starting with the mildest."""

    RELOAD = 0
    """`scontrol reconfigure`."""
    RESTART = 1
    """A restart of slurmctld. Jobs keep running."""
    LOSES_JOBS = 2
    """`scontrol reconfigure`, with the loss of running and pending jobs: refused while there are any."""
    IMPOSSIBLE = 3
    """None: a running cluster cannot accept the change."""


@dataclass(frozen=True)
class Change:
    """A difference between two versions of the files."""

    what: str
    """The parameter (`KillWait`), the line (`PartitionName=gpu`) or the file (`cgroup.conf`)."""
    effect: Effect
    """Impact of the change."""
    reason: str
    """Reason, as the end of a sentence. Empty for a reload."""
    partition: str | None = None
    """With LOSES_JOBS: the partition whose jobs are lost. None: those of all partitions."""
    generic_resources: frozenset[str] = frozenset()
    """With LOSES_JOBS: generic resources on whose nodes running jobs lose them. Empty: jobs are lost themselves."""


_EVERY_DAEMON = "slurmctld and every slurmd must restart at the same time, which ends jobs"

PARAMETER_EFFECTS: Mapping[str, tuple[Effect, str]] = {
    "ClusterName": (Effect.IMPOSSIBLE, 'slurmctld ends with "CLUSTER NAME MISMATCH" (measured): make a new cluster'),
    "SelectType": (Effect.IMPOSSIBLE, "slurmctld cannot read the jobs of another plugin (slurm.conf(5))"),
    "StateSaveLocation": (Effect.IMPOSSIBLE, "slurmctld would start without nodes and jobs (measured)"),
    "AccountingStorageType": (
        Effect.RESTART,
        "slurmctld takes the cluster's id from the database; jobs stay, those that ended before have no record",
    ),
    "CommunicationParameters": (Effect.RESTART, "a reconfigure keeps the sockets on which slurmctld listens"),
    "SlurmctldPort": (Effect.LOSES_JOBS, f"the slurmctld that runs keeps its old port (measured): {_EVERY_DAEMON}"),
    "SlurmdPort": (Effect.LOSES_JOBS, f"a slurmd that runs keeps its old port (scontrol(1)): {_EVERY_DAEMON}"),
    "AuthType": (Effect.LOSES_JOBS, f"a reconfigure cannot change it (scontrol(1)): {_EVERY_DAEMON}"),
    "CredType": (Effect.LOSES_JOBS, f"a reconfigure cannot change it (scontrol(1)): {_EVERY_DAEMON}"),
    "SlurmUser": (Effect.LOSES_JOBS, f"it owns the state and signs messages: {_EVERY_DAEMON}"),
    "SlurmdSpoolDir": (Effect.LOSES_JOBS, "slurmd no longer finds the steps that run"),
    "SwitchType": (Effect.LOSES_JOBS, "records of all jobs may be lost (slurm.conf(5))"),
}
"""Parameters of slurm.conf whose change needs more than a reconfigure, with the reason."""

_RELOAD = (Effect.RELOAD, "")

_FILE_EFFECTS: Mapping[str, tuple[Effect, str]] = {
    ACCOUNTING_CLUSTER_ID: (Effect.RESTART, "slurmctld takes the confirmed id as it starts; jobs stay"),
}
"""Files whose change, unless they are removed, needs more than a reconfigure."""

_LOWERED: Mapping[str, tuple[int, str]] = {
    "MaxNodeCount": (0, "nodes that no longer fit vanish with their jobs (measured)"),
    "MaxJobCount": (10_000, "jobs that no longer fit are dropped when slurmctld reads its state (measured)"),
}
"""Parameters whose lowering loses jobs, with Slurm's default and the reason."""


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the differences between two versions of Slurm's files, those with the largest impact first.

    Args:
        old: Texts of the files in force, by name.
        new: Texts of the new files.
    """
    found = [
        *_conf_changes(old.get("slurm.conf", ""), new.get("slurm.conf", "")),
        *(
            Change(name, *(_FILE_EFFECTS.get(name, _RELOAD) if name in new else _RELOAD))
            for name in sorted((old.keys() | new.keys()) - {"slurm.conf"})
            if old.get(name) != new.get(name)
        ),
    ]
    return tuple(sorted(found, key=lambda change: (-change.effect, change.what)))


def _conf_changes(old_text: str, new_text: str) -> Iterator[Change]:
    old, new = parse_conf(old_text), parse_conf(new_text)
    for name in sorted(old.parameters.keys() | new.parameters.keys()):
        before, after = old.parameters.get(name), new.parameters.get(name)
        if before != after:
            yield _parameter_change(name, before, after)
    for kind in ("NodeSet", "PartitionName"):
        yield from _row_changes(kind, old.rows(kind), new.rows(kind))


def _parameter_change(name: str, before: str | None, after: str | None) -> Change:
    if name in _LOWERED:
        default, reason = _LOWERED[name]
        if _number(after, default) < _number(before, default):
            return Change(name, Effect.LOSES_JOBS, reason)
    if name == "GresTypes" and (gone := _words(before) - _words(after)):
        reason = (
            f"without {', '.join(sorted(gone))} every job opens all GPUs of its node, those of other jobs as well "
            "(measured). Deploy replicas: 0 for the node sets with GPUs first, which drains them"
        )
        return Change(name, Effect.LOSES_JOBS, reason, generic_resources=gone)
    effect, reason = PARAMETER_EFFECTS.get(name, _RELOAD)
    return Change(name, effect, reason)


def _words(value: str | None) -> frozenset[str]:
    return frozenset(filter(None, (value or "").split(",")))


def _number(value: str | None, default: int) -> int:
    return int(value) if value is not None and value.isdecimal() else default


def _row_changes(kind: str, old: Mapping[str, Row], new: Mapping[str, Row]) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        what = f"{kind}={name}"
        if kind == "PartitionName" and name not in new:
            reason = "Slurm cancels the jobs of a partition that is removed (slurm.conf(5), measured)"
            yield Change(what, Effect.LOSES_JOBS, reason, partition=name)
        else:
            yield Change(what, Effect.RELOAD, "")
