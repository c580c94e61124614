"""Provider pinned to its namespace's UID."""

from typing import Any

from pulumi.dynamic import CheckFailure, CheckResult

from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef, cluster_of, controller_lost, namespace_path


class PinnedProvider(LiveProvider):
    """A provider of resources in one namespace, which it knows again by its UID."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Fill in the namespace's UID, where the inputs have none: the recorded one, else the live one.

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
        ClusterRef.model_validate(props).uid(kube)
        return kube

    def recorded_kube(self, props: dict[str, Any]) -> Kube:
        """Return the cluster of a resource to delete, which is the recorded one.

        Raises:
            KubernetesError: its namespace is another one of the same name: a wrong cluster is not touched.
        """
        kube, uid = self.kube(props), props.get("namespace_uid")
        if uid and kube.get(namespace_path(props["namespace"])) is not None:
            ClusterRef.model_validate(props).uid(kube)
        return kube

    def _live_uid(self, props: dict[str, Any]) -> str | None:
        if has_unknown(props):
            return None
        try:
            found = self.kube(props).get(namespace_path(props["namespace"]))
        except KubernetesError:
            return None  # the operation that acts reports it
        return str(found["metadata"]["uid"]) if found else None
