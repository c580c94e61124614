"""Resources around a node set's StatefulSet, so that no pod goes while a job is on it."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.lifecycle import IDENTITY_ANNOTATION, POLICY_ANNOTATION
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import a_deployment, a_spec, containers_of, pod_of, provided

TWO = [{"name": "cpu", "cpus": 4, "memory_gib": 8}, {"name": "big", "cpus": 64, "memory_gib": 512}]


def waits_for(deployment: Deployment, name: str, type_: str = "") -> set[str]:
    """Logical names of all that a resource waits for, directly or not."""
    return {awaited.name for awaited in deployment.waits_for(deployment.one(name, type_))}


@pytest.mark.parametrize(
    "overrides", [{}, {"node_sets": TWO, "create_namespace": False}, {"jail": {"admin_shell": True}}], ids=str
)
def test_the_gate_depends_on_everything_but_the_wait_for_nodes_so_that_it_is_deleted_first(
    overrides: dict[str, Any],
) -> None:
    deployment = a_deployment(**overrides)
    gate = deployment.one("hpc-drain-gate")
    others = {
        (resource.type, resource.name)
        for resource in deployment.recorded
        if not resource.type.startswith("soperator-pulumi:")
    }
    waits = {(awaited.type, awaited.name) for awaited in deployment.waits_for(gate)}
    ready = {(resource.type, resource.name) for resource in deployment.resources(":NodesReady")}
    assert others - waits == {(gate.type, gate.name)} | ready


def test_the_gate_is_there_also_when_nodes_never_join() -> None:
    deployment = a_deployment(node_sets=TWO)
    waits = deployment.waits_for(deployment.one("hpc-drain-gate"))
    assert not [awaited.name for awaited in waits if awaited.type.endswith(":NodesReady")]


def test_the_gate_goes_before_all_that_runs_pods_and_waits_for_none_that_no_job_needs() -> None:
    deployment = a_deployment(
        containers={"images": ["ubuntu:24.04"]},
        health={"long_checks": {"memory_bandwidth": {}}},
        metrics={},
        rest={},
    )
    gate = deployment.waits_for(deployment.one("hpc-drain-gate"))
    run_pods = [
        *deployment.resources(":StatefulSet"),
        *deployment.resources(":CronJob"),
        deployment.one("hpc-container-images-publish", "Job"),
    ]
    assert {"hpc-metrics", "hpc-rest", "hpc-health-checks-memory_bandwidth"} < {resource.name for resource in run_pods}
    assert {resource.name for resource in run_pods} <= {awaited.name for awaited in gate}
    waits = {awaited.name for awaited in gate if awaited.type.endswith((":PodsReady", ":ImagesPublished"))}
    assert waits.isdisjoint({"hpc-container-images-published", "hpc-metrics-ready", "hpc-rest-ready"})


def test_node_sets_that_are_gone_are_free_before_slurm_loses_their_partitions() -> None:
    for config in ("hpc-slurm-config", "hpc-users", "hpc-ssh-keys", "hpc-sshd-config"):
        assert "hpc-removed-node-sets" in waits_for(a_deployment(), config)


def test_a_node_set_shrinks_after_its_nodes_are_free_and_goes_after_all_are() -> None:
    deployment = a_deployment()
    assert "hpc-cpu-drain" in waits_for(deployment, "hpc-cpu", ":StatefulSet")
    assert {"hpc-cpu", "hpc-controller"} <= waits_for(deployment, "hpc-cpu-drain-gate")
    assert {"hpc-cpu", "hpc-cpu-drain-gate"} <= waits_for(deployment, "hpc-cpu-ready")


def test_resources_do_not_grow_with_nodes() -> None:
    few, many = (registered(a_node_set(replicas=replicas)) for replicas in (8, 4096))
    assert few.keys() == many.keys()
    changed = {name for (type_, name), inputs in few.items() if inputs != many[type_, name]}
    assert changed == {"hpc-cpu", "hpc-cpu-drain", "hpc-cpu-ready", "hpc-removed-node-sets"}
    scaled = {key: re.sub(r'("replicas": (\{"cpu": )?)8\.0', r"\g<1>4096.0", inputs) for key, inputs in few.items()}
    assert scaled == many


def registered(node_sets: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the inputs of all resources of a cluster, by their types and names."""
    recorded = a_deployment(node_sets=node_sets).recorded
    return {(resource.type, resource.name): json.dumps(resource.inputs, default=repr) for resource in recorded}


def test_node_sets_do_not_wait_for_each_other() -> None:
    waiting = waits_for(a_deployment(node_sets=TWO), "hpc-big-ready")
    assert not {text for text in waiting if text.startswith("hpc-cpu")}


