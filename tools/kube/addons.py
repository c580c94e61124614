"""Objects of every embedded Kubernetes: the storage class, and the roles of its servers."""

from typing import Any

PROVISIONER = "soperator-pulumi/local"


def objects() -> list[dict[str, Any]]:
    """Return the objects in the order in which they are applied."""
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": "local",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
        },
        *_role(
            "coredns",
            [
                _rule("", ["services", "namespaces", "pods"], "list", "watch"),
                _rule("discovery.k8s.io", ["endpointslices"], "list", "watch"),
            ],
        ),
        *_role(
            "node-agent",
            [
                _rule("", ["pods", "namespaces"], "get", "list", "watch"),
                _rule("networking.k8s.io", ["networkpolicies"], "get", "list", "watch"),
                _rule("storage.k8s.io", ["storageclasses"], "get", "list", "watch"),
                _rule("", ["persistentvolumeclaims"], "get", "list", "watch", "update"),
                _rule("", ["persistentvolumes"], "get", "list", "watch", "create", "delete", "update", "patch"),
                _rule("", ["events"], "create", "update", "patch"),
                _rule("", ["nodes"], "get", "list", "watch"),
            ],
        ),
        _binding("apiserver-kubelet", "system:kubelet-api-admin", "kube-apiserver-kubelet-client"),
    ]


def _rule(group: str, resources: list[str], *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _role(name: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    full = f"soperator-pulumi:{name}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": full},
        "rules": rules,
    }
    return [role, _binding(name, full, full)]


def _binding(name: str, role: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"soperator-pulumi:{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
