"""The slurm.conf of pods that are clients of slurmctld but not nodes of the cluster: slurmrestd, the exporter."""

from collections.abc import Mapping

from soperator_pulumi.render import layout
from soperator_pulumi.render.communication import communication_lines
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.spec.cluster import ClusterSpec


def client_slurm_conf(spec: ClusterSpec, more: Mapping[str, str] | None = None) -> str:
    """Return the file, with which client programs find slurmctld.

    Args:
        spec: The cluster.
        more: Further parameters of the client.
    """
    settings = {
        "ClusterName": spec.name,
        "SlurmctldHost": layout.CONTROLLER_HOST,
        "SlurmctldPort": str(layout.SLURMCTLD_PORT),
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "SelectType": "select/cons_tres",
        **communication_lines(spec),
        **(more or {}),
    }
    return lines(HEADER, *(f"{name}={value}" for name, value in settings.items()))