def test_kubernetes_is_asked_for_as_many_pods_as_the_drain_has_left() -> None:
    def outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"replicas": 5} if type_.endswith(":NodeDrain") else provided(type_, name, inputs)

    deployment = deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=outputs)
    assert deployment.one("hpc-cpu-drain").inputs["replicas"] == 2
    assert deployment.one("hpc-cpu", "StatefulSet").inputs["spec"]["replicas"] == 5
    assert deployment.one("hpc-cpu-ready").inputs["replicas"] == 5


def test_the_spec_of_a_node_set_reaches_what_drains_waits_and_renews() -> None:
    node_set = {
        "name": "cpu",
        "cpus": 4,
        "memory_gib": 8,
        "drain": {"timeout": "90m", "on_timeout": "requeue"},
        "rolling_update": {"max_unavailable": "25%", "idle_wait": "2h"},
        "max_unready": 1,
        "wait_until_ready": False,
        "ready_timeout_seconds": 60,
    }
    deployment = a_deployment(node_sets=[node_set])
    ready = deployment.one("hpc-cpu-ready").inputs
    assert ready["rolling_update"] == {"max_unavailable": "25%", "idle_wait": "2h"}
    assert (ready["max_unready"], ready["wait_until_ready"], ready["timeout_seconds"]) == (1, False, 60)
    policy = ready["policy"]
    assert (policy["timeout"], policy["on_timeout"], policy["grace"]) == ("1h30m", "requeue", "5m")
    assert deployment.one("hpc-cpu-drain").inputs["policy"] == policy
    for name in ("hpc-removed-node-sets", "hpc-cpu-drain-gate", "hpc-drain-gate"):
        assert deployment.one(name).inputs["policies"] == {"cpu": policy}
    annotations = deployment.one("hpc-cpu", "StatefulSet").inputs["metadata"]["annotations"]
    assert json.loads(annotations[POLICY_ANNOTATION]) == policy


def test_every_node_set_knows_the_sizes_of_all_as_slurm_schedules_them() -> None:
    sizes = (("cpu", 8, 0), ("big", 64, 1))
    deployment = a_deployment(
        node_sets=[
            {"name": name, "cpus": 4, "memory_gib": size, "reserved_cores": reserved} for name, size, reserved in sizes
        ],
        slurm={"constrain": "cgroup"},
    )
    for name in ("hpc-cpu-ready", "hpc-big-ready"):
        assert deployment.one(name).inputs["memory_mib"] == {"cpu": 7936, "big": 64512}
        assert deployment.one(name).inputs["cpus"] == {"cpu": 4, "big": 3}


def test_the_time_for_pods_that_are_no_workers_reaches_all_that_waits_for_them() -> None:
    deployment = a_deployment(ready_timeout_seconds=1200, accounting={}, metrics={}, rest={})
    waits = [
        *deployment.resources(":PodsReady"),
        deployment.one("hpc-jail-populated"),
        deployment.one("hpc-active-tree"),
    ]
    assert len(waits) == 8
    assert {wait.inputs["timeout_seconds"] for wait in waits} == {1200}
    assert deployment.one("hpc-cpu-ready").inputs["timeout_seconds"] == 600


def test_what_acts_on_slurm_knows_whose_cluster_it_is_and_in_which_namespace() -> None:
    def outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if type_.endswith(":Namespace"):
            return {"metadata": {**inputs["metadata"], "uid": "1234"}}
        return provided(type_, name, inputs)

    deployment = deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=outputs)
    for name in ("hpc-removed-node-sets", "hpc-cpu-drain", "hpc-cpu-drain-gate", "hpc-cpu-ready", "hpc-drain-gate"):
        inputs = deployment.one(name).inputs
        assert (inputs["namespace"], inputs["namespace_uid"], inputs["owner"]) == ("hpc", "1234", "project.test.hpc")


def test_the_uid_of_a_namespace_that_is_there_already_is_recorded_by_what_drains() -> None:
    inputs = a_deployment(create_namespace=False).one("hpc-cpu-drain").inputs
    assert inputs.get("namespace_uid") is None


def test_those_that_look_for_node_sets_find_the_pods_of_all_and_others_those_of_one() -> None:
    deployment = a_deployment(node_sets=TWO)
    worker = {
        "app.kubernetes.io/part-of": "soperator-pulumi",
        "app.kubernetes.io/instance": "hpc",
        "app.kubernetes.io/component": "worker",
    }
    assert deployment.one("hpc-drain-gate").inputs["selector"] == worker
    assert deployment.one("hpc-removed-node-sets").inputs["selector"] == worker
    assert deployment.one("hpc-big-drain").inputs["selector"] == {**worker, "soperator-pulumi/node-set": "big"}


