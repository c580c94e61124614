"""Releases of helm charts, from the first preview to the removal."""

import base64
import json
import secrets
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import Stack
from tests.engine.helm_releases import CHART, NO_IMAGE, changed_chart, helm, history, release, repository, status
from tests.waiting import wait_until
from tools.engine import StepOp

pytestmark = pytest.mark.engine

SECONDS_OF_A_FAILURE = 3
"""Time-out of a release that does not become ready: helm looks every two seconds."""


def change(stack: Stack, **inputs: Any) -> tuple[StepOp, set[str]]:
    """Return the planned change of the release: its kind and the paths that differ."""
    (found,) = stack.preview(release(stack, **inputs)).changed
    return found.operation, set(found.paths)


def test_a_release_is_created_and_the_next_up_changes_nothing(stack: Stack) -> None:
    assert "r" in stack.preview(release(stack, values={"text": "a"})).names(StepOp.CREATE)
    assert stack.data("r") is None
    stack.up()
    assert stack.data("r") == {"text": "a", "chart": "0.1.0"}
    assert history(stack) == [(1, "deployed")]
    assert stack.up().changed == ()
    assert stack.deployer().refresh().changed == ()
    assert history(stack) == [(1, "deployed")]


def test_a_release_has_the_outputs_that_the_provider_documents(stack: Stack) -> None:
    stack.exports = {"status": {"from": "r.status"}, "names": {"from": "r.resourceNames"}, "id": {"from": "r.id"}}
    stack.up(release(stack))
    assert stack.deployer().outputs() == {
        "status": {
            "appVersion": "1.0",
            "chart": "tiny",
            "name": "r",
            "namespace": stack.namespace,
            "revision": 1,
            "status": "deployed",
            "version": "0.1.0",
        },
        "names": {"ConfigMap/v1": ["r", "r-kept"], "Secret/v1": ["r"]},
        "id": f"{stack.namespace}/r",
    }


def test_a_preview_names_the_values_that_differ_and_up_upgrades_the_release(stack: Stack) -> None:
    stack.up(release(stack, values={"text": "a", "old": 1, "list": [1, {"k": 1}]}))
    values = {"text": "b", "new": {"k": 1}, "list": [1, {"k": 2}, 3]}
    paths = {"values.text", "values.old", "values.new", "values.list[1].k", "values.list[2]", "timeout"}
    assert change(stack, values=values, timeout=100) == (StepOp.UPDATE, paths)
    assert stack.data("r") == {"text": "a", "chart": "0.1.0"}
    stack.up()
    assert stack.data("r") == {"text": "b", "chart": "0.1.0"}
    assert history(stack) == [(1, "superseded"), (2, "deployed")]
    assert stack.up().changed == ()


def test_a_newer_chart_upgrades_the_release(stack: Stack) -> None:
    stack.up(release(stack))
    newer = str(changed_chart(stack.folder, "0.2.0"))
    assert change(stack, chart=newer) == (StepOp.UPDATE, {"chart", "version"})
    stack.up()
    assert stack.data("r") == {"text": "hello", "chart": "0.2.0"}
    assert status(stack)["version"] == "0.2.0"


def test_values_of_other_resources_flow_into_a_release(stack: Stack) -> None:
    values = {"text": {"from": "t.made"}}
    made, of_it = stack.thing("t"), release(stack, values=values)
    assert {"t", "r"} <= stack.preview(made, of_it).names(StepOp.CREATE)
    stack.up()
    assert stack.data("r") == {"text": "t-made", "chart": "0.1.0"}


def test_values_come_from_files_too_and_those_of_the_program_win(stack: Stack) -> None:
    file = stack.folder / "values.yaml"
    file.write_text("text: of the file\npassword: p\n")
    files = [{"text_of_file": "text: of the text"}, {"file": str(file)}]
    stack.up(release(stack, valueYamlFiles=files))
    assert stack.data("r") == {"text": "of the file", "chart": "0.1.0"}
    stack.up(release(stack, valueYamlFiles=files, values={"text": "of the program"}))
    assert stack.data("r") == {"text": "of the program", "chart": "0.1.0"}
    assert stack.up().changed == ()


