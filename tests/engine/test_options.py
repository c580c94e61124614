"""Resource options: each does what Pulumi says it does."""

import pytest

from tests.engine.conftest import Stack
from tools.engine import StepOp

pytestmark = pytest.mark.engine

MUTABLE = {"kubernetes:enableConfigMapMutable": "true"}


def test_protected_resources_stop_a_destroy_before_anything_is_deleted(stack: Stack) -> None:
    stack.up(stack.thing("a"), stack.config_map("m", {}, protect=True))
    error = stack.fails(stack.deployer().destroy)
    assert "m" in str(error)
    assert "protect" in str(error)
    assert stack.names() == {"a", "m"}
    assert stack.log() == ["create a", "create a done"]


def test_a_destroy_that_excludes_them_leaves_them_and_all_that_they_need(stack: Stack) -> None:
    stack.up(
        {"name": "g", "type": "Group"},
        stack.thing("below"),
        stack.config_map("m", {}, protect=True, depends_on=["below"], parent="g"),
        stack.thing("above", options={"depends_on": ["m"]}),
        stack.thing("beside"),
    )
    stack.deployer().destroy(exclude_protected=True)
    assert stack.names() == {"g", "below", "m"}
    assert stack.data("m") == {}
    assert {line for line in stack.log() if line.startswith("delete")} == {
        "delete above",
        "delete above done",
        "delete beside",
        "delete beside done",
    }
    kept = [{"name": "g", "type": "Group"}, stack.thing("below")]
    stack.up(*kept, stack.config_map("m", {}, depends_on=["below"], parent="g"))
    stack.deployer().destroy()
    assert stack.deployer().state() == []


def test_a_protected_resource_that_the_program_drops_stays_and_fails_the_run(stack: Stack) -> None:
    stack.up(stack.config_map("m", {}, protect=True), stack.thing("t"))
    assert "protect" in str(stack.fails(lambda: stack.up(stack.thing("t"))))
    assert stack.data("m") == {}


def test_what_is_retained_leaves_the_state_but_not_the_cluster(stack: Stack) -> None:
    stack.up(stack.config_map("m", {"k": "1"}, retain_on_delete=True), stack.thing("t"))
    stack.up(stack.thing("t"))
    assert stack.names() == {"t"}
    assert stack.data("m") == {"k": "1"}


@pytest.mark.parametrize("option", ["protect", "retain_on_delete"])
def test_children_inherit_from_their_parent_what_becomes_of_them(stack: Stack, option: str) -> None:
    group = {"name": "g", "type": "Group", "options": {option: True}}
    stack.up(group, stack.config_map("m", {"k": "1"}, parent="g"))
    if option == "protect":
        assert "m" in str(stack.fails(stack.deployer().destroy))
    else:
        stack.deployer().destroy()
        assert stack.deployer().state() == []
    assert stack.data("m") == {"k": "1"}


def test_ignored_changes_are_not_made(stack: Stack) -> None:
    stack.config = MUTABLE
    ignored = ["data.mine", "data.not"]
    stack.up(stack.config_map("m", {"mine": "1", "ours": "1"}, ignore_changes=ignored))
    stack.up(stack.config_map("m", {"mine": "2", "ours": "2", "not": "1"}, ignore_changes=ignored))
    assert stack.data("m") == {"mine": "1", "ours": "2"}
    assert stack.up().changed == ()


def test_what_is_ignored_stays_with_whoever_manages_it(stack: Stack) -> None:
    stack.config = MUTABLE

    def scaled(count: int, label: str) -> dict[str, object]:
        template = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "localhost/none"}]},
        }
        body = {
            "metadata": {"annotations": {"pulumi.com/skipAwait": "true"}, "labels": {"l": label}},
            "spec": {"replicas": count, "selector": {"matchLabels": {"app": "x"}}, "template": template},
        }
        return stack.object("d", "apps/v1:Deployment", body, ignore_changes=["spec.replicas"])

    stack.up(scaled(0, "1"))
    stack.kubernetes.run("scale", "deployment", "d", "-n", stack.namespace, "--replicas=2")
    stack.up(scaled(0, "2"))
    found = stack.find("deployments", "d", "/apis/apps/v1")
    assert found is not None
    assert (found["spec"]["replicas"], found["metadata"]["labels"]) == (2, {"l": "2"})


