"""From a spec to the text of files: pure functions, the same text for the same spec."""

from soperator_pulumi.render.jail import (
    active_tree,
    jail_binds,
    login_arguments,
    plugstack_conf,
    source_name,
    submounts,
    tree_id,
)
from soperator_pulumi.render.job_submit import job_submit_lua
from soperator_pulumi.render.layout import SRUN_PORTS
from soperator_pulumi.render.other_conf import cgroup_conf, gres_conf
from soperator_pulumi.render.reload import Change, Effect, changes
from soperator_pulumi.render.slurm_conf import node_conf, slurm_conf
from soperator_pulumi.render.sshd_config import sshd_config
from soperator_pulumi.render.trial import trial_files
from soperator_pulumi.render.users import authorized_keys, group, passwd, shadow, user_files
from soperator_pulumi.spec.cluster import ClusterSpec

__all__ = [
    "SRUN_PORTS",
    "Change",
    "Effect",
    "active_tree",
    "authorized_keys",
    "cgroup_conf",
    "changes",
    "gres_conf",
    "group",
    "jail_binds",
    "job_submit_lua",
    "login_arguments",
    "node_conf",
    "passwd",
    "plugstack_conf",
    "shadow",
    "slurm_conf",
    "slurm_files",
    "source_name",
    "sshd_config",
    "submounts",
    "tree_id",
    "trial_files",
    "user_files",
]


def slurm_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of /etc/slurm on the controller, from where all nodes take those that they read."""
    return {
        "slurm.conf": slurm_conf(spec),
        "cgroup.conf": cgroup_conf(spec),
        "gres.conf": gres_conf(spec),
        "plugstack.conf": plugstack_conf(spec),
        "job_submit.lua": job_submit_lua(spec),
    }
