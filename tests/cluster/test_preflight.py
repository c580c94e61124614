"""A preflight names the one fault of a cluster, and nothing else; and leaves nothing behind."""

import copy
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.verbs import FIELD_MANAGER
from soperator_pulumi.operations.preflight.cluster_probe import LABEL, label_of
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity
from soperator_pulumi.operations.preflight.planned import PlannedCluster
from soperator_pulumi.operations.preflight.preflight_run import Preflight
from soperator_pulumi.stack.preflight_plan import plans_of_file
from tests.cluster.slurm import NOWHERE, SMALL, a_cluster, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images, paths

pytestmark = pytest.mark.cluster

PRIVILEGED = "pod-security.kubernetes.io/enforce"
OWNER_SUFFIX = "preflight"


@pytest.fixture(scope="module")
def world(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator["World"]:
    """A namespace for a cluster that is never deployed, with everything that it needs."""
    bring_images(kubernetes)
    made = World(kubernetes, tmp_path_factory.mktemp("preflight"), unique("preflight"))
    made.core.create_namespace({"metadata": {"name": made.namespace, "labels": {PRIVILEGED: "privileged"}}})
    yield made
    kubernetes.throw_away(made.namespace)


class World:
    """The Kubernetes, and the description of a cluster for it."""

    def __init__(self, kubernetes: Kubernetes, folder: Path, namespace: str) -> None:
        self.kubernetes = kubernetes
        self.folder = folder
        self.namespace = namespace
        self.kube = Cluster(Access(str(kubernetes.kubeconfig), kubernetes.target.context))

    @property
    def core(self) -> Any:  # the client's models say that every field may be None
        """The core API."""
        return self.kubernetes.core

    def described(self, **changes: object) -> dict[str, Any]:
        """Return a description that this Kubernetes takes, with the given keys changed."""
        owned = {"owner": f"project.{self.namespace}.{OWNER_SUFFIX}", "create_namespace": False}
        named = {"name": self.namespace, "images": images.references(), **owned}
        return a_cluster(**{**named, "node_sets": [a_node_set("cpu")], **changes})

    def file(self, **changes: object) -> Path:
        """Write a description."""
        file = self.folder / f"{unique('cluster')}.yaml"
        file.write_text(yaml.safe_dump(self.described(**changes)))
        return file

    def planned(self, **changes: object) -> PlannedCluster:
        ((found, _),) = plans_of_file(self.file(**changes))
        assert isinstance(found, PlannedCluster)
        return found

    def found(self, *probes: str, kube: Any = None, seconds: float = 90, **changes: object) -> list[Diagnosis]:
        """Return the findings that are no pass, of a cluster that is described with these changes."""
        run = Preflight(kube or self.kube, self.planned(**changes), print, probes, probe_seconds=seconds)
        return [finding for finding in run.findings() if finding.severity is not Severity.PASSED]

    def left(self) -> list[str]:
        """Return the names of what preflights of this owner have left in the cluster."""
        selector = f"{LABEL}={label_of(self.described()['owner'])}"
        core: Any = self.core
        network: Any = client.NetworkingV1Api(self.kubernetes.api)
        kinds = (
            core.list_namespace,
            core.list_pod_for_all_namespaces,
            core.list_service_for_all_namespaces,
            core.list_persistent_volume_claim_for_all_namespaces,
            network.list_network_policy_for_all_namespaces,
        )
        return [item.metadata.name for kind in kinds for item in kind(label_selector=selector).items]

    def command(self, *arguments: str | Path) -> list[str]:
        target = self.kubernetes.target
        context = ["--context", target.context] if target.context else []
        words = ["-m", "soperator_pulumi.cli", "preflight", "--kubeconfig", target.kubeconfig, *context, *arguments]
        return [sys.executable, *map(str, words)]


def refusals(found: list[Diagnosis]) -> dict[str, str]:
    """Return what was refused, by the check."""
    return {
        diagnosis.check: f"{diagnosis.path}: {diagnosis.found}"
        for diagnosis in found
        if diagnosis.severity is Severity.REFUSED
    }


# -- a cluster without a fault ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(world: World) -> "subprocess.CompletedProcess[str]":
    """The command, on a cluster without a fault whose namespace is not there yet."""
    name = unique("healthy")
    owner = world.described()["owner"]
    file = world.file(name=name, owner=owner, create_namespace=True, slurm={"constrain": "cgroup"})
    return subprocess.run(
        world.command(file, "--json"), cwd=paths.ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_cluster_without_a_fault_is_refused_nothing(healthy: "subprocess.CompletedProcess[str]") -> None:
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    report = json.loads(healthy.stdout)
    assert report["refused"] is False
    (cluster,) = report["clusters"]
    assert cluster["refused"] == 0


def test_every_check_has_made_a_finding(healthy: "subprocess.CompletedProcess[str]") -> None:
    (cluster,) = json.loads(healthy.stdout)["clusters"]
    passed = {finding["check"] for finding in cluster["findings"] if finding["severity"] == "passed"}
    shared = {finding["found"] for finding in cluster["findings"] if finding["check"] == "storage"}
    assert passed >= {
        *("release", "rights", "prerequisites", "machines", "clocks", "admission", "images", "runtime", "network")
    }
    assert any("share it" in item for item in shared), shared  # on one machine, that is a warning


def test_progress_is_on_standard_error_alone(healthy: "subprocess.CompletedProcess[str]") -> None:
    assert "makes the namespace soperator-preflight-" in healthy.stderr
    assert "waits for" in healthy.stderr


def test_nothing_of_the_probes_is_left(healthy: "subprocess.CompletedProcess[str]", world: World) -> None:
    assert healthy.returncode == 0
    # Kubernetes takes claims away some time after the pods that used them.
    wait_until(lambda: world.left() == [], what="the probes of all preflights are gone", timeout_seconds=60)


def test_make_preflight_checks_a_stack_and_has_the_exit_status_of_its_findings(world: World) -> None:
    """The stack of this machine, whose cluster the tests do not deploy."""
    target = world.kubernetes.target
    variables = {"KUBECONFIG": str(target.kubeconfig), "CONTEXT": target.context or ""}
    done = subprocess.run(
        [sys.executable, "-m", "tools.preflight_stack", "--stack", "local", "--read-only", "--json"],
        cwd=paths.ROOT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert [cluster["cluster"] for cluster in report["clusters"]] == ["soperator:cluster"]
    assert done.returncode == (1 if report["refused"] else 0), done.stderr


def test_what_a_killed_run_left_is_removed_by_the_next(world: World) -> None:
    command = world.command(world.file(), "--skip", "images", "--skip", "runtime", "--skip", "admission")
    killed = subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(world.left()) >= 5, what="the probes are there")
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    before = {*world.left()}
    assert len(before) >= 5

    assert refusals(world.found("images")) == {}
    wait_until(lambda: not before & {*world.left()}, what="the probes of the killed run are gone", timeout_seconds=60)


# -- clusters with one fault each: found by reading ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"node_sets": [a_node_set("cpu", pod_resources=None, cpus=1000)]}, "machines", "no machine can allocate"),
        ({"node_sets": [a_node_set("cpu", gpus={"count": 8, "type": "h100"})]}, "machines", "0 of 8 nvidia.com/gpu"),
        ({"node_sets": [a_node_set("cpu", node_selector={"pool": "none"})]}, "machines", "has the label pool=none"),
        (
            {"jail": {"source": {"image": NOWHERE}, "storage": {"storage_class": "none"}}},
            "prerequisites",
            'jail.storage.storage_class: got "none", but there is no StorageClass of that name',
        ),
        (
            {"secrets": {"munge_key": {"secret": "none"}}},
            "prerequisites",
            'secrets.munge_key: got "none", but there is no Secret of that name',
        ),
        (
            {"controller": {"pod_resources": SMALL, "priority_class": "none"}},
            "prerequisites",
            'controller.priority_class: got "none", but there is no PriorityClass',
        ),
        ({"namespace": "preflight-missing"}, "prerequisites", "does not exist, and create_namespace is false"),
        ({"create_namespace": True}, "prerequisites", "exists already and was not made by this stack"),
    ],
    ids=["too large", "no GPUs", "no label", "no class", "no secret", "no priority class", "no namespace", "taken"],
)  # fmt: skip
def test_a_fault_that_reading_shows_is_refused_alone(
    world: World, changes: Mapping[str, Any], check: str, words: str
) -> None:
    found = refusals(world.found(**changes))
    assert [*found] == [check]
    assert words in found[check]


