"""Pods in which users work keep their labels, annotations, spread, host names and ServiceAccounts."""

from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.spec.cluster import parse_cluster
from tests.unit.convert.conversions import completed, converted

POD = """
      metadata:
        labels: {team: ai, app.kubernetes.io/name: slurmd, pulumi.com/x: "1", example.com/bad: "a b"}
        annotations:
          cluster-autoscaler.kubernetes.io/safe-to-evict: false
          container.apparmor.security.beta.kubernetes.io/slurmd: unconfined
          kubectl.kubernetes.io/default-container: slurmd
      podSpec:
        automountServiceAccountToken: false
        terminationGracePeriodSeconds: 9
        topologySpreadConstraints:
          - topologyKey: topology.kubernetes.io/zone
            maxSkew: 1
            whenUnsatisfiable: DoNotSchedule
            minDomains: 2
            labelSelector: {matchLabels: {team: ai}}
        hostAliases: [{ip: 10.0.0.7, hostnames: [licences.example.com]}, {ip: nowhere, hostnames: [a]}]
"""
POD_HERE = {
    "labels": {"team": "ai"},
    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    "topology_spread": [
        {"topology_key": "topology.kubernetes.io/zone", "max_skew": 1, "when_unsatisfiable": "DoNotSchedule"}
    ],
    "host_aliases": [{"ip": "10.0.0.7", "hostnames": ["licences.example.com"]}],
}

ACCOUNT = """
apiVersion: v1
kind: ServiceAccount
metadata:
  name: trainer
  namespace: slurm
  annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/trainer"}
imagePullSecrets: [{name: pulls}]
"""


def reasons(conversion: Converted, end: str) -> set[tuple[Fate, str]]:
    return {(entry.fate, entry.text) for entry in conversion.entries if entry.leaf.path.endswith(end)}


@pytest.fixture
def of_values(tmp_path: Path) -> Converted:
    return converted(tmp_path, f"clusterName: hpc\nloginsets:\n  a:{POD}nodesets:\n  cpu:{POD}")


@pytest.mark.parametrize("role", ["login", "node_sets"])
def test_pods_keep_what_kubernetes_reads(of_values: Converted, role: str) -> None:
    found: Any = of_values.cluster[role]
    found = found[0] if isinstance(found, list) else found

    assert {key: found[key] for key in POD_HERE} == POD_HERE
    parse_cluster(completed(of_values))


def test_the_report_says_why_parts_of_pods_have_no_counterpart(of_values: Converted) -> None:
    profile = "jail.app_armor sets the profile of slurmd and sshd"
    spread = "counts the pods of the role, without labelSelector"

    assert reasons(of_values, '["container.apparmor.security.beta.kubernetes.io/slurmd"]') == {
        (Fate.NOT_POSSIBLE, profile)
    }
    assert reasons(of_values, "labelSelector.matchLabels.team") == {(Fate.CHANGED, spread)}
    assert {fate for fate, _ in reasons(of_values, '["pulumi.com/x"]')} == {Fate.NOT_POSSIBLE}
    assert {fate for fate, _ in reasons(of_values, '["kubectl.kubernetes.io/default-container"]')} == {Fate.NOT_NEEDED}
    assert {fate for fate, _ in reasons(of_values, ".minDomains")} == {Fate.NOT_POSSIBLE}
    assert {fate for fate, _ in reasons(of_values, ".terminationGracePeriodSeconds")} == {Fate.NOT_POSSIBLE}
    assert {fate for fate, _ in reasons(of_values, ".automountServiceAccountToken")} == {Fate.NOT_NEEDED}
    ((fate, text),) = reasons(of_values, '["example.com/bad"]')
    assert fate is Fate.NOT_POSSIBLE
    assert "needs a label value" in text


def test_a_service_account_of_one_role_is_created_with_its_annotations(tmp_path: Path) -> None:
    text = "clusterName: hpc\nnodesets: {cpu: {podSpec: {serviceAccountName: trainer}}}\n"
    conversion = converted(tmp_path, f"{text}---{ACCOUNT}")

    assert conversion.cluster["node_sets"][0]["service_account"] == {
        "name": "trainer",
        "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/trainer"},
    }
    assert "ServiceAccount trainer:" not in conversion.report()
    assert {fate for fate, _ in reasons(conversion, "imagePullSecrets[0].name")} == {Fate.NOT_POSSIBLE}
    parse_cluster(completed(conversion))


def test_objects_of_the_chart_may_be_service_accounts(tmp_path: Path) -> None:
    account = ACCOUNT.replace("\n", "\n    ")
    text = f"nodesets: {{cpu: {{podSpec: {{serviceAccountName: trainer}}}}}}\nextraObjects:\n  -{account}"

    assert "create" not in converted(tmp_path, text).cluster["node_sets"][0]["service_account"]


@pytest.mark.parametrize("objects", ["", f"---{ACCOUNT}"])
def test_a_service_account_that_is_shared_or_elsewhere_has_to_exist(tmp_path: Path, objects: str) -> None:
    pod = "{podSpec: {serviceAccountName: trainer}}"
    text = f"clusterName: hpc\nloginsets: {{a: {pod}}}\nnodesets: {{cpu: {pod}, gpu: {pod}}}\n{objects}"
    conversion = converted(tmp_path, text)

    roles: list[dict[str, Any]] = [conversion.cluster["login"], *conversion.cluster["node_sets"]]
    assert [role["service_account"] for role in roles] == [{"name": "trainer", "create": False}] * 3
    assert "ServiceAccount trainer: login.service_account.name" in conversion.report()
    parse_cluster(completed(conversion))


def test_pods_of_custom_resources_keep_their_parts(tmp_path: Path) -> None:
    resources = f"""
apiVersion: slinky.slurm.net/v1beta1
kind: LoginSet
metadata: {{name: login}}
spec: {{template: {{metadata: {{labels: {{team: ai}}}}, spec: {{serviceAccountName: trainer}}}}}}
---
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {{name: cpu}}
spec: {{template: {{metadata: {{annotations: {{a: b}}}}, spec: {{serviceAccountName: default}}}}}}
---{ACCOUNT}"""
    conversion = converted(tmp_path, resources)

    assert conversion.cluster["login"]["labels"] == {"team": "ai"}
    assert conversion.cluster["login"]["service_account"].keys() == {"name", "annotations"}
    assert conversion.cluster["node_sets"][0]["annotations"] == {"a": "b"}
    assert "service_account" not in conversion.cluster["node_sets"][0]
    parse_cluster(completed(conversion))
