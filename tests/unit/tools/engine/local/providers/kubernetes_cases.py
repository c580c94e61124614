"""Changes of Kubernetes objects, and a provider's answers to them."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi.provider.experimental import provider as api

from tests.unit.tools.engine.local.providers.provider_answers import checked, difference
from tools.console import UserError
from tools.engine.kubernetes import objects
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.values import UNKNOWN, plain_map

RECORDED = Path(__file__).parent / "recorded" / "kubernetes.json"
"""Answers of the real provider, by case; `RECORD=1` writes them (tests/engine/test_real_providers.py)."""

Object = dict[str, Any]

_POD = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
_SELECTOR = {"matchLabels": {"app": "a"}}
_CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "local",
    "volumeMode": "Filesystem",
}
_TCP_PORT = {"port": 22, "targetPort": 2222, "protocol": "TCP"}
_BASES: Mapping[tuple[str, str], Object] = {
    ("v1", "ConfigMap"): {"data": {"k": "1", "l": "1"}},
    ("v1", "Secret"): {"type": "Opaque", "stringData": {"k": "1"}},
    ("v1", "Service"): {"spec": {"type": "ClusterIP", "selector": {"app": "a"}, "ports": [_TCP_PORT]}},
    ("v1", "ServiceAccount"): {"automountServiceAccountToken": False},
    ("v1", "PersistentVolumeClaim"): {"spec": _CLAIM},
    ("v1", "PersistentVolume"): {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "nfs": {"server": "s", "path": "/"}}
    },
    ("v1", "Pod"): _POD,
    ("v1", "Namespace"): {},
    ("apps/v1", "StatefulSet"): {
        "spec": {
            "serviceName": "s", "replicas": 1, "selector": _SELECTOR, "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"}, "revisionHistoryLimit": 3, "template": _POD,
            "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}],
        }
    },
    ("apps/v1", "Deployment"): {"spec": {"replicas": 1, "selector": _SELECTOR, "template": _POD}},
    ("apps/v1", "DaemonSet"): {"spec": {"selector": _SELECTOR, "template": _POD}},
    ("batch/v1", "Job"): {"spec": {"completions": 1, "parallelism": 1, "backoffLimit": 3, "template": _POD}},
    ("batch/v1", "CronJob"): {"spec": {"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": _POD}}}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"maxUnavailable": 0, "selector": _SELECTOR}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {
        "spec": {"podSelector": _SELECTOR, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 22}]}]}
    },
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}],
    },
    ("storage.k8s.io/v1", "StorageClass"): {"provisioner": "p", "parameters": {"a": "1"}, "reclaimPolicy": "Retain"},
}  # fmt: skip
"""Objects of the kinds that components create, and of those that their values bring."""
_WITHOUT_NAMESPACE = ("PersistentVolume", "Namespace", "StorageClass")

_GONE = object()
_TEMPLATE = "spec.template.spec"
_CHANGES: Mapping[str, Mapping[str, object]] = {
    "ConfigMap": {
        "data.k": "2", "data.l": _GONE, "data.m": "1", "data": _GONE, "binaryData": {"b": "MQ=="}, "immutable": True,
        "metadata.name": "b", "metadata.namespace": "kube-public", "metadata.labels": {"l": "1"},
        "metadata.annotations": {"a": "1"}, "metadata.labels ": {}, "data ": {}, "metadata": UNKNOWN,
    },
    "Secret": {
        "stringData.k": "2", "stringData.l": "1", "stringData": UNKNOWN, "data": {"k": "Mg=="}, "type": "t/t",
        "immutable": True,
    },
    "Service": {
        "spec.type": "LoadBalancer", "spec.clusterIP": "None", "spec.selector.app": "b", "spec.ports.0.targetPort": 22,
        "spec.ports.1": {"port": 23}, "spec.loadBalancerSourceRanges": ["10.0.0.0/8"],
    },
    "ServiceAccount": {"automountServiceAccountToken": True, "imagePullSecrets": [{"name": "s"}]},
    "PersistentVolumeClaim": {
        "spec.resources.requests.storage": "2Gi", "spec.accessModes": ["ReadWriteMany"], "spec.storageClassName": "b",
        "spec.volumeName": "v", "spec.selector": _SELECTOR, "spec.volumeMode": "Block",
        "spec.dataSource": {"kind": "PersistentVolumeClaim", "name": "b"},
    },
    "PersistentVolume": {"spec.nfs.path": "/b", "spec.capacity.storage": "2Gi", "spec.mountOptions": ["hard"]},
    "Pod": {
        "spec.containers.0.image": "i:2", "spec.containers.0.resources.requests.cpu": "0.5", "spec.nodeName": "n",
        "spec.containers.1": {"name": "d", "image": "i"}, "spec.containers.0.resources.requests": {},
        "spec.containers.0.securityContext": {}, "spec.affinity": {}, "spec.volumes.0": {"name": "v"},
        "spec.terminationGracePeriodSeconds": 60,
        "spec.volumes.0.emptyDir": {"sizeLimit": "1Gi"}, "metadata.labels.app": "b", "spec.activeDeadlineSeconds": 9,
        "spec.tolerations": [{"operator": "Exists"}],
    },
    "Namespace": {"metadata.labels": {"l": "1"}, "metadata.name": "b"},
    "StatefulSet": {
        "spec.replicas": 2, "spec.serviceName": "b", "spec.podManagementPolicy": "OrderedReady",
        "spec.selector.matchLabels.app": "b", "spec.updateStrategy.type": "RollingUpdate",
        "spec.revisionHistoryLimit": 5, "spec.minReadySeconds": 3, "spec.persistentVolumeClaimRetentionPolicy":
        {"whenDeleted": "Delete"}, "spec.volumeClaimTemplates.0.spec.resources.requests.storage": "2Gi",
        "spec.volumeClaimTemplates": _GONE, f"{_TEMPLATE}.containers.0.image": "i:2", "spec.template.metadata.labels.b":
        "1", f"{_TEMPLATE}.containers.0.resources.requests.cpu": "0.5", f"{_TEMPLATE}.volumes": _GONE, "spec": UNKNOWN,
        "spec.template": UNKNOWN, f"{_TEMPLATE}.containers.0.image ": UNKNOWN, f"{_TEMPLATE}.nodeSelector": {},
        f"{_TEMPLATE}.containers.0.env": [], f"{_TEMPLATE}.containers.0.command": None, "metadata.annotations": {},
    },
    "Deployment": {"spec.replicas": 2, "spec.selector.matchLabels.app": "b", f"{_TEMPLATE}.containers.0.image": "i:2"},
    "DaemonSet": {"spec.selector.matchLabels.app": "b", f"{_TEMPLATE}.containers.0.image": "i:2"},
    "Job": {
        "spec.completions": 2, "spec.parallelism": 2, "spec.backoffLimit": 1, "spec.suspend": True,
        f"{_TEMPLATE}.containers.0.image": "i:2", "spec.template.metadata.labels.b": "1",
        "spec.ttlSecondsAfterFinished": 9, "spec.activeDeadlineSeconds": 9, "metadata.labels": {"l": "1"},
    },
    "CronJob": {"spec.schedule": "0 2 * * *", "spec.jobTemplate.spec.template.spec.containers.0.image": "i:2"},
    "PodDisruptionBudget": {"spec.maxUnavailable": 1, "spec.selector.matchLabels.app": "b"},
    "NetworkPolicy": {
        "spec.podSelector.matchLabels.app": "b", "spec.policyTypes.1": "Egress", "spec.egress": [], "spec.ingress": [],
        "spec.podSelector": {}, "spec.podSelector.matchLabels": {}, "spec.ingress.0": {},
        "spec.ingress.0.ports.0.endPort": 30, "spec.ingress.0.from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
    "Role": {"rules.0.verbs": ["get", "list"], "rules": []},
    "RoleBinding": {"roleRef.name": "b", "subjects.0.name": "b", "roleRef.kind": "ClusterRole"},
    "StorageClass": {
        "provisioner": "b", "parameters.a": "2", "parameters": {}, "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
    },
}  # fmt: skip
"""By kind: another value at a path, which may be unknown, gone, null or empty."""


@dataclass(frozen=True)
class Case:
    """An object, and another one that takes its place in the program."""

    version: str
    kind: str
    before: Object
    after: Object

    @property
    def urn(self) -> str:
        group = "core/v1" if self.version == "v1" else self.version
        return f"urn:pulumi:s::p::parent:x:Y$kubernetes:{group}:{self.kind}::name"


def _changed(value: object, keys: list[str], change: object) -> object:
    """Return a copy of a tree with another value at a place."""
    if not keys:
        return change
    first, *rest = keys
    if isinstance(value, list):
        index = int(first)
        item = value[index] if index < len(value) else {}
        return [*value[:index], _changed(item, rest, change), *value[index + 1 :]]
    made = dict(value) if isinstance(value, dict) else {}
    changed = _changed(made.get(first), rest, change)
    if changed is _GONE:
        del made[first]
    else:
        made[first] = changed
    return made


def _cases() -> Iterator[tuple[str, Case]]:
    for (version, kind), fields in _BASES.items():
        place = {} if kind in _WITHOUT_NAMESPACE else {"namespace": "default"}
        given = copy.deepcopy(fields)
        metadata = {"name": "a", **place, **given.pop("metadata", {})}
        before = {"apiVersion": version, "kind": kind, "metadata": metadata, **given}
        yield f"{kind}: the same", Case(version, kind, before, before)
        for path, value in _CHANGES[kind].items():
            words = {_GONE: "gone", UNKNOWN: "unknown", None: "null"}
            shown = next((word for it, word in words.items() if value is it), value)
            after = _changed(before, path.strip().split("."), value)
            assert isinstance(after, dict)
            yield f"{kind}: {path.strip()}: {shown}", Case(version, kind, before, after)


CASES = dict(_cases())


def written(found: Mapping[str, Any]) -> str:
    """Return the text of the file: a line for each case."""
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items()) + "\n}\n"


async def answers(provider: LocalProvider, case: Case) -> dict[str, Any]:
    """Return the difference that a provider sees, or why it refuses an object."""
    try:
        before, after = [await checked(provider, case.urn, {}, fields) for fields in (case.before, case.after)]
    except UserError as error:
        return {"refused": str(error)}
    state = objects.checkpoint(plain_map(before), before)
    request = api.DiffRequest(case.urn, "default/a", state, after, [])
    return difference(await provider.diff(request))
