"""Talking to a live Slurm. Nothing here knows Pulumi."""

from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.hostlist import compress, expand
from soperator_pulumi.slurm.marker import Marker, Operation, drain_of_ours, drained_by_another
from soperator_pulumi.slurm.states import Job, Node, Reservation, Snapshot
from soperator_pulumi.slurm.transport import Answer, ExecTransport, Transport
from soperator_pulumi.slurm.trial import trial_start

__all__ = [
    "Answer",
    "ExecTransport",
    "Job",
    "Marker",
    "Node",
    "Operation",
    "Reservation",
    "SlurmClient",
    "Snapshot",
    "Transport",
    "compress",
    "drain_of_ours",
    "drained_by_another",
    "expand",
    "trial_start",
]