def test_a_load_balancer_that_no_one_serves_is_warned_of(world: World) -> None:
    login = {"pod_resources": SMALL, "service": "LoadBalancer", "allowed_sources": ["10.0.0.0/8"]}
    (found,) = world.found(login=login)
    assert (found.check, found.severity) == ("load balancer", Severity.WARNED)


@pytest.fixture(scope="module")
def without_leases(world: World) -> Iterator[Cluster]:
    """A user with every right but those on Leases."""
    rbac: Any = client.RbacAuthorizationV1Api(world.kubernetes.api)
    name = f"{world.namespace}-user"
    core = world.core
    core.create_namespaced_service_account(world.namespace, {"metadata": {"name": name}})
    groups = ["", "apps", "batch", "networking.k8s.io", "policy", "storage.k8s.io", "scheduling.k8s.io",
              "discovery.k8s.io"]  # fmt: skip
    rules = [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]
    rbac.create_cluster_role({"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": world.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    rbac.create_cluster_role_binding({"metadata": {"name": name}, "subjects": [subject], "roleRef": role})
    token = core.create_namespaced_service_account_token(name, world.namespace, {"spec": {}}).status.token
    settings = yaml.safe_load(world.kubernetes.kubeconfig.read_text())
    settings["users"] = [{"name": user["name"], "user": {"token": token}} for user in settings["users"]]
    yield Cluster(Access(yaml.safe_dump(settings), world.kubernetes.target.context))
    rbac.delete_cluster_role_binding(name)
    rbac.delete_cluster_role(name)


def test_a_user_without_rights_on_leases_is_refused_with_the_rule_that_gives_them(
    world: World, without_leases: Cluster
) -> None:
    found = world.found(kube=without_leases)
    (refused,) = [diagnosis for diagnosis in found if diagnosis.severity is Severity.REFUSED]
    assert refused.found == f'its user may not get, create, patch leases in the namespace "{world.namespace}"'
    assert refused.cure.endswith(
        '{apiGroups: ["coordination.k8s.io"], resources: [leases], verbs: [get, create, patch]}.'
    )
    assert [diagnosis.check for diagnosis in found if diagnosis is not refused] == ["clocks"]  # which Leases show


# -- found by the server's admission ----------------------------------------------------------------------------------


@contextmanager
def a_namespace(world: World, **labels: str) -> Iterator[str]:
    name = unique("preflight-own")
    world.core.create_namespace({"metadata": {"name": name, "labels": labels}})
    account = partial(world.core.list_namespaced_service_account, name)
    wait_until(lambda: bool(account().items), what="pods may be created in the namespace")
    yield name
    world.kubernetes.throw_away(name)


def test_a_namespace_that_enforces_pod_security_is_refused_by_its_label_and_by_the_server(world: World) -> None:
    with a_namespace(world, **{PRIVILEGED: "baseline"}) as namespace:
        found = refusals(world.found("admission", namespace=namespace))
    assert {*found} == {"prerequisites", "admission"}
    assert 'enforces the Pod Security level "baseline"' in found["prerequisites"]
    assert "violates PodSecurity" in found["admission"]


def test_a_quota_that_the_pods_exceed_is_refused(world: World) -> None:
    with a_namespace(world, **{PRIVILEGED: "privileged"}) as namespace:
        quota = {"metadata": {"name": "quota"}, "spec": {"hard": {"requests.cpu": "1m"}}}
        world.core.create_namespaced_resource_quota(namespace, quota)
        wait_until(
            lambda: bool(world.core.read_namespaced_resource_quota("quota", namespace).status.hard),
            what="the quota is in force",
        )
        found = refusals(world.found("admission", namespace=namespace))
    assert [*found] == ["admission"]
    assert "exceeded quota" in found["admission"]


@contextmanager
def a_policy(world: World, kind: str, spec: Mapping[str, Any], in_force: Callable[[], bool]) -> Iterator[None]:
    """Put a policy in force in the namespace of the tests alone, for pods and StatefulSets."""
    name, version = f"{world.namespace}-{kind.lower()}", "admissionregistration.k8s.io/v1"
    chosen = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    body = {"failurePolicy": "Fail", "matchConstraints": {**chosen, "resourceRules": rules}, **spec}
    bound = {"policyName": name, **({"validationActions": ["Deny"]} if kind.startswith("Validating") else {})}
    parts = [(kind, body), (f"{kind}Binding", bound)]
    with ExitStack() as made:
        for text, given in parts:
            plural = f"{text.lower()}s" if text.endswith("Binding") else f"{text.lower()[:-1]}ies"
            path = f"/apis/{version}/{plural}"
            world.kube.create(path, {"apiVersion": version, "kind": text, "metadata": {"name": name}, "spec": given})
            made.callback(world.kube.delete, f"{path}/{name}")
        wait_until(in_force, what=f"{kind} is in force", timeout_seconds=60)
        yield


def admits(world: World, *capabilities: str) -> Any:
    """Return the capabilities of a pod that asks for these as the server admits it; None for a refused one."""
    container = {"name": "a", "image": "a", "securityContext": {"capabilities": {"add": [*capabilities]}}}
    pod = {"metadata": {"name": unique("pod")}, "spec": {"containers": [container]}}
    try:
        got = world.core.create_namespaced_pod(world.namespace, pod, dry_run="All")
    except ApiException as error:
        if error.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY}:
            raise
        return None
    return got.spec.containers[0].security_context.capabilities.add


def test_a_policy_that_forbids_a_capability_is_refused_in_its_own_words(world: World) -> None:
    rule = (
        "!object.spec.containers.exists(c, has(c.securityContext) && has(c.securityContext.capabilities) && "
        "has(c.securityContext.capabilities.add) && 'SYS_ADMIN' in c.securityContext.capabilities.add)"
    )
    spec = {"validations": [{"expression": rule, "message": "the site forbids SYS_ADMIN"}]}
    with a_policy(world, "ValidatingAdmissionPolicy", spec, lambda: admits(world, "SYS_ADMIN") is None):
        found = refusals(world.found("admission"))
    assert [*found] == ["admission"]
    assert "node_sets[0]: the API server refuses a pod" in found["admission"]
    assert "the site forbids SYS_ADMIN" in found["admission"]


def test_a_policy_that_changes_pods_is_refused_and_its_effect_seen_in_a_real_one(world: World) -> None:
    """The kernel itself refuses the steps of the plugin to the pod whose capability the policy took."""
    added = "object.spec.containers[0].?securityContext.?capabilities.?add"
    patch = "[JSONPatch{op: 'replace', path: '/spec/containers/0/securityContext/capabilities/add', value: ['SETUID']}]"
    spec = {
        "reinvocationPolicy": "Never",
        "matchConditions": [{"name": "adds", "expression": f"{added}.hasValue()"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    with a_policy(world, "MutatingAdmissionPolicy", spec, lambda: admits(world, "SYS_ADMIN") == ["SETUID"]):
        found = world.found("admission", "runtime")
    assert {*refusals(found)} == {"admission", "runtime"}
    assert any("a webhook or policy changes its pods" in diagnosis.found for diagnosis in found)
    runtime = [diagnosis.found for diagnosis in found if diagnosis.check == "runtime"]
    assert any("the container has no" in text and "SYS_ADMIN" in text for text in runtime)
    assert any("is not allowed a mount namespace of its own" in text for text in runtime)


# -- found by pods ----------------------------------------------------------------------------------------------------


def test_an_image_that_is_not_there_is_refused_with_its_name(world: World) -> None:
    found = refusals(world.found("images", images={**images.references(), "login": NOWHERE}))
    assert [*found] == ["images"]
    assert f"{NOWHERE} is not pulled" in found["images"]


def test_a_domain_that_the_clusters_dns_does_not_serve_is_refused(world: World) -> None:
    found = refusals(world.found("network", seconds=60, cluster_domain="wrong.example"))
    assert [*found] == ["network"]
    assert "name is not resolved in a pod" in found["network"]


class WithoutPolicies(Cluster):
    """A Kubernetes whose network takes NetworkPolicies and enforces none: those that it keeps choose no pod."""

    def create(self, path: str, body: Any, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Any:
        if body["kind"] == "NetworkPolicy":
            body = copy.deepcopy(body)
            body["spec"]["podSelector"] = {"matchLabels": {"nobody": "here"}}
        return super().create(path, body, dry_run=dry_run, manager=manager)


def test_a_network_that_enforces_no_policy_is_refused_for_both_directions(world: World) -> None:
    target = world.kubernetes.target
    found = world.found("network", seconds=60, kube=WithoutPolicies(Access(str(target.kubeconfig), target.context)))
    assert {diagnosis.check for diagnosis in found} == {"network"}
    text = " ".join(diagnosis.found for diagnosis in found)
    assert "closes for ingress is open" in text
    assert "closes for egress is open" in text


def test_a_class_that_provisions_nothing_is_refused_with_the_reason(world: World) -> None:
    storage: Any = client.StorageV1Api(world.kubernetes.api)
    name = f"{world.namespace}-none"
    storage.create_storage_class({"metadata": {"name": name}, "provisioner": "example.com/none"})
    try:
        jail = {**world.described()["jail"], "storage": {"storage_class": name}}
        found = refusals(world.found("storage", seconds=3, jail=jail))
    finally:
        storage.delete_storage_class(name)
    assert [*found] == ["storage"]
    assert "two pods that mount the volume do not both run" in found["storage"]
