"""Reference to a cluster: its namespace, known again by the UID that Kubernetes has given it."""

import os
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError, Problem, SpecError
from soperator_pulumi.operations.kube import Kube

CONTROLLER_LOST = "SOPERATOR_CONTROLLER_LOST"
"""Environment variable that names the clusters whose controller, or whole namespace, is gone for good: `hpc`."""

_OTHER_ACCESS = (
    "If that is not the right cluster, name it: in KUBECONFIG; in the stack's soperator:kubeconfig and "
    "soperator:context, which `pulumi refresh` and `pulumi destroy` take with --run-program; or in the program, which "
    "`pulumi up` records."
)

_NO_NAMES = {"1", "true", "True", "TRUE", "yes"}

INSTANCE_LABEL = "app.kubernetes.io/instance"


class ClusterRef(BaseModel):
    """A cluster, and the pods in it, as resources have them in their inputs and outputs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    namespace_uid: str | None = None
    """UID of the recorded namespace; None before one is."""
    owner: str
    """Stack and component that the cluster belongs to; stands in the reasons of our drains."""
    selector: dict[str, str]
    """Labels of the pods that a resource is about."""
    component: str = ""
    """URN of the cluster's component."""

    @classmethod
    def of(cls, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> Self:
        """Read inputs; where they have no UID, the namespace is the recorded one of the same name."""
        known = olds if olds is not None and olds.get("namespace") == news["namespace"] else {}
        return cls.model_validate({**news, "namespace_uid": news.get("namespace_uid") or known.get("namespace_uid")})

    @property
    def cluster(self) -> str:
        """The cluster's name, for messages."""
        return cluster_of({"namespace": self.namespace, "selector": self.selector})

    def uid(self, kube: Kube) -> str:
        """Return the UID of the live namespace, which is the recorded one where one is recorded.

        Raises:
            KubernetesError: there is no such namespace, or it is another one; a wrong cluster is not touched.
            SpecError: SOPERATOR_CONTROLLER_LOST names no cluster.
        """
        found = kube.get(namespace_path(self.namespace))
        live = str(found["metadata"]["uid"]) if found else None
        if live is None:
            raise KubernetesError(
                f"There is no namespace {self.namespace} in the Kubernetes at {kube}, so nothing is done. "
                f"{_OTHER_ACCESS} Only if the namespace was deleted for good, run `pulumi refresh`, and then "
                f"`pulumi up`, or run `pulumi destroy`, with {CONTROLLER_LOST}={self.cluster}."
            )
        if self.namespace_uid and live != self.namespace_uid and not controller_lost(self.cluster):
            raise KubernetesError(
                f"The namespace {self.namespace} is not the one that this stack has recorded (its UID is {live}, not "
                f"{self.namespace_uid}) in the Kubernetes at {kube}, so nothing is done. {_OTHER_ACCESS} Only if the "
                f"namespace was deleted and created again, run once with {CONTROLLER_LOST}={self.cluster}."
            )
        return live

    def given_up(self, kube: Kube) -> bool:
        """Return True where there is no such namespace, and the user has named the cluster as gone for good.

        Raises:
            KubernetesError: the cluster cannot be reached.
            SpecError: SOPERATOR_CONTROLLER_LOST names no cluster.
        """
        return controller_lost(self.cluster) and kube.get(namespace_path(self.namespace)) is None


def cluster_of(props: Mapping[str, Any]) -> str:
    """Return the name of the cluster of a resource with these inputs or outputs."""
    return str(props["selector"].get(INSTANCE_LABEL, props["namespace"]))


def namespace_path(namespace: str) -> str:
    """Return the path of a namespace."""
    return f"/api/v1/namespaces/{namespace}"


def controller_lost(cluster: str) -> bool:
    """Return True where the user has named the cluster, for this run, as one whose controller is gone for good.

    Raises:
        SpecError: it names no cluster: a program may have several, of which the others live.
    """
    given = os.environ.get(CONTROLLER_LOST, "")
    names = {name.strip() for name in given.split(",")}
    if cluster not in names and names & _NO_NAMES:
        problem = (
            f'got "{given}", needs the name of the cluster whose controller is gone for good, or several with '
            f"commas between. For this one: {CONTROLLER_LOST}={cluster}."
        )
        raise SpecError(CONTROLLER_LOST, [Problem("", problem)])
    return cluster in names
