"""Differences between objects that pulumi-kubernetes sees, and those that replace."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.engine.local.providers import diff, replacement_rules
from tools.engine.values import UNKNOWN

Object = dict[str, Any]


def an_object(kind: str, version: str = "v1", **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}, **fields}


def differences(old: Object, new: Object, **mutable: bool) -> dict[str, str]:
    switches = {"config_map_mutable": False, "secret_mutable": False, **mutable}
    found = diff.compare(diff.normal(old), diff.normal(new), replacement_rules.force_new(new, **switches))
    return {path: change.kind.name for path, change in found.items()}


def test_a_changed_an_added_and_a_removed_field_each_have_their_path() -> None:
    old = an_object("X", "v2", spec={"a": 1, "b": [1, {"c": 2}], "gone": 1})
    new = an_object("X", "v2", spec={"a": 2, "b": [1, {"c": 3}, 4], "new": {"d": 1}})
    assert differences(old, new) == {
        "spec.a": "UPDATE",
        "spec.b[1].c": "UPDATE",
        "spec.b[2]": "ADD",
        "spec.new": "ADD",
        "spec.gone": "DELETE",
    }


@pytest.mark.parametrize(
    ("kind", "version", "path"),
    [
        ("StatefulSet", "apps/v1", ("spec", "serviceName")),
        ("StatefulSet", "apps/v1", ("spec", "podManagementPolicy")),
        ("StatefulSet", "apps/v1", ("spec", "revisionHistoryLimit")),
        ("StatefulSet", "apps/v1", ("spec", "volumeClaimTemplates")),
        ("StatefulSet", "apps/v1", ("spec", "selector", "matchLabels", "app")),
        ("Deployment", "apps/v1", ("spec", "selector")),
        ("DaemonSet", "apps/v1", ("spec", "selector")),
        ("Job", "batch/v1", ("spec", "template", "spec", "nodeName")),
        ("Job", "batch/v1", ("spec", "parallelism")),
        ("ConfigMap", "v1", ("data", "k")),
        ("ConfigMap", "v1", ("binaryData", "k")),
        ("Secret", "v1", ("data", "k")),
        ("Secret", "v1", ("type",)),
        ("Service", "v1", ("spec", "clusterIP")),
        ("PersistentVolumeClaim", "v1", ("spec", "accessModes")),
        ("PersistentVolumeClaim", "v1", ("spec", "storageClassName")),
        ("PersistentVolume", "v1", ("spec", "hostPath", "path")),
        ("Pod", "v1", ("spec", "nodeSelector", "zone")),
        ("RoleBinding", "rbac.authorization.k8s.io/v1", ("roleRef", "name")),
        ("StorageClass", "storage.k8s.io/v1", ("parameters", "p")),
        ("ResourceQuota", "v1", ("spec", "scopes")),
        ("Anything", "x.example/v1", ("metadata", "name")),
        ("Anything", "x.example/v1", ("metadata", "namespace")),
    ],
)
def test_it_is_replaced_for_a_change_of(kind: str, version: str, path: tuple[str, ...]) -> None:
    assert set(differences(_with(kind, version, path, "1"), _with(kind, version, path, "2")).values()) == {
        "UPDATE_REPLACE"
    }


@pytest.mark.parametrize(
    ("kind", "version", "path"),
    [
        ("StatefulSet", "apps/v1", ("spec", "replicas")),
        ("StatefulSet", "apps/v1", ("spec", "template", "spec", "nodeName")),
        ("StatefulSet", "apps/v1", ("spec", "updateStrategy", "type")),
        ("Deployment", "apps/v1", ("spec", "template", "metadata", "labels", "app")),
        ("PersistentVolumeClaim", "v1", ("spec", "resources", "requests", "storage")),
        ("Service", "v1", ("spec", "type")),
        ("ConfigMap", "v1", ("metadata", "labels", "l")),
        ("PodDisruptionBudget", "policy/v1", ("spec", "minAvailable")),
        ("CustomThing", "x.example/v1", ("spec", "selector")),
    ],
)
def test_it_is_updated_for_a_change_of(kind: str, version: str, path: tuple[str, ...]) -> None:
    assert set(differences(_with(kind, version, path, "1"), _with(kind, version, path, "2")).values()) == {"UPDATE"}


def _with(kind: str, version: str, path: tuple[str, ...], value: object) -> Object:
    made = an_object(kind, version)
    inner: Any = made
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    return made


def test_a_container_of_a_pod_can_only_be_replaced() -> None:
    old = an_object("Pod", spec={"containers": [{"name": "c", "image": "1"}]})
    new = an_object("Pod", spec={"containers": [{"name": "c", "image": "2"}]})
    assert differences(old, new) == {"spec.containers[0].image": "UPDATE_REPLACE"}


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_data_that_may_change_is_updated_unless_the_object_is_immutable(kind: str) -> None:
    mutable = {"config_map_mutable": True, "secret_mutable": True}
    old, new = an_object(kind, data={"k": "MQ=="}), an_object(kind, data={"k": "Mg=="})
    assert differences(old, new, **mutable) == {"data.k": "UPDATE"}
    old["immutable"] = new["immutable"] = True
    assert differences(old, new, **mutable) == {"data.k": "UPDATE_REPLACE"}


def test_a_secrets_type_replaces_it_even_where_its_data_may_change() -> None:
    old, new = an_object("Secret", type="a"), an_object("Secret", type="b")
    assert differences(old, new, secret_mutable=True) == {"type": "UPDATE_REPLACE"}


def test_something_added_counts_with_all_that_is_in_it() -> None:
    added = an_object("StatefulSet", "apps/v1", spec={"serviceName": "s"})
    assert differences(an_object("StatefulSet", "apps/v1"), added) == {"spec": "ADD_REPLACE"}
    harmless = an_object("StatefulSet", "apps/v1", spec={"replicas": 1})
    assert differences(an_object("StatefulSet", "apps/v1"), harmless) == {"spec": "ADD"}


def test_an_unknown_spec_replaces_what_has_fields_that_force_it() -> None:
    """Effect of a StatefulSet's dependence on a replaced object (K1)."""
    spec = {"serviceName": "s", "replicas": 1}
    found = differences(
        an_object("StatefulSet", "apps/v1", spec=spec), an_object("StatefulSet", "apps/v1", spec=UNKNOWN)
    )
    assert found == {"spec.serviceName": "DELETE_REPLACE", "spec.replicas": "DELETE"}