def template(**overrides: Any) -> str:
    found: str = a_deployment(**overrides).one("hpc-cpu-ready").inputs["template"]
    return found


def a_node_set(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "cpu", "replicas": 2, "cpus": 4, "memory_gib": 8, **fields}]


def test_the_template_that_a_preview_compares_is_another_one_exactly_when_the_pods_are() -> None:
    before = template()
    same = [
        template(node_sets=a_node_set(replicas=7)),
        template(node_sets=a_node_set(drain={"timeout": "1h"}, rolling_update={"max_unavailable": 3})),
        template(users=[]),
    ]
    changed = [
        template(node_sets=a_node_set(cpus=8)),
        template(node_sets=a_node_set(features=["ib"])),
        template(node_sets=a_node_set(drain={"grace": "1h"})),
        template(labels={"team": "hpc"}),
        template(jail={"submounts": [{"path": "/data", "existing_claim": "data"}]}),
    ]
    assert same == [before] * len(same)
    assert len({before, *changed}) == len(changed) + 1


@pytest.mark.parametrize("everywhere", [False, True], ids=["of the component", "of the stack"])
def test_a_transformation_of_the_pods_reaches_the_preview_of_their_recreation(everywhere: bool) -> None:
    def annotated(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ != "kubernetes:apps/v1:StatefulSet":
            return None
        props: Any = args.props
        props["spec"].template.metadata.annotations = {"team": "hpc"}
        return pulumi.ResourceTransformationResult(props, args.opts)

    def program() -> None:
        if everywhere:
            pulumi.runtime.register_stack_transformation(annotated)
        SlurmCluster("hpc", a_spec(), pulumi.ResourceOptions(transformations=[] if everywhere else [annotated]))

    found = json.loads(deploy(program, outputs=provided).one("hpc-cpu-ready").inputs["template"])
    assert found["metadata"]["annotations"] == {"team": "hpc"}


def test_what_transforms_in_the_engine_make_of_the_pods_reaches_the_preview_of_their_recreation() -> None:
    """The program sees their result in the outputs of the StatefulSet alone."""

    def outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if name != "hpc-cpu" or not type_.endswith(":StatefulSet"):
            return provided(type_, name, inputs)
        pod = inputs["spec"]["template"]
        tolerations = [{"key": "team", "operator": "Exists"}]
        return {"spec": {**inputs["spec"], "template": {**pod, "spec": {**pod["spec"], "tolerations": tolerations}}}}

    deployment = deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=outputs)
    found = json.loads(deployment.one("hpc-cpu-ready").inputs["template"])
    assert found["spec"]["tolerations"] == [{"key": "team", "operator": "Exists"}]


def identity(**overrides: Any) -> str:
    deployment = a_deployment(**overrides)
    found: str = deployment.one("hpc-cpu-drain").inputs["identity"]
    annotations = deployment.one("hpc-cpu", "StatefulSet").inputs["metadata"]["annotations"]
    assert annotations[IDENTITY_ANNOTATION] == found
    return found


def test_a_drain_hears_of_a_change_that_makes_pulumi_replace_the_stateful_set_and_of_no_other() -> None:
    assert identity() == identity(node_sets=a_node_set(replicas=7, cpus=8), labels={"team": "hpc"})
    assert identity() != identity(namespace="elsewhere")
    assert identity() != identity(name="other", namespace="hpc")


def test_a_worker_that_is_to_stop_drains_its_node_first_for_as_long_as_the_spec_gives_it() -> None:
    pod = pod_of(a_deployment(node_sets=a_node_set(drain={"grace": "1h"})), "hpc-cpu")
    assert pod["terminationGracePeriodSeconds"] == 3600
    command = containers_of(pod)["slurmd"]["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:2] == ["/usr/lib/soperator/drain_on_stop.sh", "soperator-pulumi project.test.hpc: pod-stop"]


def test_a_worker_that_starts_undoes_a_drain_of_its_own_cluster_only() -> None:
    probe = containers_of(pod_of(a_deployment(), "hpc-cpu"))["slurmd"]["startupProbe"]["exec"]["command"]
    owner = "soperator-pulumi project.test.hpc"
    assert probe == ["/usr/lib/soperator/started.sh", f"{owner}: pod-stop", f"{owner}: pod-start"]


def test_what_kubectl_scale_has_set_is_taken_back_by_a_deployment() -> None:
    annotations = a_deployment().one("hpc-cpu", "StatefulSet").inputs["metadata"]["annotations"]
    assert annotations["pulumi.com/patchForce"] == "true"


def test_a_stateful_set_is_deleted_before_its_successor_is_made_so_that_its_gate_is_asked() -> None:
    """Also where a transformation of the program gives it another name."""
    assert a_deployment().request("hpc-cpu", "StatefulSet").deleteBeforeReplace
