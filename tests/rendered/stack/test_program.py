"""The program of every stack, deployed under mocks."""

import json
from typing import Any

import pytest
from pulumi import RunError

from soperator_pulumi.stack import program
from soperator_pulumi.stack.stack_config import StackConfigError
from soperator_pulumi.testing import Deployment, Secret, deploy
from stacks import this_machine
from tests.strategies import a_cluster

EXPORTS = {"namespace", "jail_tree", "login_host_key", "login_host_key_fingerprint", "login_endpoint"}
STORAGE = "organization/storage/prod"
FORM = "needs from_stack: <organization>/<project>/<stack> and output: <name>, both text."
THREE_PARTS = (
    "needs <organization>/<project>/<stack>. In a backend other than Pulumi Cloud, the organization is `organization`."
)


def run(stacks: dict[str, dict[str, Any]] | None = None, /, **values: Any) -> Deployment:
    """Deploy a stack with these values under `soperator:`."""
    config = {
        f"soperator:{key}": value if isinstance(value, str) else json.dumps(value) for key, value in values.items()
    }
    return deploy(program.run, config=config, stacks=stacks)


def refusal(**values: Any) -> str:
    """Return the message with which a stack is refused."""
    with pytest.raises(StackConfigError) as caught:
        run({STORAGE: {"class": "fast"}}, **values)
    return str(caught.value)


def from_storage(output: str) -> dict[str, str]:
    return {"from_stack": STORAGE, "output": output}


def test_one_cluster_has_the_name_of_its_description_and_exports_by_themselves() -> None:
    deployment = run(cluster=a_cluster(name="hpc2"))

    assert deployment.one("hpc2-cpu", "StatefulSet").inputs["spec"]["replicas"] == 2
    assert deployment.exports.keys() == EXPORTS


def test_messages_about_the_kubernetes_of_one_of_several_clusters_name_the_key_of_that_one() -> None:
    several = run(clusters={"blue": a_cluster(name="blue"), "green": a_cluster(name="green")})
    keys = {name: several.one(f"{name}-prerequisites").inputs["where"] for name in ("blue", "green")}
    assert keys == {"blue": "soperator:clusters.blue", "green": "soperator:clusters.green"}
    assert run(cluster=a_cluster(name="hpc2")).one("hpc2-prerequisites").inputs["where"] == "soperator:cluster"


def test_several_clusters_have_exports_by_their_names_and_the_defaults_in_each() -> None:
    clusters = {"blue": a_cluster(name="blue"), "green": {**a_cluster(), "name": None, "labels": {"team": "b"}}}
    deployment = run(clusters=clusters, defaults={"labels": {"team": "a", "site": "x"}})

    assert {name: exports.keys() for name, exports in deployment.exports["clusters"].items()} == {
        "blue": EXPORTS,
        "green": EXPORTS,
    }
    labels = deployment.one("green-login", "StatefulSet").inputs["metadata"]["labels"]
    assert (labels["team"], labels["site"]) == ("b", "x")
    assert deployment.one("green-namespace").inputs["metadata"]["name"] == "green"


def test_all_problems_of_all_clusters_are_in_one_message_with_their_paths() -> None:
    blue = a_cluster(node_sets=[{"name": "cpu", "cpus": 4, "memory_gib": 0}], login={"replicsa": 2})
    green = {**a_cluster(), "cluster_domain": "_", "users": [{"name": "bob"}]}

    assert refusal(clusters={"blue": blue, "green": green}, defaults={"slurm": {"extra": {"X": 1}}}, kubconfig="x") == (
        """\
the configuration of stack test has 6 problems:
  soperator:kubconfig: unknown key. Did you mean "soperator:kubeconfig"?
  soperator:clusters.blue.login.replicsa: unknown key. Did you mean "replicas"?
  soperator:clusters.blue.node_sets[0].memory_gib: got 0, needs a number of GiB without a unit, such as 2 or 0.5, \
from 0.125 to 1000000.
  soperator:defaults.slurm.extra.X: Slurm has no such setting. See slurm.conf(5) for its settings.
  soperator:clusters.green.cluster_domain: got "_", needs the name of a Kubernetes object: lower case letters, \
digits, '-' and '.'.
  soperator:clusters.green.users[0].uid: missing. It has no default: give a value."""
    )


def test_clusters_of_one_name_are_refused_before_either_is_made() -> None:
    assert refusal(clusters={"blue": a_cluster(), "green": a_cluster(namespace="green")}) == (
        "the configuration of stack test has 1 problem:\n"
        '  soperator:clusters.green.name: "hpc" is also that of soperator:clusters.blue. '
        "Clusters need distinct names: choose another."
    )


def test_the_problems_of_one_cluster_have_paths_below_its_key() -> None:
    assert refusal(cluster=a_cluster(login={"replicas": -1})) == (
        "soperator:cluster has 1 problem:\n  login.replicas: got -1, needs a whole number from 0 to 64."
    )


