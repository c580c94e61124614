"""Objects that others have made are read, and stay theirs."""

import base64
from typing import Any

import pytest

from tests.engine.conftest import Stack
from tools.engine import StepOp

pytestmark = pytest.mark.engine


def read(stack: Stack, kind: str, name: str) -> dict[str, Any]:
    """A resource of the program that reads an object."""
    return {"name": "given", "type": "read", "kind": f"kubernetes:core/v1:{kind}", "id": f"{stack.namespace}/{name}"}


def test_a_secret_of_the_site_is_read_in_each_run_and_stays_secret_and_stays_there(stack: Stack) -> None:
    api = stack.kubernetes.core
    body: Any = {"metadata": {"name": "site"}, "stringData": {"password": "first"}}
    api.create_namespaced_secret(stack.namespace, body)
    stack.exports = {"given": {"from": "given.data"}}
    given = read(stack, "Secret", "site")

    result = stack.up(given)
    assert {change.name for change in result.of(StepOp.READ)} == {"given"}
    assert stack.deployer().outputs()["given"] == {"password": base64.b64encode(b"first").decode()}
    (exported,) = [resource for resource in stack.deployer().state() if resource.type == "pulumi:pulumi:Stack"]
    assert exported.outputs["given"] == "[secret]"

    api.replace_namespaced_secret("site", stack.namespace, body | {"stringData": {"password": "second"}})
    stack.up()
    assert stack.deployer().outputs()["given"] == {"password": base64.b64encode(b"second").decode()}

    stack.deployer().destroy()
    assert stack.find("secrets", "site")


def test_an_object_that_is_not_there_stops_the_preview_and_is_named(stack: Stack) -> None:
    missing = read(stack, "ConfigMap", "no-such")

    assert f"{stack.namespace}/no-such" in str(stack.fails(lambda: stack.preview(missing)))