def test_changes_that_the_program_says_so_of_replace(stack: Stack) -> None:
    stack.config = MUTABLE
    options = {"replace_on_changes": ["data.k"], "delete_before_replace": True}
    stack.up(stack.config_map("m", {"k": "1", "l": "1"}, **options))
    updated = stack.up(stack.config_map("m", {"k": "1", "l": "2"}, **options))
    replaced = stack.up(stack.config_map("m", {"k": "2", "l": "2"}, **options))
    assert updated.names(StepOp.UPDATE) == {"m"}
    assert replaced.names(StepOp.REPLACE) == {"m"}


@pytest.mark.parametrize(
    ("first", "order"),
    [(True, ["delete t done", "create t done"]), (False, ["create t done", "delete t done"])],
)
def test_the_program_may_say_which_goes_first(stack: Stack, first: bool, order: list[str]) -> None:
    options = {"delete_before_replace": first}
    stack.up(stack.thing("t", identity="1", options=options))
    stack.up(stack.thing("t", identity="2", options=options))
    assert [line for line in stack.log() if line.endswith("done")][1:] == order


def test_an_alias_keeps_what_has_another_name_type_or_parent_now(stack: Stack) -> None:
    stack.up(stack.thing("a"), {"name": "g", "type": "Group"})
    moved = {**stack.thing("b"), "options": {"parent": "g", "aliases": [{"name": "a", "parent": None}]}}
    moved["properties"]["name"] = "a"
    assert stack.preview({"name": "g", "type": "Group"}, moved).changed == ()
    assert stack.up().changed == ()
    assert stack.names() == {"g", "b"}
    assert stack.log() == ["create a", "create a done"]


def test_a_create_that_takes_too_long_fails_and_the_next_up_continues_to_wait(stack: Stack) -> None:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "localhost/absent:1", "imagePullPolicy": "Never"}]},
    }
    never = stack.object(
        "d",
        "apps/v1:Deployment",
        {"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}},
        custom_timeouts={"create": "2s", "update": "1s"},
    )
    stack.fails(lambda: stack.up(never, stack.thing("t", options={"depends_on": ["d"]})))
    assert stack.names() == {"d"}, "it is there, and is known to be"
    assert stack.log() == [], "what depends on it is not begun"
    assert stack.preview().names(StepOp.UPDATE) == {"d"}
    stack.fails(stack.up)


def test_a_provider_of_the_programs_own_says_which_cluster_and_namespace(stack: Stack) -> None:
    properties: dict[str, object] = {
        "kubeconfig": str(stack.kubernetes.kubeconfig),
        "namespace": stack.namespace,
        "enable_config_map_mutable": True,
    }
    if context := stack.kubernetes.target.context:
        properties["context"] = context
    provider = {"name": "p", "type": "Provider", "properties": properties}

    def config_map(value: str) -> dict[str, object]:
        body = {"data": {"k": value}, "metadata": {"namespace": None}}
        return stack.object("m", "core/v1:ConfigMap", body, provider="p")

    stack.up(provider, config_map("1"))
    assert stack.data("m") == {"k": "1"}
    assert stack.up().changed == ()
    assert stack.up(provider, config_map("2")).names(StepOp.UPDATE) == {"m"}
    stack.deployer().destroy()
    assert stack.data("m") is None


def test_from_the_default_provider_to_one_of_its_own_nothing_is_replaced(stack: Stack) -> None:
    provider = {
        "name": "p",
        "type": "Provider",
        "properties": {"kubeconfig": str(stack.kubernetes.kubeconfig)},
    }
    stack.up(stack.config_map("m", {"k": "1"}))
    result = stack.up(provider, stack.config_map("m", {"k": "1"}, provider="p"))
    assert result.names(StepOp.REPLACE, StepOp.DELETE) == set()
