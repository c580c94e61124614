"""A stack from its first preview to its end."""

import pytest

from tests.engine.conftest import Stack
from tools.engine import StepOp

pytestmark = pytest.mark.engine


def test_a_preview_says_what_would_be_created_and_creates_nothing(stack: Stack) -> None:
    plan = stack.preview(stack.config_map("a", {"k": "1"}), stack.thing("t"))
    assert {"a", "t"} <= plan.names(StepOp.CREATE)
    assert stack.data("a") is None
    assert stack.log() == []
    assert stack.names() == set()


def test_up_creates_and_the_next_up_changes_nothing(stack: Stack) -> None:
    result = stack.up(stack.config_map("a", {"k": "1"}), stack.thing("t"))
    assert {"a", "t"} <= result.names(StepOp.CREATE)
    assert stack.data("a") == {"k": "1"}
    assert stack.deployer(python=None).up().changed == ()  # another process, which orders sets as it likes
    assert stack.preview().changed == ()
    assert stack.log() == ["create t", "create t done"]


def test_only_what_changed_is_updated_and_the_paths_say_what_it_is(stack: Stack) -> None:
    stack.config = {"kubernetes:enableConfigMapMutable": "true"}
    rest = [stack.config_map("b", {"k": "1"}), stack.thing("t")]
    stack.up(stack.config_map("a", {"k": "1", "slurm.conf": "x"}), *rest)
    plan = stack.preview(stack.config_map("a", {"k": "1", "slurm.conf": "y"}), *rest)
    result = stack.up()
    for changes in (plan.changed, result.changed):
        assert [(c.name, c.operation, c.paths) for c in changes] == [("a", StepOp.UPDATE, ('data["slurm.conf"]',))]
    assert stack.data("a") == {"k": "1", "slurm.conf": "y"}


def test_a_field_that_is_no_longer_asked_for_is_taken_away(stack: Stack) -> None:
    stack.config = {"kubernetes:enableConfigMapMutable": "true"}
    stack.up(stack.config_map("a", {"k": "1", "l": "2"}))
    stack.up(stack.config_map("a", {"k": "1"}))
    assert stack.data("a") == {"k": "1"}


def test_what_the_program_no_longer_has_is_deleted(stack: Stack) -> None:
    a, b = stack.config_map("a", {}), stack.config_map("b", {})
    stack.up(a, b, stack.thing("t"))
    assert stack.preview(a).names(StepOp.DELETE) == {"b", "t"}
    assert stack.up(a).names(StepOp.DELETE) == {"b", "t"}
    assert stack.data("b") is None
    assert stack.names() == {"a"}


def test_values_flow_from_resource_to_resource(stack: Stack) -> None:
    stack.exports = {"made": {"from": "t.made"}}
    stack.up(stack.thing("t"), stack.config_map("a", {"of": {"from": "t.made"}}))
    assert stack.data("a") == {"of": "t-made"}
    assert stack.deployer().outputs() == {"made": "t-made"}


def test_a_preview_continues_with_what_is_not_known_yet(stack: Stack) -> None:
    plan = stack.preview(stack.thing("t"), stack.config_map("a", {"of": {"from": "t.made"}}))
    assert {"a", "t"} <= plan.names(StepOp.CREATE)


def test_an_object_without_a_name_gets_one_and_keeps_it(stack: Stack) -> None:
    unnamed = stack.object("auto", "core/v1:ConfigMap", {"data": {"k": "1"}, "metadata": {"name": None}})
    stack.exports = {"name": {"from": "auto.metadata.name"}}
    stack.up(unnamed)
    name = stack.deployer().outputs()["name"]
    assert name.startswith("auto-")
    assert len(name) == len("auto-") + 8
    assert stack.data(name) == {"k": "1"}
    assert stack.up().changed == ()


def test_destroy_deletes_in_the_reverse_order_of_dependencies_and_leaves_nothing(stack: Stack) -> None:
    stack.up(
        stack.thing("a"),
        stack.config_map("m", {}, depends_on=["a"]),
        stack.thing("c", options={"depends_on": ["m"]}),
    )
    assert stack.log() == ["create a", "create a done", "create c", "create c done"]
    stack.deployer().destroy()
    assert stack.log()[4:] == ["delete c", "delete c done", "delete a", "delete a done"]
    assert stack.data("m") is None
    assert stack.deployer().state() == []


