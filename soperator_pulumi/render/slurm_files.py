"""All files of /etc/slurm."""

from soperator_pulumi.render.gres import gres_types
from soperator_pulumi.render.jail import job_submit_lua, plugstack_conf
from soperator_pulumi.render.layout import ACCOUNTING_CLUSTER_ID, HEADER, NODE_GRES, lines
from soperator_pulumi.render.slurm_conf import slurm_conf
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.slurm import Constrain


def slurm_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of /etc/slurm on the controller, from which all nodes get theirs."""
    return {
        "slurm.conf": slurm_conf(spec),
        "cgroup.conf": cgroup_conf(spec),
        "gres.conf": gres_conf(spec),
        "plugstack.conf": plugstack_conf(spec),
        "job_submit.lua": job_submit_lua(spec),
        **_confirmed_id(spec),
    }


def _confirmed_id(spec: ClusterSpec) -> dict[str, str]:
    """Return the file with the cluster's confirmed id. It takes effect together with slurm.conf."""
    if spec.accounting is None or spec.accounting.cluster_id is None:
        return {}
    return {ACCOUNTING_CLUSTER_ID: f"{spec.accounting.cluster_id}\n"}


def cgroup_conf(spec: ClusterSpec) -> str:
    """Return cgroup.conf, for `slurm.constrain`."""
    if spec.slurm.constrain is Constrain.NONE:
        return lines(HEADER, "CgroupPlugin=disabled")
    return lines(
        HEADER,
        "CgroupPlugin=autodetect",
        "# The pod has made what systemd would. With IgnoreSystemd and cgroup v2 slurmd ends when it is reconfigured.",
        "IgnoreSystemdOnFailure=yes",
        "EnableControllers=yes",
        "ConstrainCores=yes",
        "ConstrainRAMSpace=yes",
        *_constrain_devices(spec),
    )


def _constrain_devices(spec: ClusterSpec) -> list[str]:
    if gres_types(spec):
        return ["# A job opens its own GPUs and no others.", "ConstrainDevices=yes"]
    return [
        "# There are no GPUs to keep from a job; it has the devices of its pod.",
        "ConstrainDevices=no",
    ]


def gres_conf(spec: ClusterSpec) -> str:
    """Return gres.conf, which includes the file that every node's pod writes from its devices.

    slurmd reads it if slurm.conf has GresTypes, and finds an absolute path on its own machine. AutoDetect would find
    the machine's GPUs, not the pod's.
    """
    own = [f"Include {NODE_GRES}"] if gres_types(spec) else []
    return lines(HEADER, "AutoDetect=off", *own)
