"""Modules of helm's build."""

import re

from tools.engine.local.helm.helm_binary import BINARY
from tools.kube.binaries import GO, KUBERNETES


def required(go_mod: str) -> dict[str, str]:
    return dict(re.findall(r"^\s+(k8s\.io/\S+|golang\.org/x/\S+|google\.golang\.org/\S+) (v\S+)", go_mod, re.MULTILINE))


def test_helm_has_the_versions_of_the_servers_so_that_go_compiles_those_once() -> None:
    helm = required((BINARY.module / "go.mod").read_text())
    servers = required((GO / "go.mod").read_text())
    shared = {
        name for name in helm.keys() & servers.keys() if servers[name] != "v0.0.0"
    }  # a folder of Kubernetes' tree
    assert "k8s.io/client-go" in shared
    assert {name: helm[name] for name in shared} == {name: servers[name] for name in shared}


def test_helm_is_stamped_with_the_version_of_kubernetes() -> None:
    _, minor, _ = KUBERNETES.version.split(".")
    assert f"chartutil.k8sVersionMinor={minor}" in BINARY.link_flags