def test_a_release_without_a_name_gets_one_and_keeps_it(stack: Stack) -> None:
    stack.exports = {"name": {"from": "r.name"}}
    stack.up(release(stack) | {"properties": {"chart": str(CHART), "namespace": stack.namespace}})
    name = stack.deployer().outputs()["name"]
    assert name.startswith("r-")
    assert stack.data(name) is not None
    assert stack.up().changed == ()


def test_another_name_replaces_the_release(stack: Stack) -> None:
    stack.up(release(stack))
    renamed = release(stack)
    renamed["properties"]["name"] = "s"
    assert stack.preview(renamed).names(StepOp.REPLACE) == {"r"}
    stack.up()
    assert (stack.data("r"), stack.data("s")) == (None, {"text": "hello", "chart": "0.1.0"})


def test_a_release_that_does_not_become_ready_fails_and_the_next_up_upgrades_it(stack: Stack) -> None:
    failing = release(stack, values={"image": NO_IMAGE}, timeout=SECONDS_OF_A_FAILURE)
    error = stack.fails(lambda: stack.up(failing))
    assert f"{stack.namespace}/r" in str(error)
    assert history(stack) == [(1, "failed")]
    assert status(stack)["status"] == "failed"
    assert stack.up(release(stack, values={"text": "b"})).names(StepOp.UPDATE) == {"r"}
    assert history(stack)[-1] == (2, "deployed")
    assert stack.find("pods", "r") is None
    assert stack.up().changed == ()


def test_a_failed_upgrade_is_tried_again_by_the_next_up(stack: Stack) -> None:
    stack.up(release(stack, timeout=SECONDS_OF_A_FAILURE))
    failing = release(stack, values={"image": NO_IMAGE}, timeout=SECONDS_OF_A_FAILURE)
    stack.fails(lambda: stack.up(failing))
    stack.fails(stack.up)
    assert history(stack)[-2:] == [(2, "failed"), (3, "failed")]
    assert stack.up(release(stack)).names(StepOp.UPDATE) == {"r"}
    assert history(stack)[-1] == (4, "deployed")


def test_a_failed_atomic_release_leaves_nothing(stack: Stack) -> None:
    failing = release(stack, values={"image": NO_IMAGE}, timeout=SECONDS_OF_A_FAILURE, atomic=True)
    stack.fails(lambda: stack.up(failing))
    assert stack.names() == set()
    assert stack.data("r") is None
    assert stack.up(release(stack)).names(StepOp.CREATE) >= {"r"}


def test_a_release_that_is_not_awaited_is_created_at_once(stack: Stack) -> None:
    stack.up(release(stack, values={"image": NO_IMAGE}, skipAwait=True))
    assert history(stack) == [(1, "deployed")]


def test_an_error_of_the_chart_is_reported_and_leaves_no_release(stack: Stack) -> None:
    error = stack.fails(lambda: stack.up(release(stack, values={"refuse": "choose a text"})))
    assert "choose a text" in str(error)
    assert stack.names() == set()


def test_a_chart_that_does_not_exist_is_reported_already_by_a_preview(stack: Stack) -> None:
    error = stack.fails(lambda: stack.preview(release(stack, chart="./none")))
    assert "./none" in str(error)
    assert "check the chart" in str(error)


def test_a_release_of_someone_else_is_not_touched(stack: Stack) -> None:
    helm(stack.kubernetes, "install", "r", str(CHART), "--namespace", stack.namespace, "--set", "text=theirs")
    error = stack.fails(lambda: stack.up(release(stack)))
    assert "cannot re-use a name" in str(error)
    assert stack.names() == set()
    assert stack.data("r") == {"text": "theirs", "chart": "0.1.0"}


def test_a_removed_release_takes_its_objects_along_but_those_to_keep(stack: Stack) -> None:
    stack.up(release(stack), stack.config_map("other", {}))
    assert stack.up(stack.config_map("other", {})).names(StepOp.DELETE) == {"r"}
    assert (stack.data("r"), stack.data("r-kept")) == (None, {})
    assert stack.names() == {"other"}


