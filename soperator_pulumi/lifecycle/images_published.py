"""The resource after the Job that fills the store of shared images: up to date when all images are there."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import ImagesError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.shown_lines import show_once
from soperator_pulumi.operations.batch_jobs import STUCK_SECONDS, JobFollower
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, report


class ImagesPublishedInputs(ClusterRef):
    """The images that the Job publishes."""

    job: str
    job_uid: str = ""
    """UID of the Job. Another Job fills the store again."""
    images: tuple[str, ...]
    """Images, as the user named them."""
    timeout_seconds: float = STUCK_SECONDS
    """Time for the Job's pod to get a machine and an image, in seconds."""


class ImagesPublishedProvider(LiveProvider):
    """Wait on create and update. Delete removes nothing: a task may run in an image."""

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare the Jobs, and show which images are added and removed."""
        former, wanted = olds.get("images") or [], news.get("images") or []
        if not has_unknown({"images": wanted}):
            show_once(id_, [f"images: adds {image}" for image in wanted if image not in former])
            goes = [image for image in former if image not in wanted]
            show_once(id_, [f"images: removes {image}, unless a task runs in it" for image in goes])
        return DiffResult(changes=has_unknown(news) or _filled(olds) != _filled(news))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the images."""
        self._wait(props)
        return CreateResult(f"{props['namespace']}/{props['job']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Wait for the images."""
        self._wait(news)
        return UpdateResult({**news})

    def _wait(self, props: dict[str, Any]) -> None:
        """Follow the Job to its end."""
        inputs = ImagesPublishedInputs.model_validate(props)
        job = JobFollower(
            self.kube(props),
            namespace=inputs.namespace,
            name=inputs.job,
            container="publish",
            prefix="images",
            report=report,
            clock=MachineClock(),
            stuck_seconds=inputs.timeout_seconds,
            advice="If no machine has room for it, lower jail.populate.pod_resources.",
        )
        outcome = job.end_afresh()
        if outcome.failure:
            raise ImagesError(
                f"images: not all of containers.images are there: {outcome.failure}\n"
                "The cluster works without them. Fix the problems above, in the spec or at the registry, and run "
                "again: filling continues where it stopped."
            )


def _filled(props: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the inputs that decide what is in the store."""
    inputs = ImagesPublishedInputs.model_validate(props)
    return inputs.namespace, inputs.job, inputs.job_uid, inputs.images


class ImagesPublished(LiveResource, module="soperator", name="ImagesPublished"):
    """Shared images, all of which are in the store."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        job: str,
        job_uid: pulumi.Input[str],
        images: Sequence[str],
        timeout_seconds: int,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster.
            job: Name of the Job that brings the images.
            job_uid: UID of the Job.
            images: The images, for a preview.
            timeout_seconds: Time for the Job's pod to get a machine and an image.
            opts: Options of the resource.
        """
        inputs = {"job": job, "job_uid": job_uid, "images": [*images], "timeout_seconds": timeout_seconds}
        super().__init__(ImagesPublishedProvider(), resource_name, cluster, inputs, opts)
