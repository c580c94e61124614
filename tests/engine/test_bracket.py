"""Deployment of a node set: its StatefulSet between resources of ours, in the order that keeps jobs alive."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import Stack
from tests.waiting import wait_until
from tools.engine import StepOp

pytestmark = pytest.mark.engine

STATEFUL_SETS = "/apis/apps/v1"


@pytest.fixture
def bracket(stack: Stack) -> Stack:
    """Three replicas, deployed."""
    stack.up(*declared(stack, 3))
    return stack


def declared(stack: Stack, replicas: int) -> list[dict[str, Any]]:
    """Return what a program declares: the size of the StatefulSet is what the drain before it gives out."""
    return [
        stack.thing("removed"),
        *node_set(stack, "gpu", replicas),
        stack.thing("gate", options={"depends_on": ["removed", "gpu-drain", "gpu", "gpu-guard"]}),
    ]


def node_set(stack: Stack, name: str, replicas: int) -> list[dict[str, Any]]:
    labels = {"app": name}
    spec = {
        "serviceName": "nodes",
        "replicas": {"from": f"{name}-drain.replicas"},
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            # Nothing here needs a process: the pods wait for a machine that there is not.
            "spec": {"nodeSelector": {"no-such": "machine"}, "containers": [{"name": "slurmd", "image": "none"}]},
        },
    }
    not_awaited = {"pulumi.com/skipAwait": "true", "pulumi.com/deletionPropagationPolicy": "background"}
    body = {"metadata": {"annotations": not_awaited}, "spec": spec}
    return [
        stack.thing(f"{name}-drain", replicas=replicas, options={"depends_on": ["removed"]}),
        stack.object(name, "apps/v1:StatefulSet", body, depends_on=[f"{name}-drain"]),
        stack.thing(f"{name}-guard", options={"depends_on": [name]}),
    ]


def replicas_of(stack: Stack, name: str = "gpu") -> int | None:
    """Return the size of the live StatefulSet; None when there is none."""
    found = stack.find("statefulsets", name, STATEFUL_SETS)
    return None if found is None else int(found["spec"]["replicas"])


def holds(stack: Stack, what: str) -> None:
    """Wait until a resource does something and is held there."""
    wait_until(lambda: f"holding {what}" in stack.log(), f"{what} is held")


def test_a_stateful_set_gets_its_size_from_the_drain_before_it(bracket: Stack) -> None:
    assert replicas_of(bracket) == 3
    assert bracket.up().changed == ()


def test_the_preview_of_a_scale_down_knows_the_new_size(bracket: Stack) -> None:
    plan = bracket.preview(*declared(bracket, 1))
    changed = {change.name: change for change in plan.changed}
    assert changed.keys() == {"gpu-drain", "gpu"}
    assert changed["gpu"].paths == ("spec.replicas",)


def test_a_stateful_set_keeps_its_size_until_the_drain_has_ended(bracket: Stack) -> None:
    mark = bracket.mark("hold-update-gpu-drain")
    bracket.resources = declared(bracket, 1)
    process = bracket.start()
    holds(bracket, "update gpu-drain")
    assert replicas_of(bracket) == 3
    mark.unlink()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert replicas_of(bracket) == 1


def test_a_drain_that_fails_leaves_the_stateful_set_as_it_is_and_the_next_up_continues(bracket: Stack) -> None:
    mark = bracket.mark("fail-update-gpu-drain")
    bracket.fails(lambda: bracket.up(*declared(bracket, 1)))
    assert replicas_of(bracket) == 3
    mark.unlink()
    bracket.up()
    assert replicas_of(bracket) == 1


def test_a_run_that_is_killed_while_it_drains_is_followed_by_one_that_drains_again(bracket: Stack) -> None:
    mark = bracket.mark("hold-update-gpu-drain")
    bracket.resources = declared(bracket, 1)
    process = bracket.start()
    holds(bracket, "update gpu-drain")
    bracket.kill(process)
    assert replicas_of(bracket) == 3
    mark.unlink()
    bracket.up()
    assert bracket.log()[-2:] == ["update gpu-drain", "update gpu-drain done"]
    assert replicas_of(bracket) == 1


def test_an_interrupted_drain_ends_first_and_the_next_up_continues(local: Stack) -> None:
    mark, process = held_at_the_drain(local)
    process.send_signal(signal.SIGINT)
    mark.unlink()
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "interrupted: steps under way end first" in said
    assert local.log()[-1] == "update gpu-drain done"
    assert replicas_of(local) == 3
    local.up()
    assert replicas_of(local) == 1


def test_a_drain_that_is_interrupted_twice_is_abandoned_and_the_next_up_continues(local: Stack) -> None:
    mark, process = held_at_the_drain(local)

    def has_ended() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    wait_until(has_ended, "the run ends")
    process.communicate()
    mark.unlink()
    assert local.log()[-1] == "holding update gpu-drain"
    assert replicas_of(local) == 3
    local.up()
    assert replicas_of(local) == 1


def held_at_the_drain(stack: Stack) -> tuple[Path, "subprocess.Popen[str]"]:
    """Begin a scale-down that is held while it drains; return what holds it, and the run."""
    stack.up(*declared(stack, 3))
    mark = stack.mark("hold-update-gpu-drain")
    stack.resources = declared(stack, 1)
    process = stack.start()
    holds(stack, "update gpu-drain")
    return mark, process


def test_a_node_set_that_is_removed_is_freed_before_its_stateful_set_goes(bracket: Stack) -> None:
    mark = bracket.mark("hold-delete-gpu-guard")
    bracket.resources = [bracket.thing("removed"), bracket.thing("gate", options={"depends_on": ["removed"]})]
    process = bracket.start()
    holds(bracket, "delete gpu-guard")
    assert replicas_of(bracket) == 3
    assert "delete gpu-drain" not in bracket.log()
    mark.unlink()
    process.communicate(timeout=120)
    assert replicas_of(bracket) is None
    assert bracket.log()[-2:] == ["delete gpu-drain", "delete gpu-drain done"]
    assert bracket.names() == {"removed", "gate"}


def test_a_node_set_that_is_not_free_stays_when_it_is_removed(bracket: Stack) -> None:
    mark = bracket.mark("fail-delete-gpu-guard")
    rest = [bracket.thing("removed"), bracket.thing("gate", options={"depends_on": ["removed"]})]
    bracket.fails(lambda: bracket.up(*rest))
    assert replicas_of(bracket) == 3
    mark.unlink()
    bracket.up()
    assert replicas_of(bracket) is None


def test_nothing_is_deleted_when_the_gate_does_not_open_and_the_next_destroy_continues(bracket: Stack) -> None:
    names = bracket.names()
    mark = bracket.mark("fail-delete-gate")
    bracket.fails(bracket.deployer().destroy)
    assert bracket.names() == names
    assert replicas_of(bracket) == 3
    assert [line for line in bracket.log() if line.startswith("delete")] == ["delete gate"]
    mark.unlink()
    result = bracket.deployer().destroy()
    assert {"gate", "gpu-guard", "gpu", "gpu-drain"} <= result.names(StepOp.DELETE)
    assert [line for line in bracket.log() if line.endswith("done") and line.startswith("delete")] == [
        f"delete {name} done" for name in ("gate", "gpu-guard", "gpu-drain", "removed")
    ]
    assert replicas_of(bracket) is None
