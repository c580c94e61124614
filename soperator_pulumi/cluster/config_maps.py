"""The cluster's ConfigMaps: their files, their readers, and the reload after a change."""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.cluster.arguments import refusal
from soperator_pulumi.cluster.containers import HEALTH_CONFIG_MAP, MERGED_SUMS, USERS_CONFIG_MAP
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.errors import Problem
from soperator_pulumi.lifecycle import SLURM_CONFIG_MAP, AfterSync, ConfigFiles, Reader
from soperator_pulumi.render.job_containers import container_files
from soperator_pulumi.render.job_hooks import hook_files
from soperator_pulumi.render.node_health import health_files
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.render.sshd_config import sshd_config
from soperator_pulumi.render.users import authorized_keys, user_files
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.user import CONFIG_MAP_BYTES


@dataclass(frozen=True)
class ConfigMaps:
    """The cluster's ConfigMaps."""

    slurm: ConfigFiles
    """slurm.conf and the files that go with it."""
    users: ConfigFiles
    """passwd, group and shadow of the spec's users."""
    ssh_keys: ConfigFiles
    """Public keys, one file per user."""
    sshd: ConfigFiles
    """sshd_config."""
    health: ConfigFiles
    """Settings of the quick checks, one file per node set, of job hooks, and of containers in jobs."""

    @property
    def resources(self) -> tuple[ConfigFiles, ...]:
        """All ConfigMaps."""
        return (self.slurm, self.users, self.ssh_keys, self.sshd, self.health)


def create_users(name: str, scope: Scope, spec: ClusterSpec) -> ConfigFiles:
    """Create the ConfigMap of the users, which slurmdbd's pod needs as well."""
    knows_users = [
        # Their sidecar merges the spec's users with those added inside the jail.
        Reader(component="controller", container="slurmctld", sums=MERGED_SUMS),
        *(Reader(component=name, container="sshd", sums=MERGED_SUMS) for name in spec.login.by_name),
        # A job carries its user's identity. On workers, of which there may be thousands, the files only show names.
        Reader(component="worker", container="slurmd", verified=False),
    ]
    return _config_files(name, scope, USERS_CONFIG_MAP, user_files(spec), *knows_users)


def create_config_maps(name: str, scope: Scope, spec: ClusterSpec, users: ConfigFiles) -> ConfigMaps:
    """Create the ConfigMaps other than that of the users."""
    slurmctld = Reader(component="controller", container="slurmctld")
    sshd = [Reader(component=name, container="sshd") for name in spec.login.by_name]
    # A node reads them each round: until it has the new ones, it checks by the old.
    of_workers = {**health_files(spec), **hook_files(spec), **container_files(spec)}
    checks = Reader(component="worker", container="slurmd", verified=False)
    return ConfigMaps(
        slurm=_config_files(name, scope, SLURM_CONFIG_MAP, slurm_files(spec), slurmctld, after_sync=AfterSync.SLURM),
        users=users,
        ssh_keys=_config_files(name, scope, "ssh-keys", authorized_keys(spec), *sshd),
        sshd=_config_files(
            name, scope, "sshd-config", {"sshd_config": sshd_config(spec)}, *sshd, after_sync=AfterSync.SSHD
        ),
        health=_config_files(name, scope, HEALTH_CONFIG_MAP, of_workers, checks),
    )


def _config_files(
    name: str,
    scope: Scope,
    config_map: str,
    files: Mapping[str, str],
    *readers: Reader,
    after_sync: AfterSync = AfterSync.NOTHING,
) -> ConfigFiles:
    sizes = {file: len(text.encode()) for file, text in files.items()}
    if sum(sizes.values()) > CONFIG_MAP_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        text = (
            f"its files have {sum(sizes.values())} bytes, but Kubernetes accepts {CONFIG_MAP_BYTES} in one ConfigMap. "
            f"The largest is {largest} with {sizes[largest]}. Shorten what the spec puts there, or use fewer entries."
        )
        raise refusal(name, Problem(f"ConfigMap {config_map}", text))
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