def test_children_are_deleted_before_their_parent(stack: Stack) -> None:
    stack.up(
        {"name": "g", "type": "Group"},
        stack.thing("outer", options={"parent": "g"}),
        stack.thing("inner", options={"parent": "outer"}),
    )
    stack.deployer().destroy()
    assert [line for line in stack.log() if "delete" in line and "done" in line] == [
        "delete inner done",
        "delete outer done",
    ]


def test_refresh_finds_what_was_deleted_by_hand_and_up_creates_it_again(stack: Stack) -> None:
    stack.up(stack.config_map("a", {"k": "1"}), stack.config_map("b", {"k": "1"}))
    stack.kubernetes.run("delete", "configmap", "a", "-n", stack.namespace)
    assert stack.deployer().refresh().names(StepOp.DELETE) == {"a"}
    assert stack.names() == {"b"}
    assert stack.up().names(StepOp.CREATE) == {"a"}
    assert stack.data("a") == {"k": "1"}


def test_refresh_finds_what_was_changed_by_hand_and_up_puts_it_right(stack: Stack) -> None:
    stack.config = {"kubernetes:enableConfigMapMutable": "true", "kubernetes:enablePatchForce": "true"}
    stack.up(stack.config_map("a", {"k": "1"}))
    patch = '{"data": {"k": "by hand"}}'
    stack.kubernetes.run("patch", "configmap", "a", "-n", stack.namespace, "-p", patch)
    assert stack.up().changed == (), "the engine reads nothing from the cluster without a refresh"
    assert stack.deployer().refresh().names(StepOp.UPDATE) == {"a"}
    assert stack.up().names(StepOp.UPDATE) == {"a"}
    assert stack.data("a") == {"k": "1"}


def test_a_preview_that_refreshes_finds_what_was_changed_by_hand_and_records_nothing(stack: Stack) -> None:
    stack.config = {"kubernetes:enableConfigMapMutable": "true"}
    stack.up(stack.config_map("a", {"k": "1"}), stack.config_map("b", {"k": "1"}), stack.thing("t"))
    assert stack.deployer().preview(refresh=True).changed == ()
    patch = '{"data": {"k": "by hand"}}'
    stack.kubernetes.run("patch", "configmap", "a", "-n", stack.namespace, "-p", patch)
    stack.kubernetes.run("delete", "configmap", "b", "-n", stack.namespace)
    for _ in range(2):
        found = stack.deployer().preview(refresh=True)
        assert [(change.name, change.operation) for change in sorted(found.changed, key=lambda item: item.name)] == [
            ("a", StepOp.UPDATE),
            ("b", StepOp.CREATE),
        ]
    assert stack.names() == {"a", "b", "t"}
    assert stack.preview().changed == ()
    assert stack.data("a") == {"k": "by hand"}


def test_refresh_asks_dynamic_resources(stack: Stack) -> None:
    stack.up(stack.thing("t"), stack.thing("u"))
    stack.mark("gone-t")
    assert stack.deployer().refresh().names(StepOp.DELETE) == {"t"}
    assert stack.up().names(StepOp.CREATE) == {"t"}


def test_a_run_without_the_program_gives_providers_the_configuration_of_the_last_up(stack: Stack) -> None:
    stack.config = {"access:to": "east"}
    stack.up(stack.thing("t", tells="access:to"))
    stack.config = {"access:to": "west"}
    stack.deployer().refresh()
    assert stack.log()[-1] == "read t with east"
    stack.up()
    stack.deployer().refresh()
    assert stack.log()[-1] == "read t with west"


def test_quantities_written_in_another_way_are_no_change(stack: Stack) -> None:
    def quota(cpu: object, memory: str) -> dict[str, object]:
        body = {"spec": {"hard": {"cpu": cpu, "memory": memory}}}
        return stack.object("q", "core/v1:ResourceQuota", body)

    stack.up(quota("0.5", "1024Mi"))
    assert stack.up().changed == ()
    stack.deployer().refresh()
    assert stack.up().changed == ()
    assert stack.up(quota("500m", "1Gi")).changed == ()
