"""Generated keys: secret wherever they stand, in no id, and others for another version."""

import re
from typing import Any

import pytest

from soperator_pulumi.testing import Recorded, Secret
from tests.rendered.cluster.clusters import a_deployment

IDS_SHOW_VALUES = re.compile(r"random:index/random(Bytes|String|Id|Uuid|Integer|Shuffle|Pet):")
"""Types of pulumi-random whose id is the generated value or a part of it."""

REST: dict[str, Any] = {"rest": {}, "accounting": {}}


def generated(**overrides: Any) -> dict[str, Recorded]:
    return {resource.name: resource for resource in a_deployment(**overrides).resources(":RandomPassword")}


def test_no_generated_value_is_the_id_of_its_resource() -> None:
    types = [resource.type for resource in a_deployment(**REST).recorded]

    assert [type_ for type_ in types if IDS_SHOW_VALUES.match(type_)] == []
    assert {"hpc-munge-key", "hpc-ssh-host-key", "hpc-jwt-key"} <= generated(**REST).keys()


@pytest.mark.parametrize("name", ["munge-key", "ssh-host-key", "jwt-key"])
def test_the_value_of_a_generated_key_is_secret_in_its_secret(name: str) -> None:
    data = a_deployment(**REST).one(f"hpc-{name}-secret").inputs["data"]

    assert isinstance(data, Secret)


def test_the_fingerprints_of_keys_are_short_and_no_secrets() -> None:
    keys = a_deployment(**REST).one("hpc-keys-in-use").inputs["keys"]

    assert [key["kind"] for key in keys] == ["munge key", "ssh host key", "key that signs tokens"]
    assert all(re.fullmatch("[0-9a-f]{12}", key["fingerprint"]) for key in keys)


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ({"secrets": {"munge_key_version": 2}}, "hpc-munge-key"),
        ({"secrets": {"ssh_host_key_version": 2}}, "hpc-ssh-host-key"),
        ({"rest": {"key_version": 2}}, "hpc-jwt-key"),
    ],
)
def test_another_version_makes_another_key_and_leaves_the_others(setting: dict[str, Any], changed: str) -> None:
    before, after = generated(**REST), generated(**{**REST, **setting})

    assert {name for name in before if before[name].inputs != after[name].inputs} == {changed}


def test_pods_start_after_new_keys_are_in_use_in_those_that_run() -> None:
    deployment = a_deployment(**REST)

    for name in ("controller", "accounting", "login", "cpu", "rest"):
        before = deployment.waits_for(deployment.one(f"hpc-{name}", "StatefulSet"))
        assert "hpc-keys-in-use" in {resource.name for resource in before}, name


def test_the_users_own_key_of_tokens_is_read_again_for_another_version_alone() -> None:
    keys = a_deployment(**{**REST, "secrets": {"jwt_key": {"secret": "ours"}}}).one("hpc-keys-in-use").inputs["keys"]

    assert [key["kind"] for key in keys] == ["munge key", "ssh host key"]
