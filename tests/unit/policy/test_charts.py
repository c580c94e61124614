"""Charts of one version, namespaces whose pods may be privileged with a reason, and drivers that only people change."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.policy.charts import DRIVER_UPGRADES, PINNED_CHARTS, PRIVILEGED_NAMESPACES
from soperator_pulumi.policy.value_tree import UNKNOWN
from tests.unit.policy.views import an_object, below, paths

REPOSITORY = {"repositoryOpts": {"repo": "https://charts.example"}}
DIGEST = f"oci://r.example/c@sha256:{'0' * 64}"

WHERE = "values.driver.upgradePolicy.autoUpgrade"


@pytest.mark.parametrize("type_", ["helm.sh/v3:Release", "helm.sh/v3:Chart", "helm.sh/v4:Chart"])
@pytest.mark.parametrize(
    ("inputs", "pinned"),
    [
        ({"chart": "c", "version": "1.2.3", **REPOSITORY}, True),
        ({"chart": "c", "version": "v1.2.3-rc.1+build", **REPOSITORY}, True),
        ({"chart": "oci://r.example/c", "version": "1.2.3"}, True),
        ({"chart": "./charts/c"}, True),
        ({"chart": "c-1.2.3.tgz"}, True),
        ({"chart": DIGEST}, True),
        ({"chart": "/srv/charts/c"}, True),
        ({"chart": "added-repository/c"}, False),
        ({"chart": "c", **REPOSITORY}, False),
        ({"chart": "repo/c", **REPOSITORY}, False),
        ({"chart": "c"}, False),
        ({"chart": "oci://r.example/c"}, False),
        ({"chart": "c", "version": "^1.2", **REPOSITORY}, False),
        ({"chart": "c", "version": "1.2.x", **REPOSITORY}, False),
        ({"chart": "c", "version": ">0.0.0-0", **REPOSITORY}, False),
    ],
)
def test_a_chart_is_of_one_version(type_: str, inputs: dict[str, Any], *, pinned: bool) -> None:
    assert paths(PINNED_CHARTS, an_object(type_, inputs)) == ([] if pinned else ["version"])


def test_a_chart_that_registers_no_arguments_is_of_any_version() -> None:
    """So does `Chart` of pulumi_kubernetes.helm.v3."""
    assert paths(PINNED_CHARTS, an_object("helm.sh/v3:Chart", {})) == ["version"]


def test_a_version_that_a_preview_does_not_know_is_judged_by_the_deployment() -> None:
    release = an_object("helm.sh/v3:Release", {"chart": "c", "version": UNKNOWN})
    assert paths(PINNED_CHARTS, release) == []
    assert paths(PINNED_CHARTS, release, unknown=True) == ["version"]


def a_namespace(level: object, annotations: Any = None, labels: Any = None) -> Any:
    enforced = {"pod-security.kubernetes.io/enforce": level, **(labels or {})}
    return an_object("core/v1:Namespace", {"metadata": {"name": "n", "labels": enforced, "annotations": annotations}})


@pytest.mark.parametrize("reason", [None, {}, {"soperator-pulumi/privileged-because": " "}])
def test_privileged_pods_need_a_reason(reason: dict[str, str] | None) -> None:
    (found,) = paths(PRIVILEGED_NAMESPACES, a_namespace("privileged", reason))
    assert "enforce" in found


def test_a_reason_in_the_annotation_or_in_the_settings_is_enough() -> None:
    given = a_namespace("privileged", {"soperator-pulumi/privileged-because": "loads a kernel module"})
    assert paths(PRIVILEGED_NAMESPACES, given) == []
    assert paths(PRIVILEGED_NAMESPACES, a_namespace("privileged"), allowed={"n": "an old agent"}) == []


@pytest.mark.parametrize("level", ["baseline", "restricted", None])
def test_other_levels_need_none(level: str | None) -> None:
    assert paths(PRIVILEGED_NAMESPACES, a_namespace(level)) == []


def test_the_namespace_of_a_cluster_has_no_privileged_container_and_a_label_makes_no_namespace_one() -> None:
    labelled = a_namespace("privileged", labels={"app.kubernetes.io/part-of": "soperator-pulumi"})
    assert paths(PRIVILEGED_NAMESPACES, labelled) != []
    own = below("SlurmCluster", replace(labelled, name="hpc-namespace"))
    assert paths(PRIVILEGED_NAMESPACES, replace(own, parent=own.parent.removesuffix("-namespace"))) == []


def test_a_level_that_a_preview_does_not_know_is_judged_by_the_deployment() -> None:
    assert paths(PRIVILEGED_NAMESPACES, a_namespace(UNKNOWN), unknown=True) != []


def test_a_strangers_namespace_below_a_cluster_needs_a_reason() -> None:
    stranger = replace(a_namespace("privileged"), name="mine")
    assert paths(PRIVILEGED_NAMESPACES, below("SlurmCluster", stranger)) != []


def release(driver: Any, chart: str = "gpu-operator", type_: str = "helm.sh/v3:Release") -> Any:
    return an_object(type_, {"chart": chart, "values": {} if driver is None else {"driver": driver}})


def upgrading(value: object) -> dict[str, Any]:
    return {"upgradePolicy": {"autoUpgrade": value}}


@pytest.mark.parametrize("type_", ["helm.sh/v3:Release", "helm.sh/v4:Chart"])
@pytest.mark.parametrize(
    "driver",
    [
        upgrading(True),
        upgrading("true"),
        upgrading("yes"),
        {"enabled": True, **upgrading(True)},
        None,
        {},
        {"upgradePolicy": {}},
        {"upgradePolicy": None},
        upgrading(None),
    ],
)
def test_the_gpu_operator_upgrades_no_driver_by_itself(driver: Any, type_: str) -> None:
    assert paths(DRIVER_UPGRADES, release(driver, type_=type_)) == [WHERE]


@pytest.mark.parametrize(
    "driver", [upgrading(False), upgrading("false"), {"enabled": False}, {"enabled": False, **upgrading(True)}]
)
def test_a_driver_that_does_not_upgrade_passes(driver: Any) -> None:
    assert paths(DRIVER_UPGRADES, release(driver)) == []


@pytest.mark.parametrize(
    ("chart", "is_found"),
    [
        ("nvidia/gpu-operator", True),
        ("oci://registry.example/charts/gpu-operator", True),
        ("oci://registry.example/gpu-operator@sha256:00", True),
        ("./charts/gpu-operator", True),
        ("./charts/gpu-operator/", True),
        ("gpu-operator-v26.7.0.tgz", True),
        ("gpu-operator-dashboards", False),
        ("network-operator", False),
    ],
)
def test_the_chart_is_known_wherever_it_comes_from(chart: str, *, is_found: bool) -> None:
    assert paths(DRIVER_UPGRADES, release(None, chart)) == ([WHERE] if is_found else [])
    assert paths(DRIVER_UPGRADES, release(upgrading(True), chart)) == [WHERE], "of any chart that is told to"


@pytest.mark.parametrize(
    ("type_", "spec", "where"),
    [
        ("nvidia.com/v1:ClusterPolicy", {"driver": upgrading(True)}, ["spec.driver.upgradePolicy.autoUpgrade"]),
        ("nvidia.com/v1alpha1:NVIDIADriver", upgrading(True), ["spec.upgradePolicy.autoUpgrade"]),
        (
            "mellanox.com/v1alpha1:NicClusterPolicy",
            {"ofedDriver": upgrading(True)},
            ["spec.ofedDriver.upgradePolicy.autoUpgrade"],
        ),
        ("nvidia.com/v1:ClusterPolicy", {"driver": {}}, []),
        ("nvidia.com/v1:ClusterPolicy", {"driver": upgrading(False)}, []),
    ],
)
def test_a_custom_resource_upgrades_no_driver(type_: str, spec: dict[str, Any], where: list[str]) -> None:
    assert paths(DRIVER_UPGRADES, an_object(type_, {"spec": spec})) == where


@given(st.lists(st.sampled_from(["gpu-operator", "subcharts", "a"]), max_size=4))
def test_a_chart_within_charts_is_judged_as_well(above: list[str]) -> None:
    values: dict[str, Any] = {"driver": upgrading(True)}
    for name in reversed(above):
        values = {name: values}
    umbrella = an_object("helm.sh/v3:Release", {"chart": "hpc-platform", "values": values})
    assert paths(DRIVER_UPGRADES, umbrella) == [".".join(["values", *above, "driver.upgradePolicy.autoUpgrade"])]


def test_a_switch_that_a_preview_does_not_know_is_judged_by_the_deployment() -> None:
    for driver in (UNKNOWN, {"upgradePolicy": UNKNOWN}, upgrading(UNKNOWN)):
        assert paths(DRIVER_UPGRADES, release(driver)) == []
        assert paths(DRIVER_UPGRADES, release(driver), unknown=True) == [WHERE]


def test_other_resources_may_have_a_policy_of_that_name() -> None:
    assert paths(DRIVER_UPGRADES, an_object("core/v1:ConfigMap", {"data": upgrading("true")})) == []


@pytest.mark.parametrize("operator", ["gpu-operator-certified", "nvidia-network-operator"])
def test_a_subscription_upgrades_no_operator_of_drivers_without_approval(operator: str) -> None:
    def subscription(approval: object, name: object = operator) -> Any:
        spec = {"name": name, "installPlanApproval": approval}
        return an_object("operators.coreos.com/v1alpha1:Subscription", {"spec": spec})

    where = ["spec.installPlanApproval"]
    assert paths(DRIVER_UPGRADES, subscription("Automatic")) == where
    assert paths(DRIVER_UPGRADES, subscription(None)) == where, "the default is Automatic"
    assert paths(DRIVER_UPGRADES, subscription("Manual")) == []
    assert paths(DRIVER_UPGRADES, subscription("Automatic", "sriov-network-operator")) == [], "it brings no driver"
    assert paths(DRIVER_UPGRADES, subscription(UNKNOWN), unknown=True) == where
    assert paths(DRIVER_UPGRADES, subscription("Manual", UNKNOWN), unknown=True) == []
