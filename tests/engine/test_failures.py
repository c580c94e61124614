"""Failures, kills and locks, and the next run after them."""

import base64
import json
import stat
from pathlib import Path

import pytest

from tests.engine.conftest import KILLED, Stack
from tests.engine.engines import PROGRAM
from tests.waiting import wait_until
from tools.console import UserError
from tools.engine import StepOp, Target

pytestmark = pytest.mark.engine


def test_a_failed_create_stops_what_depends_on_it_and_what_is_under_way_ends(stack: Stack) -> None:
    hold = stack.mark("hold-create-slow")
    stack.mark("fail-create-bad")
    stack.resources = [
        stack.thing("slow"),
        stack.thing("bad", options={"depends_on": []}),
        stack.thing("after", options={"depends_on": ["bad"]}),
    ]
    process = stack.start()
    wait_until(lambda: {"holding create slow", "create bad"} <= set(stack.log()), "both creates have begun")
    hold.unlink()
    output, _ = process.communicate()
    assert process.returncode == 1
    assert "create of bad fails" in output
    assert "Traceback" not in output.partition("!!")[2].partition("pulumi:pulumi:Stack")[0]
    assert stack.names() == {"slow"}
    assert "create after" not in stack.log()
    stack.folder.joinpath("things", "fail-create-bad").unlink()
    assert stack.up().names(StepOp.CREATE) == {"bad", "after"}


def test_a_failed_update_keeps_the_old_state_and_is_tried_again(stack: Stack) -> None:
    stack.up(stack.thing("t", value="1"), stack.thing("after", of={"from": "t.made"}, value="1"))
    fail = stack.mark("fail-update-t")
    changed = [stack.thing("t", value="2"), stack.thing("after", of={"from": "t.made"}, value="2")]
    error = stack.fails(lambda: stack.up(*changed))
    assert [(f.name, f.message.splitlines()[0]) for f in error.failures if f.urn] == [("t", "update of t fails")]
    assert "update after" not in stack.log()
    fail.unlink()
    assert stack.up().names(StepOp.UPDATE) == {"t", "after"}


def test_a_failed_delete_keeps_what_depends_on_its_success(stack: Stack) -> None:
    """The gate: deleted first, and if that fails nothing else is gone."""
    stack.up(
        stack.thing("a"),
        stack.config_map("m", {}, depends_on=["a"]),
        stack.thing("gate", options={"depends_on": ["m"]}),
    )
    fail = stack.mark("fail-delete-gate")
    error = stack.fails(stack.deployer().destroy)
    assert "delete of gate fails" in str(error)
    assert stack.names() == {"a", "m", "gate"}
    assert stack.data("m") == {}
    fail.unlink()
    stack.deployer().destroy()
    assert stack.deployer().state() == []


def test_inputs_that_a_provider_refuses_are_named_and_nothing_is_begun(stack: Stack) -> None:
    error = stack.fails(lambda: stack.preview(stack.thing("t", wrong="too large")))
    assert "too large" in str(error)
    assert "t" in [failure.name for failure in error.failures]
    stack.fails(stack.up)
    assert stack.log() == []


def test_an_error_of_the_program_fails_the_run_and_deletes_nothing(stack: Stack) -> None:
    stack.up(stack.config_map("m", {}))
    error = stack.fails(lambda: stack.up({"name": "x", "type": "Thing", "options": {"depends_on": ["none"]}}))
    assert "KeyError" in str(error)
    assert stack.data("m") == {}


def test_what_the_api_server_refuses_is_reported_in_its_words_already_by_a_preview(stack: Stack) -> None:
    bad = stack.object("s", "core/v1:Service", {"spec": {"ports": [{"port": 99999}]}})
    assert "99999" in str(stack.fails(lambda: stack.preview(bad)))


