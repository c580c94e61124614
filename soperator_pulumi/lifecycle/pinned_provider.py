"""What the providers of resources that are about nodes share besides: they know their namespace again."""

from typing import Any

from pulumi.dynamic import CheckFailure, CheckResult

from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef, cluster_of, controller_lost, namespace_path


class PinnedProvider(LiveProvider):
    """A provider of what is in one namespace, which it knows again by its UID."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Fill in which namespace it is, where the inputs do not say so: the one of before, else the live one.

        It is in the inputs so that a preview knows it: there the outputs of a change are its inputs.
        """
        if news.get("namespace_uid") is None:
            before = olds.get("namespace_uid") if olds.get("namespace") == news["namespace"] else None
            try:
                lost = controller_lost(cluster_of(news))
            except SpecError as error:
                return CheckResult(news, [CheckFailure("", str(error))])
            news = {**news, "namespace_uid": before if before and not lost else self._live_uid(news)}
        return CheckResult(news, [])

    def pinned_kube(self, props: dict[str, Any]) -> Kube:
        """Return the cluster of a resource with these inputs or outputs, in which its namespace is the recorded one.

        Raises:
            KubernetesError: there is no such namespace, or it is another one: this may be a wrong cluster.
        """
        kube = self.kube(props)
        cluster_ref_of(props).uid(kube)
        return kube

    def recorded_kube(self, props: dict[str, Any]) -> Kube:
        """Return the cluster of what is to be deleted, which is the one that was recorded.

        Raises:
            KubernetesError: its namespace is another one of the same name: a wrong cluster is not touched.
        """
        kube, uid = self.kube(props), props.get("namespace_uid")
        if uid and kube.get(namespace_path(props["namespace"])) is not None:
            cluster_ref_of(props).uid(kube)
        return kube

    def _live_uid(self, props: dict[str, Any]) -> str | None:
        if has_unknown(props):
            return None
        try:
            found = self.kube(props).get(namespace_path(props["namespace"]))
        except KubernetesError:
            return None  # who acts says so
        return str(found["metadata"]["uid"]) if found else None


def cluster_ref_of(props: dict[str, Any]) -> ClusterRef:
    """Return where a resource with these inputs or outputs is."""
    return ClusterRef.model_validate({"owner": "", **props})
