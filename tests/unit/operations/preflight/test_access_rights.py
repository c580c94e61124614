"""Rights of the caller, as the API server reviews them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import soperator_pulumi
from soperator_pulumi.kube.verbs import FIELD_MANAGER
from soperator_pulumi.operations.preflight import missing_rights
from soperator_pulumi.operations.preflight.access_rights import (
    _OF_PLATFORM,
    LIVE_CALLS,
    Right,
    live_rights,
    object_findings,
    platform_right_findings,
)
from soperator_pulumi.operations.preflight.diagnosis import Severity
from soperator_pulumi.operations.preflight.planned import PlannedChart
from tests.fakes.small_world import SmallWorld
from tools import paths

GPU_OPERATOR = PlannedChart("GpuOperator", "gpu-operator")
PACKAGE = Path(soperator_pulumi.__file__).parent


class Reviewing(SmallWorld):
    """A server with one API, whose reviews deny some verbs on some resources."""

    def __init__(self, *denied: str) -> None:
        super().__init__()
        self.denied = denied
        self.asked = 0

    def get(self, path: str) -> Any:
        if path == "/apis/apps/v1":
            return {"resources": [{"name": "statefulsets", "kind": "StatefulSet", "namespaced": True},
                                  {"name": "statefulsets/scale", "kind": "Scale", "namespaced": True}]}  # fmt: skip
        return super().get(path)

    def create(self, path: str, body: Any, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Any:
        assert path.endswith("/selfsubjectaccessreviews")
        assert not dry_run
        assert manager == FIELD_MANAGER
        self.asked += 1
        attributes = body["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, [attributes["resource"], attributes.get("subresource")]))
        denied = {text.split()[1] for text in self.denied if attributes["verb"] in {"*", text.split()[0]}}
        return {"status": {"allowed": not denied or (resource not in denied and resource != "*")}}


class Denying(Reviewing):
    """A server that denies everything."""

    def create(self, path: str, body: Any, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Any:
        super().create(path, body, dry_run=dry_run, manager=manager)
        return {"status": {"allowed": False}}


def a_stateful_set(version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": "StatefulSet", "metadata": {"name": "cpu", "namespace": "hpc"}}


def test_an_administrator_is_asked_about_with_one_question() -> None:
    api = Reviewing()
    (found,) = object_findings(api, [a_stateful_set()], "hpc")
    assert found.severity is Severity.PASSED
    assert api.asked == 1


def test_a_missing_right_on_leases_is_named_with_the_rule_that_gives_it() -> None:
    api = Reviewing("create leases", "patch leases")
    (problem,) = missing_rights(api, "hpc")
    assert problem.path == "kubeconfig"
    assert problem.text == (
        'its user may not create, patch leases in the namespace "hpc". Needed: these verbs, to let one planner drain '
        'at a time. Add to a Role of the user: {apiGroups: ["coordination.k8s.io"], resources: [leases], verbs: '
        "[create, patch]}."
    )


def test_the_verbs_on_a_planned_kind_are_those_of_the_servers_own_resource() -> None:
    found = [*object_findings(Reviewing("delete statefulsets"), [a_stateful_set()], "hpc")]
    assert [(diagnosis.severity, diagnosis.found) for diagnosis in found] == [
        (Severity.REFUSED, 'its user may not delete statefulsets in the namespace "hpc"')
    ]


def test_objects_of_users_with_the_label_of_a_platform_are_none_of_its_own() -> None:
    assert [*platform_right_findings(Reviewing(), [], [{"kind": "ConfigMap", "metadata": {"name": "notes"}}])] == []


def test_rights_that_a_platform_s_charts_need_are_refused_if_missing() -> None:
    found = [*platform_right_findings(Reviewing("create customresourcedefinitions", "update secrets"), [GPU_OPERATOR])]
    assert [(diagnosis.severity, diagnosis.path, diagnosis.found) for diagnosis in found] == [
        (Severity.REFUSED, "platform", "the user may not create customresourcedefinitions of the whole Kubernetes"),
        (Severity.REFUSED, "platform", 'the user may not update secrets in the namespace "gpu-operator"'),
    ]
    assert 'ClusterRole of the user: {apiGroups: ["apiextensions.k8s.io"]' in found[0].cure


def test_a_user_who_may_not_give_the_rights_of_others_is_warned_about_charts() -> None:
    (found,) = platform_right_findings(Reviewing("escalate clusterroles", "bind clusterroles"), [GPU_OPERATOR])
    assert found.severity is Severity.WARNED
    assert found.found == "the user may not escalate, bind clusterroles of the whole Kubernetes"


@pytest.mark.parametrize(
    ("part", "denied", "severity", "text"),
    [
        (
            "CertManager",
            "create rolebindings",
            Severity.REFUSED,
            'the user may not create rolebindings in the namespace "kube-system"',
        ),
        (
            "MariadbOperator",
            "patch mutatingwebhookconfigurations",
            Severity.REFUSED,
            "the user may not patch mutatingwebhookconfigurations of the whole Kubernetes",
        ),
        (
            "GpuOperator",
            "create validatingadmissionpolicies",
            Severity.WARNED,
            "the user may not create validatingadmissionpolicies of the whole Kubernetes",
        ),
        ("NetworkOperator", "create mutatingwebhookconfigurations", Severity.PASSED, ""),
        (
            "GpuOperator",
            "create clusterpolicies",
            Severity.REFUSED,
            "the user may not create clusterpolicies of the whole Kubernetes",
        ),
    ],
)
def test_a_chart_needs_rights_on_what_it_makes_outside_of_its_namespace(
    part: str, denied: str, severity: Severity, text: str
) -> None:
    (found,) = platform_right_findings(Reviewing(denied), [PlannedChart(part, "own")])
    assert (found.severity, found.found if text else "") == (severity, text)


def test_the_page_has_the_rights_that_are_reviewed_for_charts() -> None:
    parts = ("CertManager", "Cilium", "GpuOperator", "KubePrometheusStack", "MariadbOperator", "NetworkOperator")
    charts = [PlannedChart(part, "own") for part in parts]
    objects = [of_platform(kind) for kind in _OF_PLATFORM]
    findings = platform_right_findings(Denying(), charts, objects)
    named = {re.split(r" in the| of the", found.found)[0].split()[-1] for found in findings}
    page = (paths.ROOT / "docs/platform.md").read_text().partition("\n## Rights\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert named == {word for cell in cells for word in re.findall(r"`([a-z]+)`", cell)}


def of_platform(kind: str, **metadata: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "a", **metadata}}


@pytest.mark.parametrize(
    ("denied", "body", "text"),
    [
        ("create storageclasses", of_platform("StorageClass"), "create storageclasses of the whole Kubernetes"),
        (
            "patch nicclusterpolicies",
            of_platform("NicClusterPolicy"),
            "patch nicclusterpolicies of the whole Kubernetes",
        ),
        (
            "create ippools",
            of_platform("IPPool", namespace="nvidia-network-operator"),
            'create ippools in the namespace "nvidia-network-operator"',
        ),
    ],
)
def test_a_right_on_an_object_of_the_platform_itself_is_refused_if_missing(
    denied: str, body: dict[str, Any], text: str
) -> None:
    (found,) = platform_right_findings(Reviewing(denied), [], [body])
    assert (found.severity, found.path, found.found) == (Severity.REFUSED, "platform", f"the user may not {text}")


def test_a_platform_that_makes_nothing_needs_no_rights() -> None:
    assert [*platform_right_findings(Denying(), [])] == []


def test_an_administrator_may_install_all_charts() -> None:
    (found,) = platform_right_findings(Reviewing(), [GPU_OPERATOR, PlannedChart("KubePrometheusStack", "monitoring")])
    assert found.severity is Severity.PASSED


def test_a_right_to_wait_alone_is_a_warning() -> None:
    (found,) = object_findings(Reviewing("watch statefulsets"), [a_stateful_set()], "hpc")
    assert found.severity is Severity.WARNED


def test_a_kind_that_the_server_does_not_know_is_refused() -> None:
    first, *_ = object_findings(Reviewing(), [a_stateful_set("apps/v2")], "hpc")
    assert (first.severity, first.found) == (Severity.REFUSED, "the API server knows no StatefulSet of apps/v2")


def test_a_kind_of_an_operator_is_judged_with_the_prerequisites() -> None:
    found = [*object_findings(Reviewing(), [a_stateful_set("monitoring.coreos.com/v1")], "hpc")]
    assert [diagnosis.severity for diagnosis in found] == [Severity.PASSED]


@pytest.mark.parametrize("verb", ["get", "create"])
def test_an_exec_is_reviewed_as_a_subresource(verb: str) -> None:
    (right,) = [
        live_right for live_right in live_rights("hpc") if (live_right.resource, live_right.verb) == ("pods/exec", verb)
    ]
    attributes = right.review()["spec"]["resourceAttributes"]
    assert (attributes["resource"], attributes["subresource"]) == ("pods", "exec")


def test_a_resource_of_the_whole_kubernetes_is_reviewed_without_a_namespace() -> None:
    assert Right("", "namespaces", "", "get") in live_rights("hpc")


OF_THE_PLATFORM = {"installed.py"}
"""Modules that no resource of a cluster calls."""


def paths_in_sources() -> Iterator[tuple[str, str]]:
    """Yield module and path of each API path in the code that acts on a live cluster."""
    for folder in ("operations", "lifecycle", "slurm"):
        for file in (PACKAGE / folder).rglob("*.py"):
            if file.name in OF_THE_PLATFORM:
                continue
            if file.parent.name == "preflight" and file.name not in {
                "prerequisites.py",
                "named_objects.py",
                "api_server.py",
            }:
                continue  # the command's own checks, which name what they cannot read
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.JoinedStr):
                    text = "".join(
                        str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values
                    )
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    text = node.value
                else:
                    continue
                if re.match(r"/apis?/", text):
                    yield file.name, text


def test_every_path_of_the_api_in_the_sources_is_in_the_table() -> None:
    known = {call.resource.partition("/")[0] for call in LIVE_CALLS}
    words = [
        (
            file,
            re.findall(r"[a-z]+", re.sub(r"^/apis?/([a-z0-9.]+/)?v1(/namespaces/(\{\}|default))?", "", path))
            or ["namespaces"],
        )
        for file, path in paths_in_sources()
    ]
    assert len(words) > 10
    computed = {"s", "apis"}  # `{reference.kind.lower()}s`, whose kinds the table names; lists of APIs, open to all
    assert [(file, found[0]) for file, found in words if found[0] not in known | computed] == []
