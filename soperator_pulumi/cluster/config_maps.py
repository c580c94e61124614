"""The cluster's ConfigMaps: their files, their readers, and the reload after a change of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soperator_pulumi.cluster.containers import MERGED_SUMS, USERS_CONFIG_MAP
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import SLURM_CONFIG_MAP, AfterSync, ConfigFiles, Reader
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.render.sshd_config import sshd_config
from soperator_pulumi.render.users import authorized_keys, user_files
from soperator_pulumi.spec.cluster import ClusterSpec


@dataclass(frozen=True)
class ConfigMaps:
    """The cluster's ConfigMaps."""

    slurm: ConfigFiles
    """slurm.conf and the files beside it."""
    users: ConfigFiles
    """passwd, group and shadow of the spec's users."""
    ssh_keys: ConfigFiles
    """Public keys, a file a user."""
    sshd: ConfigFiles
    """sshd_config."""

    @property
    def resources(self) -> tuple[ConfigFiles, ...]:
        """All of them."""
        return (self.slurm, self.users, self.ssh_keys, self.sshd)


def create_config_maps(name: str, scope: Scope, spec: ClusterSpec) -> ConfigMaps:
    """Create the ConfigMaps."""

    def config_files(
        config_map: str,
        files: Mapping[str, str],
        readers: Sequence[Reader],
        after_sync: AfterSync = AfterSync.NOTHING,
    ) -> ConfigFiles:
        return ConfigFiles(
            f"{name}-{config_map}",
            config_map=config_map,
            cluster=scope.connection(),
            labels=scope.object_labels(),
            annotations=scope.annotations,
            files=files,
            readers=readers,
            after_sync=after_sync,
            opts=scope.options(),
        )

    slurmctld = Reader(component="controller", container="slurmctld")
    knows_users = [
        # Their sidecar merges the spec's users with those added inside the jail.
        Reader(component="controller", container="slurmctld", sums=MERGED_SUMS),
        Reader(component="login", container="sshd", sums=MERGED_SUMS),
        # A job carries its user's identity. On workers, of which there may be thousands, the files only show names.
        Reader(component="worker", container="slurmd", verified=False),
    ]
    sshd_keys = Reader(component="login", container="sshd")
    sshd = Reader(component="login", container="sshd")
    return ConfigMaps(
        slurm=config_files(SLURM_CONFIG_MAP, slurm_files(spec), [slurmctld], AfterSync.SLURM),
        users=config_files(USERS_CONFIG_MAP, user_files(spec), knows_users),
        ssh_keys=config_files("ssh-keys", authorized_keys(spec), [sshd_keys]),
        sshd=config_files("sshd-config", {"sshd_config": sshd_config(spec)}, [sshd], AfterSync.SSHD),
    )
