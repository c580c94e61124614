"""The version of Slurm: the check before all of its parts, and the marks on them."""

from pulumi_kubernetes.core.v1 import EnvVarArgs

from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import VERSION_ANNOTATION, SlurmVersion
from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.slurm_parameters import newer_names


def create_slurm_version(name: str, scope: Scope, spec: ClusterSpec) -> SlurmVersion:
    """Create the check of an upgrade, which everything with Slurm in it depends on."""
    version = spec.slurm.version
    partitions = [name for partition in spec.partitions for name in newer_names(partition.options, version)]
    return SlurmVersion(
        f"{name}-slurm-version",
        cluster=scope.connection(),
        version=version,
        new_settings=sorted({*newer_names(spec.slurm.extra, version), *partitions}),
        opts=scope.options(),
    )


def version_of_spec(spec: ClusterSpec) -> EnvVarArgs:
    """Return the variable that makes a daemon refuse to start from an image with another version."""
    return EnvVarArgs(name=layout.SLURM_OF_SPEC, value=spec.slurm.version)


def version_mark(spec: ClusterSpec) -> dict[str, str]:
    """Return the annotation of a StatefulSet with Slurm in its pods."""
    return {VERSION_ANNOTATION: spec.slurm.version}
