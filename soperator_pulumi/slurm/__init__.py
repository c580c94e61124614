"""Talking to a live Slurm. Nothing here knows Pulumi."""

from soperator_pulumi.slurm.client import Job, Node, SlurmClient
from soperator_pulumi.slurm.transport import Answer, ExecTransport, Transport
from soperator_pulumi.slurm.trial import trial_start

__all__ = ["Answer", "ExecTransport", "Job", "Node", "SlurmClient", "Transport", "trial_start"]
