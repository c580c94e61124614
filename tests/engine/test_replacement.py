"""Replacements by pulumi-kubernetes, their order, and the resources that go down with them."""

from typing import Any

import pytest

from tests.engine.conftest import Stack
from tools.engine import StepOp

pytestmark = pytest.mark.engine

MUTABLE = {"kubernetes:enableConfigMapMutable": "true", "kubernetes:enableSecretMutable": "true"}
SELECTOR = {"matchLabels": {"app": "x"}}
POD = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "localhost/none"}]},
}
SKIP = {"annotations": {"pulumi.com/skipAwait": "true"}}


def uid(stack: Stack, plural: str, name: str, api: str = "/api/v1") -> str:
    found = stack.find(plural, name, api)
    assert found is not None
    return str(found["metadata"]["uid"])


def stateful_set(stack: Stack, **spec: Any) -> dict[str, Any]:
    body = {
        "spec": {"replicas": 0, "serviceName": "s", "selector": SELECTOR, "template": POD, **spec},
        "metadata": SKIP,
    }
    return stack.object("set", "apps/v1:StatefulSet", body)


def test_changed_data_replaces_a_named_config_map_and_the_old_one_goes_first(stack: Stack) -> None:
    stack.up(stack.config_map("a", {"k": "1"}))
    before = uid(stack, "configmaps", "a")
    plan = stack.preview(stack.config_map("a", {"k": "2"}))
    assert [(c.name, c.paths) for c in plan.of(StepOp.REPLACE)] == [("a", ("data.k",))]
    assert stack.up().names(StepOp.REPLACE) == {"a"}
    assert uid(stack, "configmaps", "a") != before
    assert stack.data("a") == {"k": "2"}


def test_a_provider_that_says_so_updates_config_maps_and_secrets_in_place(stack: Stack) -> None:
    stack.config = MUTABLE

    def both(value: str) -> list[dict[str, Any]]:
        secret = stack.object("s", "core/v1:Secret", {"stringData": {"k": {"secret": value}}})
        return [stack.config_map("a", {"k": value}), secret]

    stack.up(*both("1"))
    before = uid(stack, "configmaps", "a"), uid(stack, "secrets", "s")
    assert stack.up(*both("2")).names(StepOp.UPDATE) == {"a", "s"}
    assert (uid(stack, "configmaps", "a"), uid(stack, "secrets", "s")) == before


def test_an_immutable_config_map_is_replaced_even_so(stack: Stack) -> None:
    stack.config = MUTABLE

    def immutable(value: str) -> dict[str, Any]:
        return stack.object("a", "core/v1:ConfigMap", {"data": {"k": value}, "immutable": True})

    stack.up(immutable("1"))
    assert stack.up(immutable("2")).names(StepOp.REPLACE) == {"a"}
    assert stack.data("a") == {"k": "2"}


def test_without_a_fixed_name_the_new_one_comes_first_and_the_old_one_goes_last(stack: Stack) -> None:
    def unnamed(value: str) -> dict[str, Any]:
        return stack.object("a", "core/v1:ConfigMap", {"data": {"k": value}, "metadata": {"name": None}})

    def user() -> dict[str, Any]:
        return stack.thing("t", uses={"from": "a.metadata.name"})

    stack.exports = {"name": {"from": "a.metadata.name"}}
    stack.up(unnamed("1"), user())
    old = stack.deployer().outputs()["name"]
    stack.up(unnamed("2"), user())
    new = stack.deployer().outputs()["name"]
    assert new != old
    assert stack.data(old) is None
    assert stack.data(new) == {"k": "2"}
    assert stack.log()[-1] == "update t done"


@pytest.mark.parametrize(
    "spec",
    [
        {"serviceName": "t"},
        {"podManagementPolicy": "Parallel"},
        {"revisionHistoryLimit": 3},
        {"selector": {"matchLabels": {"app": "x", "b": "y"}}},
        {
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "v"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Mi"}},
                    },
                }
            ]
        },
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_a_stateful_set_is_replaced_for(stack: Stack, spec: dict[str, Any]) -> None:
    labels = {"app": "x", "b": "y"}
    template = {**POD, "metadata": {"labels": labels}}
    stack.up(stateful_set(stack, template=template))
    changed = stack.preview(stateful_set(stack, template=template, **spec)).changed
    assert [(c.name, c.operation) for c in changed] == [("set", StepOp.REPLACE)]


def test_a_stateful_set_is_updated_for_replicas_and_template(stack: Stack) -> None:
    stack.up(stateful_set(stack))
    before = uid(stack, "statefulsets", "set", "/apis/apps/v1")
    template = {**POD, "spec": {"containers": [{"name": "c", "image": "localhost/other"}]}}
    result = stack.up(stateful_set(stack, template=template, minReadySeconds=1))
    assert [(c.name, c.operation, set(c.paths)) for c in result.changed] == [
        ("set", StepOp.UPDATE, {"spec.template.spec.containers[0].image", "spec.minReadySeconds"})
    ]
    assert uid(stack, "statefulsets", "set", "/apis/apps/v1") == before


def volume_of(name: str) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "c", "image": "localhost/none"}],
        "volumes": [{"name": "v", "configMap": {"name": {"from": f"{name}.metadata.name"}}}],
    }
    return {**POD, "spec": spec}


