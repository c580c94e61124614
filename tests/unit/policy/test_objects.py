"""Policies on objects: names, labels, and claims with data."""

import json
from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.credentials import SECRETS_IN_SECRETS
from soperator_pulumi.policy.kept_data import DISPOSABLE_ANNOTATION, KEPT_DATA, KEPT_NAMESPACES, KEPT_VOLUMES
from soperator_pulumi.policy.naming import LABELS, NAMES, LabelSettings
from soperator_pulumi.policy.recorded import opened
from soperator_pulumi.render.layout import STATE_LOSS_ACCEPTED
from tests.unit.policy.views import RUN, a_pod, a_resource_of_ours, an_object, as_stateful_set, below, paths

OURS = {"app.kubernetes.io/part-of": "soperator-pulumi"}


def named(metadata: Any, kind: str = "core/v1:ConfigMap") -> ResourceView:
    return an_object(kind, {"metadata": metadata})


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"name": "a", "namespace": "shop"}, []),
        ({"name": "a"}, []),
        ({"namespace": "shop"}, ["metadata.name"]),
        ({"name": "a-1f2e3d", "annotations": {"pulumi.com/autonamed": "true"}}, ["metadata.name"]),
        ({"name": "a", "namespace": "default"}, ["metadata.namespace"]),
        ({"name": "a", "namespace": "kube-system"}, ["metadata.namespace"]),
        ({"name": UNKNOWN, "namespace": UNKNOWN}, []),
        (None, ["metadata.name"]),
    ],
)
def test_an_object_has_a_name_and_a_namespace_of_its_own(metadata: Any, found: list[str]) -> None:
    assert paths(NAMES, named(metadata)) == found


@pytest.mark.parametrize("kind", ["helm.sh/v3:Release", "yaml/v2:ConfigGroup", "core/v1:ConfigMapPatch"])
def test_a_chart_and_a_patch_are_no_objects_of_their_own(kind: str) -> None:
    assert paths(NAMES, named({}, kind)) == []
    assert paths(LABELS, named({}, kind)) == []
    assert paths(NAMES, a_resource_of_ours("ConfigFiles")) == []


def test_a_required_label_is_there_with_its_value() -> None:
    given = {**OURS, "team": "hpc", "empty": ""}
    assert paths(LABELS, named({"labels": given})) == []
    assert paths(LABELS, named({"labels": {}})) == ['metadata.labels["app.kubernetes.io/part-of"]']
    assert paths(LABELS, named({"labels": given}), required=["team", "empty"]) == ["metadata.labels.empty"]
    assert paths(LABELS, named({"labels": given}), values={"team": "hpc"}) == []
    assert paths(LABELS, named({"labels": given}), values={"team": "ai"}) == ["metadata.labels.team"]
    assert paths(LABELS, named({"labels": UNKNOWN}), unknown=True) == ["metadata.labels"]
    unknown = named({"labels": {"app.kubernetes.io/part-of": UNKNOWN}})
    assert paths(LABELS, unknown, unknown=True) == ['metadata.labels["app.kubernetes.io/part-of"]']


def test_a_missing_label_is_added_and_one_that_is_there_stays() -> None:
    settings = LabelSettings(values={"team": "hpc", "cost-centre": "4711"})
    assert LABELS.remediate
    edits = [*LABELS.remediate(named({"labels": {"team": "ai"}}), RUN, settings)]
    assert [(edit.path, edit.value) for edit in edits] == [(("metadata", "labels", "cost-centre"), "4711")]


def group(**inputs: Any) -> list[ResourceView]:
    return [*opened(an_object("yaml/v2:ConfigGroup", inputs, "group"))][1:]


def test_the_objects_of_a_list_in_a_group_are_judged_one_by_one() -> None:
    leak = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"token": "abc"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [leak]}
    for found in (group(objs=[listed]), group(yaml=json.dumps(listed))):
        assert [resource_view.type for resource_view in found] == ["kubernetes:core/v1:ConfigMap"]
        assert paths(SECRETS_IN_SECRETS, *found) == ["data.token"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: 1}, data: {2024-13-45: a, null: b, 2001-01-01: c}}", 1),
        ("{apiVersion: v1, kind: ConfigMap, metadata: name}", 1),
        ("{apiVersion: v1, kind: ConfigMap, data: {a: !!timestamp 2001-99-99}}", 0),
        ("&a {apiVersion: v1, kind: ConfigMap, data: *a}", 0),
        ("{apiVersion: v1, kind: List, items: {}}", 0),
    ],
)
def test_odd_manifests_of_a_group_end_no_judgement(text: str, found: int) -> None:
    objects = group(yaml=text)
    assert len(objects) == found
    for policy in (SECRETS_IN_SECRETS, NAMES):
        paths(policy, *objects)