@pytest.mark.parametrize("moment", ["create", "update", "delete"])
def test_after_a_kill_at_work_on_a_dynamic_resource_up_converges(stack: Stack, moment: str) -> None:
    before = [stack.thing("t", value="1"), stack.config_map("m", {"of": {"from": "t.made"}})]
    after = {
        "create": before,
        "update": [stack.thing("t", value="2"), before[1]],
        "delete": [stack.config_map("m", {"k": "1"})],
    }[moment]
    if moment != "create":
        stack.up(*before)
    stack.resources = after
    hold = stack.mark(f"hold-{moment}-t")
    process = stack.start()
    wait_until(lambda: f"holding {moment} t" in stack.log(), f"the {moment} has begun")
    stack.kill(process)
    assert process.returncode == KILLED
    hold.unlink()
    stack.up()
    assert stack.up().changed == ()
    assert stack.names() == {resource["name"] for resource in after}
    assert stack.log()[-1] == f"{moment} t done"


def test_after_a_kill_while_an_object_is_awaited_destroy_deletes_it_before_what_it_needs(local: Stack) -> None:
    awaited = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    claim = local.object(
        "c",
        "core/v1:PersistentVolumeClaim",
        {"metadata": {"labels": {"app": "x"}}, "spec": {**awaited, "resources": {"requests": {"storage": "1Mi"}}}},
        depends_on=["t"],
    )
    local.resources = [local.thing("t"), claim]
    process = local.start()
    wait_until(lambda: local.find("persistentvolumeclaims", "c") is not None, "the claim is there")
    local.kill(process)
    deleted = [change.name for change in local.deployer().destroy().changed]
    assert deleted.index("c") < deleted.index("t")


def test_after_a_kill_while_an_object_is_awaited_up_takes_it_in(stack: Stack) -> None:
    """The API server has it, the state does not: the next up must not stumble over it."""
    claim = stack.object(
        "c",
        "core/v1:PersistentVolumeClaim",
        {
            "metadata": {"labels": {"app": "x"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "late",
                "resources": {"requests": {"storage": "1Mi"}},
            },
        },
    )
    stack.resources = [claim, stack.thing("t", options={"depends_on": ["c"]})]
    process = stack.start()
    wait_until(lambda: stack.find("persistentvolumeclaims", "c") is not None, "the claim is there")
    stack.kill(process)
    found = stack.find("persistentvolumeclaims", "c")
    assert found is not None
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": stack.namespace},
        "spec": {
            "storageClassName": "late",
            "capacity": {"storage": "1Mi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/nonexistent"},
            "claimRef": {"namespace": stack.namespace, "name": "c"},
        },
    }
    stack.kubernetes.run("create", "-f", "-", stdin=json.dumps(volume))
    try:
        stack.up()
        again = stack.find("persistentvolumeclaims", "c")
        assert again is not None
        assert again["metadata"]["uid"] == found["metadata"]["uid"], "it was taken in, not made again"
        assert stack.names() == {"c", "t"}
        assert stack.up().changed == ()
        stack.deployer().destroy()
        assert stack.find("persistentvolumeclaims", "c") is None
    finally:
        stack.kubernetes.run("delete", "persistentvolume", stack.namespace, "--wait=false")


@pytest.mark.parametrize("after_lines", range(1, 8, 2))
def test_after_a_kill_at_any_line_of_output_up_converges(stack: Stack, after_lines: int) -> None:
    maps = [stack.config_map(f"m{i}", {"k": str(i)}) for i in range(4)]
    stack.resources = [*maps, stack.thing("t", of={"from": "m3.metadata.name"})]
    process = stack.start()
    assert process.stdout is not None
    for _ in range(after_lines):
        process.stdout.readline()
    stack.kill(process)
    stack.up()
    assert stack.up().changed == ()
    assert [stack.data(f"m{i}") for i in range(4)] == [{"k": str(i)} for i in range(4)]
    assert stack.names() == {"m0", "m1", "m2", "m3", "t"}


def test_a_second_run_says_who_holds_the_stack_and_a_patient_one_waits(stack: Stack) -> None:
    hold = stack.mark("hold-create-t")
    stack.resources = [stack.thing("t")]
    process = stack.start()
    wait_until(lambda: "holding create t" in stack.log(), "the first run is at work")
    with pytest.raises(UserError, match=f"process {process.pid} of ") as caught:
        stack.deployer(lock_timeout_seconds=0.3).up()
    assert "up of test" in str(caught.value)
    second = stack.start()
    assert second.stdout is not None
    assert "waiting up to 30 s for `up of test`" in second.stdout.readline()
    hold.unlink()
    for process_ in (process, second):
        process_.communicate()
        assert process_.returncode == 0
    assert stack.log() == ["create t", "holding create t", "create t done"]