def test_values_of_other_stacks_reach_the_resources_as_outputs() -> None:
    jail = {"storage": {"storage_class": from_storage("class")}}
    submount = {"path": "/data", "existing_claim": from_storage("data")}
    deployment = run(
        {STORAGE: {"class": "fast-rwx", "data": "datasets"}},
        cluster=a_cluster(jail={**jail, "submounts": [submount]}),
    )

    assert deployment.one("hpc-jail", "PersistentVolumeClaim").inputs["spec"]["storageClassName"] == "fast-rwx"
    volumes = deployment.one("hpc-cpu", "StatefulSet").inputs["spec"]["template"]["spec"]["volumes"]
    assert "datasets" in {volume.get("persistentVolumeClaim", {}).get("claimName") for volume in volumes}


@pytest.mark.parametrize("kubeconfig", ['{"clusters": []}', {"clusters": []}], ids=["text", "mapping"])
def test_a_kubeconfig_of_another_stack_is_a_secret_of_the_provider_and_of_what_acts_on_the_cluster(
    kubeconfig: object,
) -> None:
    deployment = run(
        {STORAGE: {"kubeconfig": Secret(kubeconfig)}}, cluster=a_cluster(), kubeconfig=from_storage("kubeconfig")
    )
    for name in ("hpc-kubernetes", "hpc-drain-gate"):
        assert deployment.one(name).inputs["kubeconfig"] == Secret('{"clusters": []}')


def test_a_kubeconfig_in_the_configuration_is_taken_as_text_also_when_it_is_json() -> None:
    deployment = run(cluster=a_cluster(), kubeconfig='{"clusters": []}', context="there")

    inputs = deployment.one("hpc-kubernetes").inputs
    assert (inputs["kubeconfig"], inputs["context"]) == (Secret('{"clusters": []}'), "there")


def test_a_reference_where_the_value_decides_which_resources_exist_is_refused_with_its_path() -> None:
    assert refusal(clusters={"a": a_cluster(namespace=from_storage("class"))}) == (
        "the configuration of stack test has 1 problem:\n"
        "  soperator:clusters.a.namespace: got an Output, needs a plain value, because it decides which resources "
        "exist. Give the value itself."
    )


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"from_stack": STORAGE}, f"got a mapping of from_stack, {FORM}"),
        ({"from_stack": STORAGE, "outptu": "class"}, f"got a mapping of from_stack, outptu, {FORM}"),
        ({"from_stack": "storage", "output": "class"}, f'got from_stack: "storage", {THREE_PARTS}'),
        (from_storage("clas"), f'stack {STORAGE} has no output "clas". Its outputs: class.'),
    ],
)
def test_a_reference_that_leads_nowhere_is_named_with_the_form_that_it_needs(
    reference: dict[str, str], said: str
) -> None:
    assert refusal(cluster=a_cluster(jail={"storage": {"storage_class": reference}})) == (
        f"soperator:cluster has 1 problem:\n  jail.storage.storage_class: {said}"
    )


def test_a_malformed_reference_of_the_defaults_is_named_there() -> None:
    defaults = {"storage": {"state": {"storage_class": {"from_stack": STORAGE}}}}
    assert refusal(cluster=a_cluster(), defaults=defaults) == (
        "the configuration of stack test has 1 problem:\n"
        f"  soperator:defaults.storage.state.storage_class: got a mapping of from_stack, {FORM}"
    )


def test_another_stack_is_not_asked_for_anything_before_the_configuration_is_valid() -> None:
    cluster = a_cluster(jail={"storage": {"storage_class": {"from_stack": "a/b/gone", "output": "class"}}}, login=5)
    assert refusal(cluster=cluster) == (
        "soperator:cluster has 1 problem:\n  login: got 5, needs a mapping of keys to values."
    )


def test_a_value_of_another_stack_that_its_field_does_not_take_is_refused_and_not_shown() -> None:
    cluster = a_cluster(jail={"storage": {"storage_class": from_storage("class")}})
    words = "storage_class: got a value that is not shown here, needs the name of a Kubernetes object"
    with pytest.raises(RunError, match=words) as caught:
        run({STORAGE: {"class": Secret("S3CRET CLASS")}}, cluster=cluster)
    assert "S3CRET" not in str(caught.value)


@pytest.mark.parametrize("users", [["somebody"], {"a": 1}, [{"name": "demo", "uid": 2000, "ssh_keys": None}]])
def test_users_that_are_none_are_refused_on_this_machine_as_anywhere(
    users: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.images.references", dict)
    config = {"soperator:cluster": json.dumps(a_cluster(users=users)), "soperator:local": '{"user": "demo"}'}
    with pytest.raises(StackConfigError, match="users"):
        deploy(lambda: program.run(this_machine.complete), config=config)


def test_the_stack_of_this_machine_needs_what_completes_it() -> None:
    assert "soperator:local: is for a cluster on this machine" in refusal(cluster=a_cluster(), local={"user": "demo"})


@pytest.mark.parametrize("name", ["", "a::b", "A b/", "x" * 41])
def test_a_name_of_a_cluster_that_no_urn_takes_is_refused(name: str) -> None:
    assert "soperator:clusters: got the name" in refusal(clusters={name: a_cluster()})


def test_the_process_that_acts_is_a_key_of_a_stack() -> None:
    assert run(cluster=a_cluster(), served_by="plugin").resources("soperator-pulumi:index:DrainGate")