def test_an_unknown_value_is_an_update_of_that_value() -> None:
    found = differences(an_object("X", spec={"a": 1}), an_object("X", spec={"a": UNKNOWN}))
    assert found == {"spec.a": "UPDATE"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.5", "500m"), ("1Gi", "1024Mi"), (1, "1"), ("1000k", "1M"), ("1.5Gi", "1536Mi"), (2.0, 2)],
)
def test_quantities_that_mean_the_same_are_the_same(one: object, other: object) -> None:
    for place in ("requests", "limits"):
        old = an_object("Pod", spec={"containers": [{"resources": {place: {"cpu": one}}}]})
        new = an_object("Pod", spec={"containers": [{"resources": {place: {"cpu": other}}}]})
        assert differences(old, new) == {}


def test_data_that_looks_like_a_quantity_is_none() -> None:
    assert differences(an_object("ConfigMap", data={"k": "1"}), an_object("ConfigMap", data={"k": "1.0"}))


def test_the_texts_of_a_secret_are_compared_with_its_data() -> None:
    data = {"k": base64.b64encode(b"text").decode()}
    assert differences(an_object("Secret", data=data), an_object("Secret", stringData={"k": "text"})) == {}


def test_what_only_the_api_server_sets_is_no_difference() -> None:
    old = an_object("X", status={"a": 1})
    old["metadata"] |= {"uid": "u", "resourceVersion": "1", "managedFields": []}
    assert differences(old, an_object("X")) == {}


objects = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), objects, max_size=4))
def test_nothing_differs_from_itself(body: Object) -> None:
    assert differences(an_object("X", spec=body), an_object("X", spec=body)) == {}


@given(
    st.dictionaries(st.text(max_size=3), objects, max_size=4), st.dictionaries(st.text(max_size=3), objects, max_size=3)
)
def test_what_others_add_is_pruned_away(asked: Object, more: Object) -> None:
    """An object that was asked for, found in a live object with more in it, is what was asked for."""
    live = {**more, **asked}
    pruned = diff.prune(live, asked)
    assert pruned == asked


def test_a_pruned_quantity_keeps_its_way_of_writing_and_empty_values_stay() -> None:
    asked = {"resources": {"requests": {"cpu": "0.5"}}, "annotations": {}, "hostNetwork": False, "gone": "x"}
    live = {"resources": {"requests": {"cpu": "500m"}}, "dnsPolicy": "ClusterFirst"}
    assert diff.prune(live, asked) == {
        "resources": {"requests": {"cpu": "0.5"}},
        "annotations": {},
        "hostNetwork": False,
    }
