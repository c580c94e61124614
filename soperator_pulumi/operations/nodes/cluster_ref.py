"""Reference to a cluster: its namespace, identified by the UID from Kubernetes."""

import os
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError, Problem, SpecError
from soperator_pulumi.kube.verbs import Kube

CONTROLLER_LOST = "SOPERATOR_CONTROLLER_LOST"
"""Environment variable with the names of clusters whose controller, or whole namespace, is lost for good: `hpc`."""

_OTHER_ACCESS = (
    "If that is not the right cluster, name it: in KUBECONFIG; in the stack's soperator:kubeconfig and "
    "soperator:context, which `pulumi refresh` and `pulumi destroy` read with --run-program; or in the program, which "
    "`pulumi up` records."
)

_NO_NAMES = {"1", "true", "True", "TRUE", "yes"}

INSTANCE_LABEL = "app.kubernetes.io/instance"


class ClusterRef(BaseModel):
    """A cluster and the pods in it, as in the inputs and outputs of resources."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    namespace_uid: str | None = None
    """UID of the recorded namespace; None if none is recorded yet."""
    owner: str
    """Stack and component that own the cluster, as written in the reasons of its drains."""
    selector: dict[str, str]
    """Labels of the pods that a resource is about."""
    component: str = ""
    """URN of the cluster's component."""

    @classmethod
    def of(cls, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> Self:
        """Return the reference in `news`; a missing UID is taken from `olds` if the namespace has the same name."""
        known = olds if olds is not None and olds.get("namespace") == news["namespace"] else {}
        return cls.model_validate({**news, "namespace_uid": news.get("namespace_uid") or known.get("namespace_uid")})

    @property
    def cluster(self) -> str:
        """The cluster's name, for messages."""
        return cluster_of({"namespace": self.namespace, "selector": self.selector})

    def uid(self, kube: Kube) -> str:
        """Return the UID of the live namespace, after checking that it is the recorded one.

        Raises:
            KubernetesError: there is no such namespace, or it has another UID: nothing of another cluster is changed.
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
        """Return True if the namespace does not exist and the user has declared the cluster lost for good.

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
    """Return True if the user has declared, for this run, that the cluster's controller is lost for good.

    Raises:
        SpecError: the variable does not name a cluster: a program may have several, and the others are alive.
    """
    given = os.environ.get(CONTROLLER_LOST, "")
    names = {name.strip() for name in given.split(",")}
    if cluster not in names and names & _NO_NAMES:
        problem = (
            f'got "{given}", needs the name of the cluster whose controller is gone for good, or several with '
            f"separated by commas. For this one: {CONTROLLER_LOST}={cluster}."
        )
        raise SpecError(CONTROLLER_LOST, [Problem("", problem)])
    return cluster in names
