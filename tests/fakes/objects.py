"""The objects of an API server, with the verbs of our own client: each fake of Kubernetes keeps its objects here."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import FIELD_MANAGER, Json

NAMESPACE = "hpc"
SELECTOR = {"app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/instance": "hpc"}
NAMESPACE_PATH = f"/api/v1/namespaces/{NAMESPACE}"
PODS = f"{NAMESPACE_PATH}/pods"
CONFIG_MAPS = f"{NAMESPACE_PATH}/configmaps"
STATEFUL_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CREATED = "2026-11-21T08:00:00Z"
"""Time of the server when it creates an object."""
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


class KilledError(BaseException):
    """The process ends here; nothing in it may catch that."""


@dataclass(eq=False)
class Objects:
    """An API server's objects. Whoever sets a test up may write them directly."""

    objects: dict[str, Json] = field(default_factory=dict)
    """By path."""
    applied: dict[str, dict[str, Json]] = field(default_factory=dict)
    """Last applied body of each manager, by path."""
    changes: int = 0
    calls_left: int | None = None
    """The calls that the process still makes before it is killed; None for any number."""

    def __str__(self) -> str:
        return "https://world"

    def count_call(self) -> None:
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise KilledError
            self.calls_left -= 1

    def collection(self, path: str) -> Mapping[str, Json]:
        """Return the objects of a collection, by name."""
        split = ((object_.rpartition("/"), body) for object_, body in self.objects.items())
        return {name: body for (where, _, name), body in split if where == path}

    def get(self, path: str) -> Json | None:
        self.count_call()
        return self._get(path)

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        self.count_call()
        found = [
            body
            for body in self.collection(path).values()
            if (labels or {}).items() <= (body["metadata"].get("labels") or {}).items()
            and all(_field(body, name) == value for name, value in (fields or {}).items())
        ]
        return list(pickle.loads(pickle.dumps(found)))  # noqa: S301 its own; a copy of a thousand in a tenth of the time

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Json:
        """Create an object; a review of rights is allowed, and kept by no server."""
        del manager
        self.count_call()
        if body["kind"] == "SelfSubjectAccessReview":
            return {**body, "status": {"allowed": True}}
        name = f"{path}/{body['metadata']['name']}"
        if self._get(name) is not None:
            raise KubernetesError(f"{name} already exists")
        made = _merged({"metadata": {"creationTimestamp": CREATED}}, body)
        return made if dry_run else self._put(name, made)

    def apply(self, path: str, body: Json, *, manager: str = FIELD_MANAGER) -> Json:
        """Apply as on the server: what this manager has applied before and leaves out now goes."""
        self.count_call()
        managers = self.applied.setdefault(path, {})
        found = _without(self._get(path) or {}, managers.get(manager, {}), body)
        managers[manager] = copy.deepcopy(body)
        return self._put(path, _merged(found, body))

    def merge(self, path: str, body: Json) -> Json | None:
        self.count_call()
        found = self._get(path)
        if found is None:
            return None
        version = found["metadata"].get("resourceVersion")
        if body.get("metadata", {}).get("resourceVersion", version) != version:
            raise KubernetesError("the object has been modified; please apply your changes to the latest version")
        return self._put(path, _merged(found, body))

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        del dependents_first
        self.count_call()
        self.objects.pop(path, None)
        self.applied.pop(path, None)

    def _get(self, path: str) -> Json | None:
        where, _, name = path.rpartition("/")
        return copy.deepcopy(self.collection(where).get(name))

    def _put(self, path: str, body: Json) -> Json:
        if body != self.objects.get(path):
            self.changes += 1
            self.objects[path] = copy.deepcopy(body)
            self.objects[path]["metadata"]["resourceVersion"] = str(self.changes)
        return copy.deepcopy(self.objects[path])


def labels_of(component: str, node_set: str | None = None) -> dict[str, str]:
    """Return the labels by which the pods of a component, or of one node set, are found."""
    own = {"soperator-pulumi/node-set": node_set} if node_set else {}
    if component.partition("-")[0] == "login":
        own["app.kubernetes.io/name"] = "sshd"
    return {**SELECTOR, "app.kubernetes.io/component": component, **own}


def _field(body: Json, name: str) -> object:
    return reduce(lambda found, key: found.get(key) or {}, name.split("."), body)


def _without(found: Json, before: Json, now: Json) -> Json:
    """Return an object less the fields that were applied before and are not now."""
    kept = {key: value for key, value in found.items() if key in now or key not in before}
    both = {key for key in kept if all(isinstance(entry.get(key), dict) for entry in (found, before, now))}
    return {key: _without(value, before[key], now[key]) if key in both else value for key, value in kept.items()}


def _merged(found: Json, patch: Json) -> Json:
    """Return an object after a JSON merge patch: null removes."""
    merged = {key: value for key, value in found.items() if key not in patch}
    for key, value in patch.items():
        if isinstance(value, dict):
            merged[key] = _merged(found[key] if isinstance(found.get(key), dict) else {}, value)
        elif value is not None:
            merged[key] = value
    return merged