def test_a_release_that_was_uninstalled_by_hand_can_be_removed(local: Stack) -> None:
    local.up(release(local))
    helm(local.kubernetes, "uninstall", "r", "--namespace", local.namespace)
    local.deployer().destroy()
    assert local.deployer().state() == []


def test_refresh_finds_a_release_uninstalled_by_hand_and_up_installs_it(stack: Stack) -> None:
    stack.up(release(stack))
    helm(stack.kubernetes, "uninstall", "r", "--namespace", stack.namespace)
    assert stack.deployer().refresh().names(StepOp.DELETE) == {"r"}
    assert stack.up().names(StepOp.CREATE) == {"r"}


def test_refresh_finds_values_changed_by_hand_and_up_restores_them(stack: Stack) -> None:
    stack.up(release(stack, values={"text": "a"}))
    helm(stack.kubernetes, "upgrade", "r", str(CHART), "--namespace", stack.namespace, "--set", "text=by hand")
    assert stack.deployer().refresh().names(StepOp.UPDATE) == {"r"}
    assert change(stack, values={"text": "a"}) == (StepOp.UPDATE, {"values.text"})
    stack.up()
    assert stack.data("r") == {"text": "a", "chart": "0.1.0"}


def test_definitions_of_the_folder_are_installed_once_and_stay_while_those_of_templates_go(stack: Stack) -> None:
    names = [f"{word}-{secrets.token_hex(3)}" for word in ("folder", "late", "template")]
    folder, late, template = (definition(name) for name in names)
    chart = changed_chart(stack.folder, "0.2.0", crds__a=folder, templates__b=template)
    stack.up(release(stack, chart=str(chart)))
    try:
        assert definitions(stack, names) == {names[0], names[2]}
        newer = changed_chart(stack.folder, "0.3.0", crds__a=folder, crds__c=late, templates__b=template)
        stack.up(release(stack, chart=str(newer)))
        assert definitions(stack, names) == {names[0], names[2]}
        stack.deployer().destroy()
        assert definitions(stack, names) == {names[0]}
    finally:
        stack.kubernetes.run("delete", "crd", "--ignore-not-found", *(f"{name}s.tests.invalid" for name in names))


def test_definitions_of_the_folder_can_be_left_out(stack: Stack) -> None:
    name = f"skipped-{secrets.token_hex(3)}"
    chart = changed_chart(stack.folder, "0.2.0", crds__a=definition(name))
    stack.up(release(stack, chart=str(chart), skipCrds=True))
    assert definitions(stack, [name]) == set()


