"""Inputs of resources, a small Kubernetes with the namespace that a stack has recorded, and access to it."""

import json

import pytest
from pulumi.dynamic import Config

from tests.fakes.objects import NAMESPACE, SELECTOR
from tests.fakes.small_world import SmallWorld

NAMESPACE_PATH = f"/api/v1/namespaces/{NAMESPACE}"
OWNER_LABEL, OWNER = "soperator-pulumi/owner", "project.dev.hpc"

CONFIG_FILES = {
    "namespace": NAMESPACE,
    "namespace_uid": "recorded",
    "owner": OWNER,
    "name": "slurm-config",
    "labels": {"team": "hpc"},
    "annotations": {},
    "files": {"slurm.conf": "KillWait=30\n"},
    "selector": SELECTOR,
    "readers": [{"component": "controller", "container": "slurmctld", "verified": True}],
    "after_sync": "nothing",
    "kubeconfig": None,
    "context": None,
}
"""Inputs of ConfigFiles."""

PREREQUISITES = {
    "where": "soperator:cluster",
    "namespace": NAMESPACE,
    "create_namespace": True,
    "owner": OWNER,
    "owner_label": OWNER_LABEL,
    "part_of": {"app.kubernetes.io/part-of": "soperator-pulumi"},
    "references": [],
    "kubeconfig": None,
    "context": None,
}
"""Inputs of Prerequisites."""


def reached_world(patch: pytest.MonkeyPatch) -> SmallWorld:
    """Return a world that every provider reaches."""
    world = SmallWorld()
    world.objects[NAMESPACE_PATH] = {"metadata": {"uid": "recorded", "labels": {OWNER_LABEL: OWNER}}}
    world.connect(patch)
    return world


def a_config(**values: str) -> Config:
    """Return the configuration of a stack; `__` stands for the colon of a key."""
    return Config({key.replace("__", ":"): value for key, value in values.items()}, "project")


def a_kubeconfig(server: str, token: str) -> str:
    """Return a kubeconfig with the contexts `east` and `west`, of which the latter leads elsewhere."""
    content = {
        "current-context": "east",
        "clusters": [
            {"name": "e", "cluster": {"server": server}},
            {"name": "w", "cluster": {"server": "https://west"}},
        ],
        "contexts": [{"name": "east", "context": {"cluster": "e"}}, {"name": "west", "context": {"cluster": "w"}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    return json.dumps(content)


OLD, NEW, OTHER = a_kubeconfig("https://a", "old"), a_kubeconfig("https://a/", "new"), a_kubeconfig("https://b", "new")
