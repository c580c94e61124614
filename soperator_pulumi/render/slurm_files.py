"""All files of /etc/slurm."""

from soperator_pulumi.render.jail import job_submit_lua, plugstack_conf
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.render.slurm_conf import slurm_conf
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.slurm import Constrain


def slurm_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of /etc/slurm on the controller, from which all nodes fetch theirs."""
    return {
        "slurm.conf": slurm_conf(spec),
        "cgroup.conf": cgroup_conf(spec),
        "gres.conf": gres_conf(spec),
        "plugstack.conf": plugstack_conf(spec),
        "job_submit.lua": job_submit_lua(spec),
    }


def cgroup_conf(spec: ClusterSpec) -> str:
    """Return cgroup.conf, for `slurm.constrain`."""
    if spec.slurm.constrain is Constrain.NONE:
        return lines(HEADER, "CgroupPlugin=disabled")
    return lines(
        HEADER,
        "CgroupPlugin=autodetect",
        "# There is no systemd in a container to make the cgroups.",
        "IgnoreSystemd=yes",
        "EnableControllers=yes",
        "ConstrainCores=yes",
        "ConstrainRAMSpace=yes",
        "# There are no GPUs to keep from a job, and with cgroup v1 it would leave the pod's own devices cgroup.",
        "ConstrainDevices=no",
    )


def gres_conf(spec: ClusterSpec) -> str:
    """Return gres.conf: without GPUs in node sets, slurmd looks for none."""
    del spec  # the same for every cluster so far
    return lines(HEADER, "AutoDetect=off")
