"""All files of /etc/slurm."""

from soperator_pulumi.render.jail import plugstack_conf
from soperator_pulumi.render.job_submit import job_submit_lua
from soperator_pulumi.render.other_conf import cgroup_conf, gres_conf
from soperator_pulumi.render.slurm_conf import slurm_conf
from soperator_pulumi.spec.cluster import ClusterSpec


def slurm_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of /etc/slurm on the controller, from where all nodes take those that they read."""
    return {
        "slurm.conf": slurm_conf(spec),
        "cgroup.conf": cgroup_conf(spec),
        "gres.conf": gres_conf(spec),
        "plugstack.conf": plugstack_conf(spec),
        "job_submit.lua": job_submit_lua(spec),
    }
