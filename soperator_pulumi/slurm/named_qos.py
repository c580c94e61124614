"""QoS that a spec names, compared with those of the accounting database, where only administrators make them."""

from collections.abc import Iterator, Mapping, Sequence

from soperator_pulumi.errors import Problem
from soperator_pulumi.slurm.sacctmgr import Sacctmgr
from soperator_pulumi.wording import did_you_mean

_EFFECTS = {
    "allowqos": "slurmctld leaves it out, and jobs with it are refused",
    "denyqos": "slurmctld leaves it out, and jobs with the QoS that is meant get in",
    "qos": "slurmctld does not start with it",
}
"""Effects of a name without a QoS by the option of a partition, in lower case (`qos_list_build`, and
"has an invalid qos" after it, in src/slurmctld of Slurm)."""

_OF_CHECKS = "slurmctld refuses the jobs of the check"


def unknown_qos(sacctmgr: Sacctmgr, named: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Yield the names without a QoS in the database. Slurm ignores case.

    Args:
        sacctmgr: Client of the database.
        named: Names by the field of the spec, such as `partitions[0].options.AllowQos`.

    Raises:
        SlurmError: slurmdbd does not answer.
        TransportError: slurmdbd's pod does not answer.
    """
    if not named:
        return
    known = sorted(sacctmgr.qos())
    for path, names in named.items():
        for name in names:
            if name.lower() not in known:
                effect = _EFFECTS[path.rpartition(".")[2].lower()] if path.startswith("partitions[") else _OF_CHECKS
                make = f"Correct it, or make it: sacctmgr --immediate add qos {name}"
                yield Problem(
                    path,
                    f'names the QoS "{name}", which the accounting database does not have: {effect}',
                    cure=did_you_mean(name.lower(), known, make),
                )