def claim(**options: Any) -> ResourceView:
    return an_object("core/v1:PersistentVolumeClaim", **options)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ["protect"]),
        ({"protect": True}, []),
        ({"protect": True, "retain_on_delete": True}, []),
        ({"protect": True, "retain_on_delete": False}, ["retainOnDelete"]),
        ({"retain_on_delete": False}, ["protect", "retainOnDelete"]),
    ],
)
def test_a_claim_is_protected_and_where_it_is_known_retained(options: dict[str, bool], found: list[str]) -> None:
    assert paths(KEPT_DATA, claim(**options)) == found


@pytest.mark.parametrize(("reason", "found"), [("", []), (None, []), ("a trial", ["accepted"])])
def test_an_emptied_claim_is_filled_anew_with_an_exception_alone(reason: str | None, found: list[str]) -> None:
    assert paths(KEPT_DATA, a_resource_of_ours("TreePopulated", accepted=reason)) == found
    assert paths(KEPT_DATA, a_resource_of_ours("Other", accepted=reason)) == []


def test_a_reason_that_a_preview_does_not_know_is_named() -> None:
    assert paths(KEPT_DATA, a_resource_of_ours("TreePopulated", accepted=UNKNOWN), unknown=True) == ["accepted"]


@pytest.mark.parametrize(("part", "found"), [("Controller", True), ("LoginNodes", False)])
def test_a_lost_state_of_slurmctld_is_accepted_with_an_exception_alone(part: str, *, found: bool) -> None:
    def controller(value: object) -> ResourceView:
        container = {"name": "slurmctld", "env": [{"name": STATE_LOSS_ACCEPTED, "value": value}]}
        return below(part, as_stateful_set(a_pod(container)))

    path = "spec.template.spec.containers[0].env[0].value"
    assert paths(KEPT_DATA, controller("a trial")) == ([path] if found else [])
    assert paths(KEPT_DATA, controller(UNKNOWN), unknown=True) == ([path] if found else [])


def test_the_namespace_of_a_cluster_is_kept_and_another_one_is_not() -> None:
    namespace = named({"labels": {}}, "core/v1:Namespace")
    assert paths(KEPT_DATA, below("SlurmCluster", namespace)) == ["protect"], "whatever its labels"
    assert paths(KEPT_DATA, namespace) == []


@pytest.mark.parametrize(
    ("kind", "props"),
    [
        ("apps/v1:StatefulSet", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}),
        ("core/v1:PersistentVolume", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}),
    ],
)
def test_data_does_not_leave_with_another_object(kind: str, props: dict[str, Any]) -> None:
    assert len(paths(KEPT_DATA, below("SlurmCluster", an_object(kind, props)))) == 1
    assert len(paths(KEPT_DATA, an_object(f"{kind}Patch", props))) == 1
    assert paths(KEPT_DATA, an_object(kind, props)) == [], "of others, without a claim"


@pytest.mark.parametrize("event", ["whenDeleted", "whenScaled"])
@pytest.mark.parametrize(("reason", "kept"), [(None, True), (" ", True), ("a cache", False)])
def test_a_stateful_set_keeps_the_claims_that_it_makes_unless_their_data_may_be_lost(
    event: str, reason: str | None, kept: bool
) -> None:
    template = {"metadata": {"name": "data", "annotations": {"soperator-pulumi/disposable-because": reason}}}
    spec = {"persistentVolumeClaimRetentionPolicy": {event: "Delete"}, "volumeClaimTemplates": [template]}
    found = paths(KEPT_DATA, an_object("apps/v1:StatefulSet", {"spec": spec}))
    assert found == ([f"spec.persistentVolumeClaimRetentionPolicy.{event}"] if kept else [])


def test_a_patch_of_a_claim_deletes_no_data() -> None:
    assert paths(KEPT_DATA, an_object("core/v1:PersistentVolumeClaimPatch")) == []


def test_a_namespace_with_claims_of_the_stack_is_protected() -> None:
    data = an_object("core/v1:PersistentVolumeClaim", {"metadata": {"name": "data", "namespace": "shop"}})

    def namespace(name: Any, **options: Any) -> ResourceView:
        return an_object("core/v1:Namespace", {"metadata": {"name": name}}, **options)

    assert paths(KEPT_NAMESPACES, data, namespace("shop")) == ["protect"]
    assert paths(KEPT_NAMESPACES, data, namespace("shop", protect=True)) == []
    assert paths(KEPT_NAMESPACES, data, namespace("other"), namespace(UNKNOWN)) == []
    assert paths(KEPT_NAMESPACES, namespace("shop")) == []
    assert paths(KEPT_NAMESPACES, data, below("SlurmCluster", namespace("shop"))) == [], "judged by kept-data"


