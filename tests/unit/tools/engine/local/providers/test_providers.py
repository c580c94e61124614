"""The providers' own rules, without a cluster."""

import asyncio
import base64
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.provider.experimental import provider as api

from tools.console import UserError
from tools.engine.display import last_words
from tools.engine.kubernetes import objects, ownership, provider_settings
from tools.engine.kubernetes.provider_settings import KubernetesSettings
from tools.engine.local.providers import diff
from tools.engine.local.providers.random import RandomProvider
from tools.engine.values import plain_map, properties_of, value_of

TYPES = {
    "RandomPassword": "random:index/randomPassword:RandomPassword",
    "RandomString": "random:index/randomString:RandomString",
    "RandomBytes": "random:index/randomBytes:RandomBytes",
    "RandomId": "random:index/randomId:RandomId",
    "RandomUuid": "random:index/randomUuid:RandomUuid",
}


def urn(kind: str) -> str:
    return f"urn:pulumi:s::p::parent:x:Y${TYPES.get(kind, kind)}::name"


def create(kind: str, **inputs: object) -> dict[str, Any]:
    request = api.CreateRequest(urn(kind), properties_of(inputs), 0, preview=False)
    answer = asyncio.run(RandomProvider().create(request))
    return {"id": answer.resource_id, **plain_map(answer.properties)}


def problems(kind: str, **inputs: object) -> list[tuple[str, str]]:
    request = api.CheckRequest(urn(kind), {}, properties_of(inputs), b"")
    answer = asyncio.run(RandomProvider().check(request))
    return [(failure.property, failure.reason) for failure in answer.failures or []]


def test_bytes_are_as_many_as_asked_for_in_two_writings() -> None:
    made = create("RandomBytes", length=32)
    assert base64.b64decode(made["base64"]) == bytes.fromhex(made["hex"])
    assert len(bytes.fromhex(made["hex"])) == 32
    assert made != create("RandomBytes", length=32)


def test_a_password_has_the_characters_that_are_asked_for() -> None:
    made = create("RandomPassword", length=40, special=False, upper=False, minNumeric=5)["result"]
    assert len(made) == 40
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789")
    assert sum(character.isdigit() for character in made) >= 5
    assert set(
        create("RandomString", length=20, lower=False, upper=False, numeric=False, overrideSpecial="_-")["result"]
    ) <= {"_", "-"}


def test_ids_and_uuids_are_their_resources_id() -> None:
    made = create("RandomUuid")
    assert str(uuid.UUID(made["id"])) == made["result"]
    made = create("RandomId", byteLength=4, prefix="p-")
    assert made["hex"].startswith("p-")
    assert len(made["hex"]) == len("p-") + 8
    assert made["b64Url"] == f"p-{made['id']}"


@pytest.mark.parametrize(
    ("kind", "inputs", "where"),
    [
        ("RandomBytes", {"length": 0}, "length"),
        ("RandomBytes", {"length": 1.5}, "length"),
        ("RandomId", {"byteLength": -1}, "byteLength"),
        ("RandomPassword", {"length": 3, "minLower": 2, "minUpper": 2}, "length"),
        ("RandomPassword", {"length": 3, "minLower": -1}, "minLower"),
        ("RandomString", {"length": 3, "numeric": True, "number": False}, "number"),
        ("random:index/randomPet:RandomPet", {}, ""),
    ],
)
def test_what_cannot_be_generated_is_refused(kind: str, inputs: dict[str, object], where: str) -> None:
    assert [found for found, _ in problems(kind, **inputs)] == [where]


def test_a_refusal_holds_no_secret() -> None:
    inputs = {"length": value_of("hunter2").with_secret(True)}
    answer = asyncio.run(RandomProvider().check(api.CheckRequest(urn("RandomBytes"), {}, inputs, b"")))
    assert [f.reason for f in answer.failures or []] == ["got a secret, must be a whole number"]


def test_a_state_without_defaults_keeps_its_value() -> None:
    old, new = properties_of({"length": 4, "result": "abcd"}), properties_of({"length": 4})
    answer = asyncio.run(RandomProvider().diff(api.DiffRequest(urn("RandomPassword"), "none", old, new, [])))
    assert not answer.changes


# Kubernetes -----------------------------------------------------------------------------------------------------------


def a_kubeconfig(**clusters: str) -> dict[str, Any]:
    return {
        "current-context": next(iter(clusters)),
        "clusters": [{"name": name, "cluster": {"server": server}} for name, server in clusters.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "namespace": f"in-{name}"}} for name in clusters],
    }


