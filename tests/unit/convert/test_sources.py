"""Files of other forms than values and resources are unwrapped, or refused in words."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.convert import Converted, Fate, convert
from soperator_pulumi.errors import ConversionError
from tests.unit.convert.conversions import converted, written

NODE_SET = "{slurmd: {resources: {limits: {cpu: 4, memory: 8Gi}}}}"

RELEASE = f"""
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: slurm}}
spec:
  chart: {{spec: {{chart: slurm, version: 1.2.1}}}}
  valuesFrom: [{{kind: ConfigMap, name: base}}, {{kind: Secret, name: private}}]
  values:
    nodesets: {{cpu: {NODE_SET}}}
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: base}
data:
  values.yaml: |
    clusterName: hpc
    nodesets: {cpu: {replicas: 3, slurmd: {resources: {limits: {cpu: 2}}}}}
"""
APPLICATION = f"""
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: slurm}}
spec:
  sources:
    - {{repoURL: https://example.com/values.git, ref: values}}
    - chart: slurm
      targetRevision: 1.2.1
      helm:
        valueFiles: [$values/extra.yaml]
        values: "clusterName: text"
        valuesObject:
          clusterName: hpc
          nodesets: {{cpu: {NODE_SET}}}
"""


def nodes(conversion: Converted) -> list[tuple[str, int, int]]:
    return [(item["name"], item["replicas"], item["cpus"]) for item in conversion.cluster["node_sets"]]


def fates(conversion: Converted) -> dict[str, Fate]:
    return {entry.leaf.path: entry.fate for entry in conversion.entries if not entry.leaf.is_default}


@pytest.mark.parametrize("text", [f"{RELEASE}---{CONFIG_MAP}", f"{CONFIG_MAP}---{RELEASE}"])
def test_a_helm_release_has_its_values_over_those_of_config_maps(tmp_path: Path, text: str) -> None:
    conversion = converted(tmp_path, text)

    assert nodes(conversion) == [("cpu", 3, 4)]
    found = fates(conversion)
    assert found["HelmRelease/slurm, spec.values: nodesets.cpu.slurmd.resources.limits.cpu"] is Fate.TAKEN
    assert found["ConfigMap/base, data.values.yaml: clusterName"] is Fate.TAKEN
    assert found["ConfigMap/base, data.values.yaml: nodesets.cpu.slurmd.resources.limits.cpu"] is Fate.NOT_NEEDED
    assert found["HelmRelease/slurm: spec.valuesFrom[1].name"] is Fate.NOT_POSSIBLE
    (text_of_map,) = [entry for entry in conversion.entries if entry.leaf.path.endswith('data["values.yaml"]')]
    assert text_of_map.text == "its values are converted one by one"
    assert Fate.UNKNOWN not in found.values()


def test_an_application_has_an_object_of_values_in_place_of_its_text(tmp_path: Path) -> None:
    conversion = converted(tmp_path, APPLICATION)

    assert (conversion.cluster["name"], nodes(conversion)) == ("hpc", [("cpu", 1, 4)])
    found = fates(conversion)
    assert found["Application/slurm: spec.sources[1].helm.values"] is Fate.NOT_NEEDED
    assert found["Application/slurm: spec.sources[1].helm.valueFiles[0]"] is Fate.NOT_POSSIBLE
    (line,) = {entry.leaf.line for entry in conversion.entries if entry.leaf.path.endswith("limits.cpu")}
    assert APPLICATION.splitlines()[line - 1].lstrip().startswith("nodesets")


VALUES = {"clusterName": "hpc", "nodesets": {"cpu": yaml.safe_load(NODE_SET)}}
AS_TEXT = yaml.safe_dump(VALUES)
OTHER = {"name": "other", "chart": "x/cert-manager", "values": [{"crds": {"enabled": True}}]}
SLURM = {"name": "slurm", "chart": "oci://r.example.com/charts/slurm", "version": "1.2.1"}
LISTS: dict[str, tuple[Any, str, dict[str, Fate]]] = {
    "helmfile": (
        {"releases": [OTHER, {**SLURM, "values": ["base.yaml", {"clusterName": "old"}, VALUES]}]},
        "releases[1].values[2]: clusterName",
        {"releases[1].values[0]": Fate.NOT_POSSIBLE, "releases[0].chart": Fate.NOT_NEEDED},
    ),
    "kustomize": (
        {"helmCharts": [{"name": "slurm", "version": "1.2.1", "valuesFile": "more.yaml", "valuesInline": VALUES}]},
        "helmCharts[0].valuesInline: clusterName",
        {"helmCharts[0].valuesFile": Fate.NOT_POSSIBLE, "helmCharts[0].version": Fate.NOT_NEEDED},
    ),
    "kustomize with a kind": (
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "helmCharts": [{"name": "slurm", "version": "1.2.1", "valuesInline": VALUES}],
        },
        "Kustomization/: helmCharts[0].valuesInline: clusterName",
        {"Kustomization/: kind": Fate.NOT_NEEDED},
    ),
    "vcluster": (
        {
            "sync": {"a": 1},
            "experimental": {"deploy": {"vcluster": {"helm": [{"chart": SLURM, "values": AS_TEXT}]}}},
        },
        "experimental.deploy.vcluster.helm[0].values: clusterName",
        {"sync.a": Fate.NOT_NEEDED},
    ),
    "Fleet": (
        {"defaultNamespace": "slurm", "helm": {**SLURM, "values": VALUES, "valuesFiles": ["more.yaml"]}},
        "helm.values: clusterName",
        {
            "helm.valuesFiles[0]": Fate.NOT_POSSIBLE,
            "defaultNamespace": Fate.NOT_NEEDED,
            "helm.version": Fate.NOT_NEEDED,
        },
    ),
    "k3s": (
        {
            "apiVersion": "helm.cattle.io/v1",
            "kind": "HelmChart",
            "metadata": {"name": "slurm"},
            "spec": {"chart": "slurm", "version": "1.2.1", "valuesSecrets": [{"name": "a"}], "valuesContent": AS_TEXT},
        },
        "HelmChart/slurm, spec.valuesContent: clusterName",
        {
            "HelmChart/slurm: spec.valuesSecrets[0].name": Fate.NOT_POSSIBLE,
            "HelmChart/slurm: spec.version": Fate.NOT_NEEDED,
        },
    ),
}
"""Files that install the chart, with the path of one of its values, and fates of the rest."""


@pytest.mark.parametrize("form", LISTS)
def test_the_values_of_the_cluster_are_found_in_what_installs_its_chart(tmp_path: Path, form: str) -> None:
    tree, name, others = LISTS[form]
    result = converted(tmp_path, yaml.safe_dump(tree))
    assert (result.cluster["name"], nodes(result)) == ("hpc", [("cpu", 1, 4)])
    found = fates(result)
    assert found[name] is Fate.TAKEN
    assert {path: found[path] for path in others} == others


@pytest.mark.parametrize(
    ("form", "release"),
    [
        (
            "helmfile",
            {**SLURM, "values": [VALUES], "setTemplate": [{"name": "a", "value": "9"}], "valuesTemplate": [{"b": 1}]},
        ),
        ("kustomize", {"name": "slurm", "valuesInline": VALUES, "additionalValuesFiles": ["more.yaml"]}),
    ],
)
def test_values_that_a_release_lays_over_others_are_lost_and_not_needless(
    tmp_path: Path, form: str, release: dict[str, Any]
) -> None:
    key = {"helmfile": "releases", "kustomize": "helmCharts"}[form]
    found = fates(converted(tmp_path, yaml.safe_dump({key: [release]})))
    keys = re.compile(r"\.(setTemplate|valuesTemplate|additionalValuesFiles)\b")
    laid_over = {path: fate for path, fate in found.items() if keys.search(path)}
    assert laid_over
    assert {*laid_over.values()} == {Fate.NOT_POSSIBLE}


def test_values_that_fleet_has_for_one_target_are_lost_and_not_needless(tmp_path: Path) -> None:
    over = {"values": {"nodesets": {"cpu": {"replicas": 64}}}, "valuesFiles": ["prod.yaml"], "releaseName": "slurm"}
    fleet = {"helm": {**SLURM, "values": VALUES}, "targetCustomizations": [{"name": "prod", "helm": over}]}
    conversion = converted(tmp_path, yaml.safe_dump(fleet))

    assert nodes(conversion) == [("cpu", 1, 4)]
    found = {entry.leaf.path: (entry.fate, entry.text) for entry in conversion.entries}
    fate, text = found["targetCustomizations[0].helm.values.nodesets.cpu.replicas"]
    assert fate is Fate.NOT_POSSIBLE
    assert text.startswith("Fleet lays it over the values for one target: give that target's.")
    assert found["targetCustomizations[0].helm.valuesFiles[0]"][0] is Fate.NOT_POSSIBLE
    assert found["targetCustomizations[0].helm.releaseName"][0] is Fate.NOT_NEEDED


@pytest.mark.parametrize("turn", [1, -1])
def test_values_that_k3s_lays_over_those_of_a_chart_overrule_them(tmp_path: Path, turn: int) -> None:
    chart, *_ = LISTS["k3s"]
    text = "clusterName: other\nnodesets: {cpu: {replicas: 3}}\n"
    over = {**chart, "kind": "HelmChartConfig", "spec": {"valuesContent": text, "valuesSecrets": [{"name": "s"}]}}
    conversion = converted(tmp_path, yaml.safe_dump_all([chart, over][::turn]))

    assert (conversion.cluster["name"], nodes(conversion)) == ("other", [("cpu", 3, 4)])
    found = fates(conversion)
    assert found["HelmChart/slurm, spec.valuesContent: clusterName"] is Fate.NOT_NEEDED
    assert found["HelmChartConfig/slurm, spec.valuesContent: clusterName"] is Fate.TAKEN
    assert found["HelmChartConfig/slurm: spec.valuesSecrets[0].name"] is Fate.NOT_POSSIBLE


@pytest.mark.parametrize(
    ("of_chart", "of_config", "name"),
    [("a", "b", "hpc"), ("a", "a", "other"), (None, "b", "other"), ("a", None, "other")],
)
def test_k3s_lays_values_over_a_chart_of_their_namespace_alone(
    tmp_path: Path, of_chart: str | None, of_config: str | None, name: str
) -> None:
    def of_k3s(kind: str, namespace: str | None, text: str) -> dict[str, Any]:
        metadata = {"name": "slurm", **({"namespace": namespace} if namespace else {})}
        spec = {"chart": "slurm", "valuesContent": text}
        return {"apiVersion": "helm.cattle.io/v1", "kind": kind, "metadata": metadata, "spec": spec}

    chart, over = of_k3s("HelmChart", of_chart, AS_TEXT), of_k3s("HelmChartConfig", of_config, "clusterName: other")
    far = of_k3s("HelmChartConfig", "far", "clusterName: far")
    for objects in ([chart, over], [chart, over, far] if of_chart else [chart, over]):
        assert converted(tmp_path, yaml.safe_dump_all(objects)).cluster["name"] == name


def test_a_config_map_of_another_namespace_has_no_values_of_a_helm_release(tmp_path: Path) -> None:
    release, config_map = yaml.safe_load(RELEASE), yaml.safe_load(CONFIG_MAP)
    release["metadata"]["namespace"], config_map["metadata"]["namespace"] = "slurm", "other"
    conversion = converted(tmp_path, yaml.safe_dump_all([release, config_map]))

    assert nodes(conversion) == [("cpu", 1, 4)]
    assert fates(conversion)["HelmRelease/slurm: spec.valuesFrom[0].name"] is Fate.NOT_POSSIBLE


def test_values_for_a_chart_of_k3s_that_is_not_in_the_input_are_values(tmp_path: Path) -> None:
    chart, *_ = LISTS["k3s"]
    over = {**chart, "kind": "HelmChartConfig", "spec": {"valuesContent": AS_TEXT}}
    other = {**chart, "kind": "HelmChartConfig", "metadata": {"name": "a"}, "spec": {"valuesContent": "ports: {}\n"}}
    conversion = converted(tmp_path, yaml.safe_dump_all([over, other]))

    assert (conversion.cluster["name"], nodes(conversion)) == ("hpc", [("cpu", 1, 4)])
    assert fates(conversion)["HelmChartConfig/a: spec.valuesContent"] is Fate.NOT_NEEDED


def test_a_release_that_is_not_installed_is_not_converted(tmp_path: Path) -> None:
    off = {**SLURM, "name": "blue", "installed": False, "values": [{**VALUES, "clusterName": "blue"}]}
    on = {**SLURM, "installed": True, "values": [VALUES]}
    conversion = converted(tmp_path, yaml.safe_dump({"releases": [off, on]}))

    assert conversion.cluster["name"] == "hpc"
    found = [entry for entry in conversion.entries if entry.leaf.path == "releases[0].values[0].clusterName"]
    assert [(entry.fate, entry.text) for entry in found] == [
        (Fate.NOT_NEEDED, "belongs to a release that is not installed")
    ]
    with pytest.raises(ConversionError, match=r"releases\[0\]\.installed is false, so no cluster is installed"):
        converted(tmp_path, yaml.safe_dump({"releases": [off]}))


@pytest.mark.parametrize("more", [{}, {"values": ["old.yaml"]}, {"values": [{**VALUES, "clusterName": "${N}"}]}])
def test_a_release_that_is_not_installed_may_lack_values(tmp_path: Path, more: dict[str, Any]) -> None:
    off = {**SLURM, "name": "slurm-old", "installed": False, **more}
    conversion = converted(tmp_path, yaml.safe_dump({"releases": [{**SLURM, "values": [VALUES]}, off]}))

    assert conversion.cluster["name"] == "hpc"
    found = {path: fate for path, fate in fates(conversion).items() if path.startswith("releases[1]")}
    assert {*found.values()} == {Fate.NOT_NEEDED}
    with pytest.raises(ConversionError, match=r"releases\[0\]\.installed is false, so no cluster is installed"):
        converted(tmp_path, yaml.safe_dump({"releases": [off]}))


def test_settings_of_a_helmfile_in_another_document_are_not_needed(tmp_path: Path) -> None:
    settings = {"environments": {"prod": {"values": ["prod.yaml"]}}}
    conversion = converted(tmp_path, yaml.safe_dump_all([settings, {"releases": [{**SLURM, "values": [VALUES]}]}]))

    assert conversion.cluster["name"] == "hpc"
    assert fates(conversion)["environments.prod.values[0]"] is Fate.NOT_NEEDED
    with pytest.raises(ConversionError, match="found keys: environments"):
        converted(tmp_path, yaml.safe_dump(settings))


def test_the_release_of_a_chart_is_that_of_its_repository_in_the_input(tmp_path: Path) -> None:
    repository = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "OCIRepository",
        "metadata": {"name": "slurm"},
        "spec": {"ref": {"tag": "1.0.2"}},
    }
    release = yaml.safe_load(RELEASE)
    release["spec"]["chartRef"] = {"kind": "OCIRepository", "name": "slurm"}
    del release["spec"]["chart"]
    report = converted(tmp_path, yaml.safe_dump_all([repository, release])).report()
    assert "Read as values of the chart slurm 1.0: its version is 1.0.2" in " ".join(report.split())


def test_a_list_of_releases_without_a_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="unrecognized file; found keys: releases"):
        converted(tmp_path, "releases: [{name: a, chart: x/cert-manager, values: [{a: 1}]}, b]")


def test_a_config_map_alone_holds_the_values(tmp_path: Path) -> None:
    assert converted(tmp_path, CONFIG_MAP).cluster["name"] == "hpc"


@pytest.mark.parametrize(
    "text",
    [
        f"mariadb: {{storage: 2Gi}}\nslurm:\n  clusterName: hpc\n  nodesets: {{cpu: {NODE_SET}}}\n",
        f"USER-SUPPLIED VALUES:\nclusterName: hpc\nnodesets: {{cpu: {NODE_SET}}}\n",
    ],
)
def test_values_below_another_chart_s_and_helm_s_header_are_values(tmp_path: Path, text: str) -> None:
    conversion = converted(tmp_path, text)

    assert (conversion.cluster["name"], nodes(conversion)) == ("hpc", [("cpu", 1, 4)])
    assert Fate.UNKNOWN not in fates(conversion).values()


def test_later_files_of_values_overrule_earlier_ones(tmp_path: Path) -> None:
    first = written(tmp_path, f"clusterName: hpc\nnodesets: {{cpu: {NODE_SET}}}\n", "a.yaml")
    second = written(tmp_path, "partitions: {p: {enabled: true, nodesets: [ALL]}}\nclusterName: two\n", "b.yaml")
    conversion = convert([first, second])

    assert (conversion.cluster["name"], conversion.cluster["partitions"]) == ("two", [{"name": "p"}])
    assert fates(conversion)["a.yaml: clusterName"] is Fate.NOT_NEEDED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('resource "helm_release" "slurm" {\n  chart = "slurm"\n}\n', "Terraform's HCL"),
        ("nodesets:\n{{- range .Values.sets }}\n  a: {}\n{{- end }}\n", "line 2: a template"),
        ("nodesets:\n  a: {replicas: {{ .Values.n }}}\n", "line 2: a template"),
        ('clusterName: hpc\nnodesets: {a: {replicas: "{{ n }}"}}\n', "line 2: nodesets.a.replicas is a placeholder"),
        ("clusterName: ${name}\npartitions: {}\n", "line 1: clusterName is a placeholder"),
        (RELEASE.partition("  values:")[0], "HelmRelease/slurm has no values of the chart slurm"),
        ("helm: {chart: x/slurm, version: 1.2.1}", "input.yaml: helm has no values of the chart slurm"),
        ("compute: {nodesets: [{name: a}]}\nslurm: {auth: {}}\n", "values of Slinky 0.x (compute)"),
        ("loginsets: [{name: a}]\ncontroller: {}\n", "values of Slinky 0.x (loginsets as a list)"),
        (RELEASE.replace("1.2.1", "0.3.0"), "values of Slinky 0.x (version 0.3.0)"),
        ("clusterName: a\nslurmNodes: {worker: {size: 2}}\n", "soperator 1.x or 2.x (slurmNodes.worker)"),
        ("clusterName: a\ntelemetry: {a: 1}\nslurmNodes: {}\n", "soperator 1.x (telemetry)"),
    ],
)
def test_other_forms_and_former_releases_are_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConversionError) as refusal:
        converted(tmp_path, text)
    assert words in str(refusal.value)
    assert "input.yaml" in str(refusal.value)


def test_a_text_for_pods_is_no_placeholder(tmp_path: Path) -> None:
    resources = "{cpu: 1, memory: 1Gi}"
    node_set = f'{{name: a, nodeConfig: {{dynamic: "Id={{{{ .PodName }}}}"}}, slurmd: {{resources: {resources}}}}}'
    assert nodes(converted(tmp_path, f"nodesets: [{node_set}]\n")) == [("a", 1, 1)]


@pytest.mark.parametrize(
    ("mark", "partitions", "sets"),
    [
        ("jwtHs256KeyRef: {}\n", ["slinky", "all"], ["on", "slinky"]),
        ("sssd: {}\nloginsetDefaults: {}\n", [], ["plain", "on"]),
    ],
)
def test_a_release_has_the_sets_and_partitions_of_its_chart(
    tmp_path: Path, mark: str, partitions: list[str], sets: list[str]
) -> None:
    text = f"{mark}nodesets: {{plain: {NODE_SET}, on: {{enabled: true, slurmd: {{}}}}}}\n"
    cluster = converted(tmp_path, text).cluster

    assert [item["name"] for item in cluster["node_sets"]] == sets
    assert [item["name"] for item in cluster.get("partitions", [])] == partitions


def test_an_earlier_release_of_soperator_is_marked(tmp_path: Path) -> None:
    text = """
apiVersion: slurm.nebius.ai/v1
kind: SlurmCluster
metadata: {name: a}
spec: {crVersion: 3.0.3, slurmNodes: {login: {size: 1}}}
---
apiVersion: slurm.nebius.ai/v1alpha1
kind: NodeSet
metadata: {name: a}
spec: {slurmd: {resources: {cpu: 1, memory: 1Gi}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["node_sets"][0]["rolling_update"] == {"max_unavailable": "20%"}
    assert "Written by soperator 3.0.3, and read with" in conversion.report()