def test_a_namespace_with_claims_of_a_stateful_set_is_protected() -> None:
    templates = [{"metadata": {"name": "data"}, "spec": {}}]
    store = an_object(
        "apps/v1:StatefulSet", {"metadata": {"namespace": "shop"}, "spec": {"volumeClaimTemplates": templates}}
    )
    namespace = an_object("core/v1:Namespace", {"metadata": {"name": "shop"}})
    assert paths(KEPT_NAMESPACES, store, namespace) == ["protect"]


def test_a_claim_whose_data_may_be_lost_says_why() -> None:
    def cache(annotations: Any) -> ResourceView:
        return an_object("core/v1:PersistentVolumeClaim", {"metadata": {"name": "cache", "annotations": annotations}})

    reason = cache({DISPOSABLE_ANNOTATION: "images are pulled again"})
    assert paths(KEPT_DATA, reason) == []
    assert paths(KEPT_DATA, below("Jail", reason)) == ["protect"], "never a claim of a cluster"
    assert paths(KEPT_DATA, cache({DISPOSABLE_ANNOTATION: " "})) == ["protect"]
    assert paths(KEPT_DATA, cache(UNKNOWN), unknown=True) == ["protect"]


def storage_class(policy: Any = None, name: str = "fast") -> ResourceView:
    return an_object("storage.k8s.io/v1:StorageClass", {"metadata": {"name": name}, "reclaimPolicy": policy}, "class")


@pytest.mark.parametrize(
    "user",
    [
        an_object("core/v1:PersistentVolumeClaim", {"spec": {"storageClassName": "fast"}}),
        an_object("apps/v1:StatefulSet", {"spec": {"volumeClaimTemplates": [{"spec": {"storageClassName": "fast"}}]}}),
    ],
    ids=["a claim", "claims of a StatefulSet"],
)
def test_a_class_keeps_the_volumes_of_the_stacks_claims(user: ResourceView) -> None:
    assert paths(KEPT_VOLUMES, user, storage_class()) == ["reclaimPolicy"], "Kubernetes' default is Delete"
    assert paths(KEPT_VOLUMES, storage_class("Delete"), user) == ["reclaimPolicy"]
    assert paths(KEPT_VOLUMES, user, storage_class("Retain")) == []
    assert paths(KEPT_VOLUMES, user, storage_class("Delete", "other")) == []
    assert paths(KEPT_VOLUMES, user, storage_class(UNKNOWN), unknown=True) == ["reclaimPolicy"]


def test_a_class_without_a_name_keeps_no_claim_without_a_class() -> None:
    claim_without_class = an_object("core/v1:PersistentVolumeClaim", {"spec": {}})
    unnamed = an_object("storage.k8s.io/v1:StorageClass", {"metadata": {}})
    assert paths(KEPT_VOLUMES, claim_without_class, unnamed) == []


def test_a_default_class_keeps_the_volumes_of_claims_without_a_class() -> None:
    metadata = {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    default = an_object("storage.k8s.io/v1:StorageClass", {"metadata": metadata}, "class")
    without_class = an_object("core/v1:PersistentVolumeClaim", {"spec": {}})
    assert paths(KEPT_VOLUMES, without_class, default) == ["reclaimPolicy"]
    by_hand = an_object("core/v1:PersistentVolumeClaim", {"spec": {"storageClassName": ""}})
    assert paths(KEPT_VOLUMES, by_hand, default) == [], "an empty class is none"


def test_a_claim_whose_data_may_be_lost_keeps_no_class_and_no_namespace() -> None:
    metadata = {"name": "cache", "namespace": "shop", "annotations": {DISPOSABLE_ANNOTATION: "images are pulled again"}}
    cache = an_object("core/v1:PersistentVolumeClaim", {"metadata": metadata, "spec": {"storageClassName": "fast"}})
    namespace = an_object("core/v1:Namespace", {"metadata": {"name": "shop"}})
    assert paths(KEPT_VOLUMES, cache, storage_class("Delete")) == []
    assert paths(KEPT_NAMESPACES, cache, namespace) == []


def test_claims_of_a_stateful_set_that_a_preview_does_not_know_protect_their_namespace() -> None:
    props = {"metadata": {"namespace": "shop"}, "spec": {"volumeClaimTemplates": UNKNOWN}}
    namespace = an_object("core/v1:Namespace", {"metadata": {"name": "shop"}})
    assert paths(KEPT_NAMESPACES, an_object("apps/v1:StatefulSet", props), namespace) == ["protect"]
