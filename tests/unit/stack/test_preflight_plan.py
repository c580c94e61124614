"""Plans of a stack's file: the Kubernetes that the stack names, and the refusals of the program."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from soperator_pulumi.errors import SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.operations.preflight.access_rights import _OF_PLATFORM
from soperator_pulumi.operations.preflight.planned import PlannedChart, PlannedPlatform
from soperator_pulumi.platform import Platform
from soperator_pulumi.spec.platform.platform_spec import PARTS
from soperator_pulumi.stack.preflight_plan import plans_of, plans_of_file
from soperator_pulumi.testing import deploy
from tests.strategies import a_cluster

KUBECONFIG = '{"clusters": []}'


def a_stack(folder: Path, **values: Any) -> Path:
    """Write a stack with these values under `soperator:`, and one with `__` in its key under another namespace."""
    config = {key.replace("__", ":") if "__" in key else f"soperator:{key}": value for key, value in values.items()}
    file = folder / "Pulumi.prod.yaml"
    file.write_text(yaml.safe_dump({"config": config}))
    return file


@pytest.mark.parametrize(
    ("named", "given", "expected"),
    [
        ({"context": "prod"}, Access(), Access(None, "prod")),
        ({"kubeconfig": KUBECONFIG, "context": "prod"}, Access(), Access(KUBECONFIG, "prod")),
        ({"kubeconfig": KUBECONFIG, "context": "prod"}, Access("file", None), Access("file", "prod")),
        ({"context": "prod"}, Access(None, "other"), Access(None, "other")),
        ({"kubernetes__context": "pulumi"}, Access(), Access(None, "pulumi")),
        ({"kubernetes__context": "pulumi", "context": "prod"}, Access(), Access(None, "prod")),
        ({}, Access(), Access()),
    ],
)
def test_the_cluster_that_the_stack_names_is_checked(
    tmp_path: Path, named: dict[str, str], given: Access, expected: Access
) -> None:
    ((_, access),) = plans_of_file(a_stack(tmp_path, cluster=a_cluster(), **named), access=given)
    assert access == expected


def test_a_kubeconfig_is_found_from_the_folder_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: slurm\n")
    (tmp_path / "stacks").mkdir()
    file = a_stack(tmp_path / "stacks", cluster=a_cluster(), kubeconfig="prod.kubeconfig")
    ((_, access),) = plans_of_file(file)
    assert access == Access(str(tmp_path / "prod.kubeconfig"), None)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"clusters": {"two": a_cluster(name="two")}}, "soperator:clusters: given together with soperator:cluster"),
        ({"clustre": {}}, 'soperator:clustre: unknown key. Did you mean "soperator:cluster"?'),
        ({"local": {"user": "demo"}}, "soperator:local: is for a cluster on this machine"),
        ({"kubeconfig": {"secure": "v1:x"}}, "soperator:kubeconfig: is encrypted"),
        ({"kubeconfig": {"from_stack": "a/b/c", "output": "kubeconfig"}}, "--stack-output a/b/c:kubeconfig=<value>"),
    ],
)
def test_a_stack_that_the_program_would_refuse_or_not_reach_is_not_checked(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(words)):
        plans_of_file(a_stack(tmp_path, cluster=a_cluster(), **values))


def test_a_kubeconfig_that_is_given_takes_the_place_of_an_encrypted_one(tmp_path: Path) -> None:
    file = a_stack(tmp_path, cluster=a_cluster(), kubeconfig={"secure": "v1:x"}, aws__key={"secure": "v1:y"})
    ((_, access),) = plans_of_file(file, access=Access("prod.kubeconfig", None))
    assert access == Access("prod.kubeconfig", None)


@pytest.mark.parametrize(
    ("named", "given", "expected"),
    [
        ({"context": "prod"}, Access(), Access(None, "prod")),
        ({"kubeconfig": KUBECONFIG}, Access(None, "other"), Access(KUBECONFIG, "other")),
        ({"kubernetes__context": "pulumi"}, Access(), Access(None, "pulumi")),
        ({}, Access(), Access()),
    ],
)
def test_of_a_stack_without_a_cluster_the_platform_is_checked(
    tmp_path: Path, named: dict[str, str], given: Access, expected: Access
) -> None:
    platform = {"cert_manager": {}, "gpu_operator": {"exists": True}, "storage_class": "shared"}
    ((plan, access),) = plans_of_file(a_stack(tmp_path, platform=platform, **named), access=given)
    assert isinstance(plan, PlannedPlatform)
    assert (plan.charts, access) == ((PlannedChart("CertManager", "cert-manager"),), expected)


def test_every_object_that_a_platform_makes_itself_is_one_whose_rights_are_known() -> None:
    network = {
        "host_devices": [{"name": "rdma", "devices": {"vendors": ["15b3"]}}],
        "ip_pools": [{"name": "pool", "subnet": "10.9.0.0/16", "addresses_per_node": 8}],
        "networks": [
            {"name": "host", "kind": "host_device", "pool": "rdma", "ip_pool": "pool"},
            {"name": "macvlan", "kind": "macvlan", "interface": "eth1"},
            {"name": "ib", "kind": "ipoib", "interface": "ib0"},
        ],
    }
    storage = {
        "storage_class": {"system": "nfs", "parameters": {"server": "nfs.example.com", "share": "/jail"}},
        "claim": {"name": "jail", "namespace": "hpc"},
        "size_gib": 10,
    }
    charts: dict[str, Any] = {part: {} for part in PARTS} | {"cilium": {"mode": "own"}, "network_operator": network}
    parts = charts | {"shared_storage": storage}
    ((plan, _),) = plans_of(deploy(lambda: Platform("base", parts)), Access())
    volume = {"shared_storage": {"nfs": {"server": "nfs.example.com", "path": "/jail"}, "size_gib": 10}}
    ((second, _),) = plans_of(deploy(lambda: Platform("base", volume)), Access())
    assert isinstance(plan, PlannedPlatform)
    assert isinstance(second, PlannedPlatform)
    assert {body["kind"] for body in (*plan.objects, *second.objects)} == set(_OF_PLATFORM)


PLATFORM = {"cert_manager": {}, "storage_class": "shared"}
NFS = {"shared_storage": {"nfs": {"server": "nfs.example.com", "path": "/jail"}, "size_gib": 10}}


def accesses_of(program: Callable[[], object]) -> dict[str, Access]:
    return {plan.key: access for plan, access in plans_of(deploy(program), Access("otherwise"))}


def test_a_platform_is_checked_in_its_own_kubernetes_and_not_in_another_one_of_the_program() -> None:
    def program() -> None:
        kubernetes.Provider("elsewhere", context="elsewhere")
        Platform("base", PLATFORM, context="mine")

    assert accesses_of(program) == {"soperator:platform": Access(None, "mine")}


def test_a_platform_without_a_kubernetes_is_not_checked_in_another_one_of_the_program() -> None:
    def program() -> None:
        kubernetes.Provider("elsewhere", context="elsewhere")
        Platform("base", PLATFORM)

    assert accesses_of(program) == {"soperator:platform": Access("otherwise")}


@pytest.mark.parametrize(
    "given",
    [
        lambda provider: pulumi.ResourceOptions(provider=provider),
        lambda provider: pulumi.ResourceOptions(providers=[provider]),
    ],
)
def test_a_platform_with_a_provider_is_checked_in_that_ones_kubernetes(
    given: Callable[[kubernetes.Provider], pulumi.ResourceOptions],
) -> None:
    def program() -> None:
        kubernetes.Provider("elsewhere", context="elsewhere")
        Platform("base", NFS, given(kubernetes.Provider("given", context="mine")))

    assert accesses_of(program) == {"soperator:platform": Access(None, "mine")}


def test_two_platforms_have_plans_with_their_own_charts_and_kubernetes() -> None:
    def program() -> None:
        Platform("base", PLATFORM, context="one")
        Platform("other", {"kube_prometheus_stack": {}}, context="two")

    (one, first), (two, second) = plans_of(deploy(program), Access())
    assert isinstance(one, PlannedPlatform)
    assert isinstance(two, PlannedPlatform)
    assert (one.key, two.key) == ("Platform 'base'", "Platform 'other'")
    assert (first, second) == (Access(None, "one"), Access(None, "two"))
    assert [chart.part for chart in (*one.charts, *two.charts)] == ["CertManager", "KubePrometheusStack"]


def test_a_program_without_clusters_and_platforms_has_nothing_to_check() -> None:
    with pytest.raises(SpecError, match="no SlurmCluster and no Platform"):
        plans_of(deploy(lambda: None), Access())


def test_values_of_a_pulumi_environment_are_not_left_out_in_silence(tmp_path: Path) -> None:
    file = a_stack(tmp_path, cluster=a_cluster())
    file.write_text(f"environment: [prod]\n{file.read_text()}")
    with pytest.raises(SpecError, match="environment: comes from Pulumi ESC"):
        plans_of_file(file)