def definition(name: str) -> str:
    """Return a CustomResourceDefinition."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "tests.invalid",
        "scope": "Namespaced",
        "names": {"plural": f"{name}s", "singular": name, "kind": f"K{name}".replace("-", "")},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    return json.dumps({**body, "metadata": {"name": f"{name}s.tests.invalid"}})


def definitions(stack: Stack, names: list[str]) -> set[str]:
    """Return those of the definitions that the cluster has and that are not being deleted."""
    listed = json.loads(stack.kubernetes.run("get", "crd", "-o", "json"))["items"]
    there = {item["metadata"]["name"] for item in listed if "deletionTimestamp" not in item["metadata"]}
    return {name for name in names if f"{name}s.tests.invalid" in there}


def test_a_namespace_is_created_on_demand(stack: Stack) -> None:
    namespace = f"{stack.namespace}-own"
    try:
        stack.up(release(stack, namespace=namespace, createNamespace=True))
        assert stack.kubernetes.run("get", "configmap", "r", "-n", namespace, "-o", "jsonpath={.data.text}") == "hello"
    finally:
        stack.kubernetes.run("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")


def test_secrets_in_values_reach_the_release_and_no_state_or_message(stack: Stack) -> None:
    secret = secrets.token_hex(8)
    stack.up(release(stack, values={"password": {"secret": secret}}))
    assert text_of_secret(stack) == secret
    changed = secrets.token_hex(8)
    stack.preview(release(stack, values={"password": {"secret": changed}}))
    stack.up()
    assert text_of_secret(stack) == changed
    stack.deployer().refresh()
    (state,) = stack.folder.rglob("test.json")
    for text in (secret, changed):
        assert text not in "\n".join([*stack.lines, state.read_text()])


def text_of_secret(stack: Stack) -> str:
    """Return the password that the release has put into its Secret."""
    found = stack.find("secrets", "r")
    assert found is not None
    return base64.b64decode(found["data"]["password"]).decode()


def test_secrets_in_values_are_in_no_command_line_or_environment_of_helm(local: Stack) -> None:
    secret = secrets.token_hex(8)
    values = {"password": {"secret": secret}, "image": NO_IMAGE}
    local.resources = [release(local, values=values, timeout=5 * SECONDS_OF_A_FAILURE)]
    process = local.start()
    wait_until(lambda: local.find("pods", "r") is not None, "helm waits for the pod")
    seen = shown_by_helm()
    output, _ = process.communicate()
    assert "upgrade" in seen or "install" in seen
    assert secret not in seen
    assert secret not in output


def shown_by_helm() -> str:
    """Return the command lines and environments of the helms at work."""
    found = ""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() == "helm":
                found += (process / "cmdline").read_text() + (process / "environ").read_text()
        except OSError:
            continue  # it has ended meanwhile
    return found


@pytest.mark.parametrize("known", [True, False])
def test_a_chart_comes_from_a_repository_with_a_password(stack: Stack, known: bool) -> None:
    password = secrets.token_hex(8)
    folder = stack.folder / "repository"
    folder.mkdir()
    with repository(folder, "reader", password) as address:
        given = password if known else f"not-{password}"
        opts = {"repo": address, "username": "reader", "password": {"secret": given}}
        wanted = release(stack, chart="tiny", version=">=0.1.0", repositoryOpts=opts)
        if known:
            stack.up(wanted)
            assert status(stack)["version"] == "0.1.0"
            assert stack.up().changed == ()
        else:
            assert "401" in str(stack.fails(lambda: stack.up(wanted)))
    assert password not in "\n".join(stack.lines)


def test_secrets_in_errors_of_a_chart_are_hidden(local: Stack) -> None:
    secret = secrets.token_hex(8)
    error = local.fails(lambda: local.up(release(local, values={"refuse": {"secret": f"no {secret}"}})))
    assert "[secret]" in str(error)
    assert secret not in "\n".join([str(error), *local.lines])


def test_an_object_that_is_not_ready_is_named_with_the_problem_of_its_pod(local: Stack) -> None:
    failing = release(local, values={"image": NO_IMAGE}, timeout=7 * SECONDS_OF_A_FAILURE)
    error = local.fails(lambda: local.up(failing))
    assert "pod r, container main: ErrImageNeverPull" in str(error)
    assert any("Pod is not ready" in line for line in local.lines)


@pytest.mark.parametrize("end", ["kill", "interrupt"])
@pytest.mark.parametrize("operation", ["create", "update"])
def test_after_a_run_is_cut_off_while_helm_waits_up_converges(local: Stack, operation: str, end: str) -> None:
    if operation == "update":
        local.up(release(local))
    local.resources = [release(local, values={"image": NO_IMAGE})]
    process = local.start()
    wait_until(lambda: local.find("pods", "r") is not None, "helm waits for the pod")
    if end == "kill":
        local.kill(process)
        assert history(local)[-1][1] in {"pending-install", "pending-upgrade"}
    else:
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "interrupted" in read(process), "the first signal is noticed")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert history(local)[-1][1] == "failed"
    local.up(release(local, values={"text": "b"}))
    assert local.data("r") == {"text": "b", "chart": "0.1.0"}
    assert history(local)[-1][1] == "deployed"
    assert local.up().changed == ()


def read(process: Any) -> str:
    """Return the next line of a process."""
    return str(process.stdout.readline())


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ({"postrender": "sed"}, "postrender"),
        ({"verify": True}, "verify"),
        ({"takeOwnership": True}, "takeOwnership"),
        ({"repositoryOpts": {"repo": "https://charts.invalid", "insecure": True}}, "repositoryOpts.insecure"),
        ({"timeout": "5m"}, "timeout"),
    ],
)
def test_other_inputs_are_refused_by_name(local: Stack, inputs: dict[str, Any], name: str) -> None:
    error = local.fails(lambda: local.preview(release(local, **inputs)))
    assert f"{name}: " in str(error)
