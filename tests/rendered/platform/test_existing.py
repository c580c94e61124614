"""Parts that someone else installed: checked in one resource before all others, and not touched."""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.operations.installed import Requirement
from soperator_pulumi.platform import GpuOperator, Platform
from soperator_pulumi.spec.platform.platform_spec import PARTS
from soperator_pulumi.testing import Secret, deploy
from tests.rendered.platform.platforms import WHOLE, a_platform

KEPT = (("", "Release"), ("-namespace", "Namespace"))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_exists_is_checked_and_not_installed(part: str) -> None:
    deployment = a_platform(**{part: {"exists": True}})
    assert deployment.resources("Release") == deployment.resources("Namespace") == ()
    (asked,) = deployment.one("platform-installed").inputs["requirements"]
    requirement = Requirement.model_validate(asked)
    assert requirement.part == part
    assert requirement.definitions


def test_one_check_holds_all_parts_and_comes_before_what_is_installed() -> None:
    parts: dict[str, Any] = {**WHOLE, "cilium": {"exists": True}, "gpu_operator": {"exists": True}}
    deployment = a_platform(**parts)
    asked = deployment.one("platform-installed").inputs["requirements"]
    assert [item["part"] for item in asked] == ["cilium", "gpu_operator"]
    for release in deployment.resources("Release"):
        assert "platform-installed" in {awaited.name for awaited in deployment.waits_for(release)}


def test_parts_of_our_own_are_on_record_with_those_that_are_kept() -> None:
    deployment = a_platform(cert_manager={"keep": True}, cilium={"exists": True}, network_operator={})
    assert deployment.one("platform-installed").inputs["own"] == {"cert_manager": True, "network_operator": False}
    kept = [deployment.one(f"platform-cert-manager{suffix}", kind) for suffix, kind in KEPT]
    assert all(resource.request.retainOnDelete for resource in kept)
    assert not deployment.one("platform-network-operator", "Release").request.retainOnDelete


def test_a_part_by_itself_is_checked_as_well() -> None:
    deployment = deploy(lambda: GpuOperator("gpus", {"exists": True, "runtime_class": "nvidia-legacy"}))
    (asked,) = deployment.one("gpus-installed").inputs["requirements"]
    assert "nvidia-legacy" in str(asked)


def test_an_explicit_provider_without_a_kubeconfig_could_be_that_of_another_kubernetes() -> None:
    def program(**access: Any) -> None:
        provider = kubernetes.Provider("other", kubeconfig="apiVersion: v1\n")
        Platform("platform", {"cilium": {"exists": True}}, pulumi.ResourceOptions(provider=provider), **access)

    with pytest.raises(SpecError, match="kubeconfig: missing, while an explicit Kubernetes provider"):
        deploy(program)
    deployment = deploy(lambda: program(kubeconfig="apiVersion: v1\n"))
    assert deployment.one("platform-installed").inputs["kubeconfig"] == Secret("apiVersion: v1\n")


def test_a_part_by_itself_next_to_an_explicit_provider_is_refused_with_the_next_step() -> None:
    def program() -> None:
        provider = kubernetes.Provider("other", kubeconfig="apiVersion: v1\n")
        GpuOperator("gpus", {"exists": True}, pulumi.ResourceOptions(provider=provider))

    with pytest.raises(
        SpecError, match=r"GpuOperator 'gpus'(.|\n)*Declare the part in a Platform with the same kubeconf"
    ):
        deploy(program)


def test_namespaces_of_the_user_must_admit_privileged_pods_where_ours_do() -> None:
    parts = {
        name: {**given, "create_namespace": False, "namespace": f"ns-{index}"}
        for index, (name, given) in enumerate(WHOLE.items())
    }
    asked = a_platform(**parts).one("platform-installed").inputs["requirements"]
    own = a_platform(
        **{name: {**given, "namespace": f"ns-{index}"} for index, (name, given) in enumerate(WHOLE.items())}
    )
    levels = {
        resource.inputs["metadata"]["name"]: resource.inputs["metadata"]["labels"]
        for resource in own.resources("Namespace")
    }
    privileged = {
        name for name, labels in levels.items() if labels["pod-security.kubernetes.io/enforce"] == "privileged"
    }
    assert privileged
    assert {item["rules"][0]["path"].rpartition("/")[2] for item in asked} == privileged


def test_multus_makes_a_setting_of_an_existing_cilium_matter() -> None:
    def rules(**parts: Any) -> list[Any]:
        requirements = a_platform(cilium={"exists": True}, **parts).one("platform-installed").inputs["requirements"]
        return list(requirements[0]["rules"])

    assert rules() == []
    assert "data.cni-exclusive" in rules(network_operator=WHOLE["network_operator"])[0]["allowed"]