def test_no_secret_is_in_plain_text_in_the_state_or_on_the_screen(stack: Stack) -> None:
    password = {
        "name": "p",
        "type": "random:index/randomPassword:RandomPassword",
        "properties": {"length": 24, "special": False, "result": None},
        "options": {"additional_secret_outputs": ["result"]},
    }
    secret = {"from": "p.result"}
    stack.exports = {"s": secret}
    stack.up(
        password,
        stack.object("s", "core/v1:Secret", {"stringData": {"k": secret}}),
        stack.thing("t", password=secret),
        stack.config_map("plain", {"k": "in plain sight"}),
    )
    stack.deployer().refresh()
    stack.deployer().preview()
    generated = stack.deployer().outputs()["s"]
    assert len(generated) == 24
    files = [file.read_bytes() for file in stack.target().state.rglob("*") if file.is_file()]
    assert any(b"in plain sight" in text for text in files), "this search would find it"
    for form in (generated.encode(), base64.b64encode(generated.encode())):
        assert not any(form in text for text in files)
    assert not any(generated in line for line in stack.lines)
    assert generated not in repr(stack.deployer().state())


def test_nothing_of_the_state_can_be_read_by_others(stack: Stack) -> None:
    stack.up(stack.thing("t", password={"secret": "s"}))
    for path in stack.target().state.rglob("*"):
        readable = path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
        closed = any(not parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
        assert not readable or closed, path


def test_a_cluster_that_does_not_answer_gives_one_clear_message(stack: Stack) -> None:
    kubeconfig = stack.folder / "kubeconfig"
    cluster = {"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "gone", "context": {"cluster": "gone", "user": "u"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {"token": "t"}}]}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "gone", **config}))
    stack.resources = [stack.config_map("m", {}), stack.config_map("n", {})]
    stack.config = {"kubernetes:context": "gone"}
    deployer = stack.deployer(environment={"KUBECONFIG": str(kubeconfig)})
    error = stack.fails(deployer.up)
    assert "127.0.0.1:1" in str(error) or "unreachable" in str(error)
    assert "Traceback" not in str(error)


def test_a_kubeconfig_that_is_not_there_is_named(local: Stack) -> None:
    local.resources = [local.config_map("m", {})]
    missing = local.folder / "none"
    error = local.fails(local.deployer(environment={"KUBECONFIG": str(missing)}).up)
    assert f"kubeconfig {missing}: No such file" in str(error)


def test_a_stack_without_configuration_is_refused_by_the_name_of_its_file(local: Stack) -> None:
    target = Target(project=PROGRAM, stack="none", state=local.folder)
    with pytest.raises(UserError, match=r"Pulumi.none.yaml does not exist"):
        type(local.deployer())(target, local.lines.append).up()  # type: ignore[call-arg] # a Deployer's class is one of ours


def test_the_source_tree_is_left_as_it_was(stack: Stack) -> None:
    def listing() -> set[Path]:
        return {path for path in PROGRAM.rglob("*") if "__pycache__" not in path.parts}

    before = listing()
    stack.up(stack.thing("t"))
    stack.deployer().destroy()
    assert listing() == before


def test_a_server_for_dynamic_resources_ends_with_its_engine(local: Stack) -> None:
    local.mark("hold-create-t")
    local.resources = [local.thing("t")]
    process = local.start()
    wait_until(lambda: "holding create t" in local.log(), "the server is at work")
    process.kill()
    process.communicate()
    parent = f'"parent": {process.pid}'.encode()

    def is_left_over(command: Path) -> bool:
        try:
            return parent in command.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return False  # it has just ended

    wait_until(lambda: not any(map(is_left_over, Path("/proc").glob("[0-9]*/cmdline"))), "all children have ended")