def test_a_kubeconfig_is_a_path_or_its_content(tmp_path: Path) -> None:
    content = a_kubeconfig(a="https://a", b="https://b")
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(content))
    for given in (str(file), yaml.safe_dump(content), json.dumps(content)):
        found = provider_settings.load(KubernetesSettings(kubeconfig=given, context="b"), {})
        assert (found.context, found.namespace, found.cluster) == ("b", "in-b", {"server": "https://b"})
    ambient = provider_settings.load(KubernetesSettings(), {"KUBECONFIG": str(file)})
    assert (ambient.context, ambient.namespace) == ("a", "in-a")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda _: None, "No such file"),
        (lambda file: file.write_text("a: [b"), "is not YAML"),
        (lambda file: file.write_text("text"), "has no clusters"),
        (lambda file: file.write_text(yaml.safe_dump(a_kubeconfig(a="x"))), "has no context 'c'; it has: a"),
    ],
)
def test_a_broken_kubeconfig_is_named_with_what_is_wrong(
    tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    file = tmp_path / "config"
    write(file)
    with pytest.raises(UserError, match=message) as caught:
        provider_settings.load(KubernetesSettings(kubeconfig=str(file), context="c"), {})
    assert str(file) in str(caught.value)


def test_inputs_of_a_provider_are_read_from_programs_and_from_configuration() -> None:
    program = {"enableConfigMapMutable": "true", "kubeconfig": "k", "namespace": "n", "version": "4"}
    found = provider_settings.settings_of(program)
    assert (found.config_map_mutable, found.secret_mutable, found.kubeconfig, found.namespace) == (
        True,
        False,
        "k",
        "n",
    )
    assert provider_settings.settings_of({"enableSecretMutable": True, "context": "c"}).secret_mutable


@pytest.mark.parametrize(
    "given",
    [{"renderYamlToDirectory": "x"}, {"enableServerSideApply": "false"}, {"upsertExistingObjects": "true"}],
)
def test_inputs_that_are_not_supported_are_refused_by_name(given: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(given))):
        provider_settings.settings_of(given)


def test_another_cluster_is_recognized_by_its_entry_or_its_identifier() -> None:
    a, b = (json.dumps(a_kubeconfig(same=f"https://{name}")) for name in "ab")
    assert provider_settings.other_cluster({"kubeconfig": a}, {"kubeconfig": b})
    assert not provider_settings.other_cluster({"kubeconfig": a}, {"kubeconfig": a})
    assert not provider_settings.other_cluster({}, {"kubeconfig": b}), "an ambient one is not compared"
    same = {"clusterIdentifier": "x"}
    assert not provider_settings.other_cluster({"kubeconfig": a, **same}, {"kubeconfig": b, **same})
    assert provider_settings.other_cluster({**same}, {"clusterIdentifier": "y"})


def test_a_secrets_data_is_secret_also_where_the_program_does_not_say_so() -> None:
    inputs = properties_of({"kind": "Secret", "stringData": {"k": "v"}})
    live = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "managedFields": [1]},
        "data": {"k": "dg=="},
    }
    outputs = objects.checkpoint(live, inputs)
    hidden = plain_map(outputs, lambda _: "***")
    assert hidden["data"] == "***"
    assert hidden["__inputs"] == {"kind": "Secret", "stringData": "***"}
    assert hidden["metadata"] == {"name": "s"}


def test_inputs_are_read_from_what_is_live() -> None:
    inputs = properties_of({"kind": "Secret", "stringData": {"k": "v"}, "metadata": {"name": "s"}})
    live = {
        "kind": "Secret",
        "metadata": {"name": "s", "uid": "u"},
        "data": {"k": base64.b64encode(b"by hand").decode()},
    }
    assert diff.read_inputs(live, inputs) == {
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"k": "by hand"},
    }


def test_definitions_keep_their_dashes() -> None:
    properties = {"spec": value_of({"x_kubernetes_int_or_string": True, "x_other": 1, "none": None})}
    assert objects.to_object(properties) == {"spec": {"x-kubernetes-int-or-string": True, "x_other": 1}}


@pytest.mark.parametrize(
    ("annotation", "policy"),
    [("", "Foreground"), ("orphan", "Orphan"), ("Background", "Background"), ("nonsense", "Foreground")],
)
def test_an_annotation_says_what_becomes_of_dependents(annotation: str, policy: str) -> None:
    obj = {"metadata": {"annotations": {objects.PROPAGATION: annotation}}}
    assert objects.propagation(obj) == policy


def managed(*entries: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    fields = [{"manager": m, "operation": o, "fieldsV1": f} for m, o, f in entries]
    return {"metadata": {"resourceVersion": "7", "managedFields": fields}, "spec": {"replicas": 5, "other": 1}}


REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def test_what_was_created_is_handed_over_to_apply() -> None:
    live = managed(("kubelet", "Update", {}), ("us", "Update", REPLICAS))
    assert ownership.adoption_patch(live, "us") == [
        {"op": "replace", "path": "/metadata/managedFields/1/operation", "value": "Apply"},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
    ]
    assert ownership.adoption_patch(managed(("us", "Apply", REPLICAS)), "us") == []


@pytest.mark.parametrize(
    ("owner", "spec"),
    [("them", {"other": 1}), ("us", {"replicas": 5, "other": 1})],
    ids=["what others manage is left to them", "what nobody else manages keeps its live value"],
)
def test_an_ignored_field(owner: str, spec: dict[str, int]) -> None:
    wanted = {"spec": {"replicas": 3, "other": 1}}
    live = managed((owner, "Apply", REPLICAS))
    assert ownership.without_ignored(wanted, live, "us", ["spec.replicas", "none.such"]) == {"spec": spec}


def test_an_exceptions_last_words_are_shown_without_its_traceback() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n    f()\n    ^^^\n'
        '  File "b.py", line 2, in g\n    raise Refused("no")\n'
        "soperator_pulumi.errors.Refused: slurm.conf was refused:\n  line 3: unknown key\n"
    )
    assert last_words(text) == "slurm.conf was refused:\n  line 3: unknown key"
    assert last_words("plain words") == "plain words"
    assert last_words("  File \"x\", line 1\n    y\nKeyError: 'k'") == "KeyError: 'k'"
