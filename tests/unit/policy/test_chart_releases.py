"""Charts of one version, and namespaces whose pods may be privileged with a reason."""

from dataclasses import replace
from typing import Any

import pytest

from soperator_pulumi.policy.charts import PINNED_CHARTS, PRIVILEGED_NAMESPACES
from soperator_pulumi.policy.value_tree import UNKNOWN
from tests.unit.policy.views import an_object, below, paths

REPOSITORY = {"repositoryOpts": {"repo": "https://charts.example"}}
DIGEST = f"oci://r.example/c@sha256:{'0' * 64}"


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