def test_what_takes_its_spec_from_a_named_object_goes_down_with_it(stack: Stack) -> None:
    """Why a changed slurm.conf must never replace its ConfigMap: the StatefulSet would be torn down (K1)."""
    stack.up(stack.config_map("a", {"k": "1"}), stateful_set(stack, template=volume_of("a")))
    before = uid(stack, "statefulsets", "set", "/apis/apps/v1")
    result = stack.up(stack.config_map("a", {"k": "2"}), stateful_set(stack, template=volume_of("a")))
    assert result.names(StepOp.REPLACE) == {"a", "set"}
    assert uid(stack, "statefulsets", "set", "/apis/apps/v1") != before


def test_what_only_depends_on_a_named_object_stays_when_that_is_replaced(stack: Stack) -> None:
    plain = stateful_set(stack)
    plain["options"] = {"depends_on": ["a"]}
    stack.up(stack.config_map("a", {"k": "1"}), plain)
    assert stack.up(stack.config_map("a", {"k": "2"}), plain).names(StepOp.REPLACE) == {"a"}


def test_dependents_go_before_and_come_after_what_is_replaced(stack: Stack) -> None:
    def things(identity: str) -> list[dict[str, Any]]:
        return [
            stack.thing("a", identity=identity, alone=True),
            stack.thing("b", identity={"from": "a.made"}),
            stack.thing("c", of={"from": "a.made"}),
        ]

    stack.up(*things("1"))
    count = len(stack.log())
    result = stack.up(*things("2"))
    done = [line for line in stack.log()[count:] if line.endswith("done")]
    assert done == ["delete b done", "delete a done", "create a done", "create b done"]
    assert result.names(StepOp.REPLACE) == {"a", "b"}


def test_a_protected_dependent_stops_a_replacement(stack: Stack) -> None:
    def things(identity: str) -> list[dict[str, Any]]:
        return [
            stack.thing("a", identity=identity, alone=True),
            stack.thing("b", identity={"from": "a.made"}, options={"protect": True}),
        ]

    stack.up(*things("1"))
    error = stack.fails(lambda: stack.up(*things("2")))
    assert "protect" in str(error)
    assert not any("delete" in line for line in stack.log())


def test_a_protected_resource_is_not_replaced(stack: Stack) -> None:
    stack.up(stack.config_map("a", {"k": "1"}, protect=True))
    error = stack.fails(lambda: stack.up(stack.config_map("a", {"k": "2"}, protect=True)))
    assert "protect" in str(error)
    assert stack.data("a") == {"k": "1"}


def test_an_object_that_is_there_already_is_not_taken_over(stack: Stack) -> None:
    stack.kubernetes.run("create", "configmap", "a", "-n", stack.namespace, "--from-literal=k=theirs")
    error = stack.fails(lambda: stack.up(stack.config_map("a", {"k": "ours"})))
    assert "already exists" in str(error)
    assert stack.data("a") == {"k": "theirs"}
    assert stack.names() == set()


def test_a_renamed_resource_with_the_same_object_fails_without_an_alias(stack: Stack) -> None:
    stack.up(stack.config_map("a", {"k": "1"}))
    renamed = {**stack.config_map("a", {"k": "1"}), "name": "b"}
    assert "already exists" in str(stack.fails(lambda: stack.up(renamed)))
    assert stack.data("a") == {"k": "1"}, "the old one is deleted only after all else has gone well"
    renamed["options"] = {"aliases": [{"name": "a"}]}
    assert stack.up(renamed).changed == ()
    assert stack.names() == {"b"}


def test_another_namespace_is_another_object_and_comes_first(stack: Stack) -> None:
    other = f"{stack.namespace}-b"
    stack.kubernetes.run("create", "namespace", other)
    stack.up(stack.config_map("a", {"k": "1"}))
    moved = stack.object("a", "core/v1:ConfigMap", {"data": {"k": "1"}, "metadata": {"namespace": other}})
    assert stack.up(moved).names(StepOp.REPLACE) == {"a"}
    assert stack.data("a") is None
    stack.deployer().destroy()
    stack.kubernetes.run("delete", "namespace", other, "--wait=false")


def test_a_service_keeps_its_address_when_its_ports_change(stack: Stack) -> None:
    def service(port: int, **spec: Any) -> dict[str, Any]:
        return stack.object("s", "core/v1:Service", {"spec": {"ports": [{"port": port}], **spec}})

    stack.up(service(80))
    before = uid(stack, "services", "s")
    assert stack.up(service(81)).names(StepOp.UPDATE) == {"s"}
    assert uid(stack, "services", "s") == before
    assert stack.preview(service(81, clusterIP="None")).names(StepOp.REPLACE) == {"s"}


def test_a_claim_may_ask_for_more_but_not_for_another_class(stack: Stack) -> None:
    def claim(storage: str, storage_class: str) -> dict[str, Any]:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": storage}},
        }
        return stack.object("c", "core/v1:PersistentVolumeClaim", {"spec": spec, "metadata": SKIP})

    stack.up(claim("1Mi", "none"))
    assert stack.preview(claim("1Mi", "another")).names(StepOp.REPLACE) == {"c"}
    bigger = stack.fails(lambda: stack.up(claim("2Mi", "none")))
    assert "spec is immutable" in str(bigger), "an update: it is the API server that refuses"


def test_a_replacement_that_was_begun_continues_where_it_failed(stack: Stack) -> None:
    stack.up(stack.thing("a", identity="1", alone=True))
    fail = stack.mark("fail-create-a")
    stack.fails(lambda: stack.up(stack.thing("a", identity="2", alone=True)))
    fail.unlink()
    stack.up()
    assert [line for line in stack.log() if line.endswith("done")] == [
        "create a done",
        "delete a done",
        "create a done",
    ]
    assert stack.up().changed == ()
