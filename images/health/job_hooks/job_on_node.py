"""The job for which slurmd runs the hooks, from the variables of its Prolog and Epilog."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class JobOnNode(NamedTuple):
    """The job that begins or ends on the node."""

    job_id: str
    uid: int
    """User of the job; 0 if slurmd does not name one."""
    node: str
    gpus: tuple[int, ...] = ()
    """The job's GPUs on the node, by minor number: /dev/nvidia<number> in gres.conf."""

    @property
    def node_set(self) -> str:
        """Return the node set of the node."""
        return self.node.rpartition("-")[0]


def job_of(variables: Mapping[str, str], node: str) -> JobOnNode:
    """Return the job (slurm.conf(5), "PROLOG AND EPILOG SCRIPTS": SLURM_JOB_ID, SLURM_JOB_UID, SLURM_JOB_GPUS)."""
    uid = variables.get("SLURM_JOB_UID", "")
    gpus = re.findall(r"(?:^|,)(\d+)(?=,|$)", variables.get("SLURM_JOB_GPUS", ""))
    return JobOnNode(
        variables.get("SLURM_JOB_ID", ""), int(uid) if uid.isdecimal() else 0, node, tuple(int(gpu) for gpu in gpus)
    )
