"""Secrets of configuration files in a stack: changed in place, and encrypted in every state."""

import base64
from typing import Any

import pytest

from tests.engine.conftest import Stack
from tools.engine import StepOp

pytestmark = pytest.mark.engine

PASSWORD = "random:index/randomPassword:RandomPassword"


def resources(stack: Stack, number: str) -> list[dict[str, Any]]:
    """Return a generated password and a Secret with a file that has it."""
    properties = {"length": 24, "special": False, "keepers": {"number": number}, "result": None}
    generated = {
        "name": "p",
        "type": PASSWORD,
        "properties": properties,
        "options": {"additional_secret_outputs": ["result"]},
    }
    files = {"password": {"from": "p.result"}, "slurmdbd.conf": "StorageUser=in plain sight\n"}
    return [
        generated,
        {"name": "config", "type": "SecretFiles", "properties": {"namespace": stack.namespace, "files": files}},
        stack.config_map("plain", {"k": "in plain sight"}),
    ]


def live(stack: Stack) -> dict[str, Any]:
    found = stack.find("secrets", "config")
    assert found is not None
    return found


def password(stack: Stack) -> str:
    return base64.b64decode(live(stack)["data"]["password"]).decode()


def test_a_secret_is_changed_in_place_and_encrypted_in_every_state(stack: Stack) -> None:
    stack.exports = {"s": {"from": "p.result"}}
    stack.up(*resources(stack, "1"))
    passwords = {password(stack)}
    uid = live(stack)["metadata"]["uid"]

    stack.preview(*resources(stack, "2"))
    stack.up()
    passwords.add(password(stack))
    assert password(stack) == stack.deployer().outputs()["s"]
    assert live(stack)["metadata"]["uid"] == uid
    assert any("config/password: changed" in line for line in stack.lines)

    passwords.add("made by hand")
    by_hand = {"password": base64.b64encode(b"made by hand").decode()}
    stack.kubernetes.core.patch_namespaced_secret("config", stack.namespace, {"data": by_hand})
    stack.deployer().refresh()
    files = [file.read_bytes() for file in stack.target().state.rglob("*") if file.is_file()]
    assert stack.preview().names(StepOp.UPDATE) == {"config"}

    assert len(passwords) == 3
    assert any(b"in plain sight" in content for content in files), "this search would find it"
    for secret in passwords:
        for form in (secret, base64.b64encode(secret.encode()).decode()):
            assert not any(form.encode() in content for content in files)
            assert not any(form in line for line in stack.lines)
