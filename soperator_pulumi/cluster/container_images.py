"""Shared container images: a Job that fills their store on the jail's volume, and copies on machines' disks."""

import pulumi
from pulumi_kubernetes.batch.v1 import Job, JobSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, EnvVarArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import HEALTH_CONFIG_MAP, INIT, hardened, requirements
from soperator_pulumi.cluster.jail_pods import filling_job
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.pod_template import Parts
from soperator_pulumi.cluster.scope import NOT_AWAITED, Scope
from soperator_pulumi.lifecycle import ImagesPublished
from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.job_containers import ContainersSpec
from soperator_pulumi.spec.node_set import NodeSetSpec

CONTAINER_IMAGES = "container-images"
"""Component label of the pod, and name of the Job."""

_CREDENTIALS = "/run/credentials"
_ATTEMPTS = 3
"""Retries, within a minute with growing pauses."""


class ContainerImages(pulumi.ComponentResource):
    """The Job that fills the store of shared images, and removes images that are no longer in the spec.

    The Job is recreated when the list or the workers' image changes. It then resolves all tags again.
    """

    job: Job
    """The Job that fills the store. Pulumi does not wait for its end; `published` does."""

    published: ImagesPublished
    """Waits until all images are in the store, with progress, and reports the reason of a failure."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        containers: ContainersSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Create the Job.

        Args:
            name: Name of the component.
            scope: Scope of the cluster's children.
            parts: Parts of the cluster.
            containers: Settings of containers in jobs.
            opts: Options of the component.
        """
        super().__init__("soperator-pulumi:index:ContainerImages", name, {}, opts)
        own = scope.within(self)
        self.job = Job(
            f"{name}-publish",
            metadata=own.metadata(CONTAINER_IMAGES, CONTAINER_IMAGES, annotations=NOT_AWAITED),
            spec=_job(own, parts, containers),
            opts=own.options(pulumi.ResourceOptions(delete_before_replace=True)),
        )
        self.published = ImagesPublished(
            f"{name}-published",
            cluster=own.connection(),
            job=CONTAINER_IMAGES,
            job_uid=self.job.metadata.apply(lambda metadata: metadata.uid or ""),
            images=containers.images,
            timeout_seconds=parts.spec.ready_timeout_seconds,
            opts=own.options(depends_on=[self.job]),
        )
        self.register_outputs({})


def create_container_images(name: str, scope: Scope, parts: Parts) -> ContainerImages | None:
    """Create the Job if jobs may have containers. Without images, it removes those of a former spec."""
    containers = parts.spec.containers
    if containers is None:
        return None
    return ContainerImages(
        f"{name}-container-images", scope=scope, parts=parts, containers=containers, opts=scope.options()
    )


def published_images(parts: Parts) -> list[Mount]:
    """Return the read-only mount of the store. It exists even without images: the first one recreates no pod."""
    if parts.spec.containers is None:
        return []
    return [_store(parts, read_only=True)]


def local_images(spec: ClusterSpec, node_set: NodeSetSpec) -> list[Mount]:
    """Return the mount of the machine's directory for copies of images, if the node set has one."""
    local = spec.containers.local if spec.containers else None
    if local is None or not local.is_on(node_set.name):
        return []
    return [mounts.machine_directory("local-images", local.host_path, layout.LOCAL_IMAGES, needs_mode=True)]


def _store(parts: Parts, *, read_only: bool = False) -> Mount:
    return mounts.claim("jail", parts.jail.name, layout.PUBLISHED_IMAGES, layout.IMAGES_IN_JAIL, read_only=read_only)


def _job(scope: Scope, parts: Parts, containers: ContainersSpec) -> JobSpecArgs:
    spec = parts.spec
    places = [
        _store(parts),
        mounts.config_files(HEALTH_CONFIG_MAP, layout.HEALTH_SETTINGS),
        mounts.memory("tmp", layout.TEMPORARY_DIR, "64Mi"),
        *_credentials(containers),
    ]
    main = ContainerArgs(
        name="publish",
        # slurmd's image has the programs that bring images for users.
        image=spec.images.worker,
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, layout.PUBLISH_IMAGES, *containers.images],
        env=[
            EnvVarArgs(name="HOME", value=layout.TEMPORARY_DIR),
            EnvVarArgs(name="DOCKER_CONFIG", value=_CREDENTIALS),
        ],
        # All files are root's, and root has no right on others'.
        security_context=hardened(),
        resources=requirements(spec.jail.populate.pod_resources),
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[place.in_container() for place in places],
    )
    return filling_job(scope, spec, CONTAINER_IMAGES, main, places=places, attempts=_ATTEMPTS)


def _credentials(containers: ContainersSpec) -> list[Mount]:
    if containers.images_secret is None:
        return []
    files = {layout.DOCKER_CONFIG_KEY: "config.json"}
    return [mounts.secret_files_as("credentials", containers.images_secret, files, _CREDENTIALS, 0o400)]
