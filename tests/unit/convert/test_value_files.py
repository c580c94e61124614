"""Values that a release names: files of the input, ConfigMaps, and values by name, in the order of its installer."""

import base64
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.convert import Converted, Fate, convert
from soperator_pulumi.convert.conversion import TO_ADD
from soperator_pulumi.errors import ConversionError
from tests.unit.convert.conversions import DATA, written

LIMITS = {"slurmd": {"resources": {"limits": {"cpu": 4, "memory": "8Gi"}}}}
LOW, MIDDLE, HIGH = "low.yaml", "middle.yaml", "high.yaml"
FILES: dict[str, dict[str, Any]] = {
    LOW: {"clusterName": "low", "nodesets": {"cpu": {"replicas": 2, **LIMITS}}},
    MIDDLE: {"clusterName": "middle", "nodesets": {"cpu": {"replicas": 3}}},
    HIGH: {"clusterName": "high"},
}


def flux(*, chart: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "slurm"},
        "spec": {"chart": {"spec": {"chart": "slurm", "version": "1.2.1", **chart}}, **spec},
    }


def argo(**helm: Any) -> dict[str, Any]:
    source = {"chart": "slurm", "targetRevision": "1.2.1", "helm": helm}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "slurm"},
        "spec": {"sources": [{"ref": "values"}, source]},
    }


def k3s(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChart",
        "metadata": {"name": "slurm"},
        "spec": {"chart": "slurm", "version": "1.2.1", **spec},
    }


def release(key: str, **entry: Any) -> dict[str, Any]:
    return {key: [{"name": "slurm", "chart": "x/slurm", "version": "1.2.1", **entry}]}


FORMS: dict[str, tuple[dict[str, Any], str, int]] = {
    "Argo CD's files in order": (argo(valueFiles=[f"$values/envs/{LOW}", f"../{MIDDLE}"]), "middle", 3),
    "Argo CD's text over files": (argo(valueFiles=[LOW, MIDDLE], values="clusterName: text"), "text", 3),
    "Argo CD's object over files": (argo(valueFiles=[LOW], valuesObject={"clusterName": "object"}), "object", 2),
    "Flux's files below its values": (flux(chart={"valuesFiles": [LOW, MIDDLE]}, values={"clusterName": "a"}), "a", 3),
    "helmfile's files in order": (release("releases", values=[LOW, MIDDLE, {"clusterName": "inline"}]), "inline", 3),
    "helmfile's files over values": (release("releases", values=[{"clusterName": "inline"}, LOW]), "low", 2),
    "kustomize's values over its file": (
        release("helmCharts", valuesFile=LOW, valuesInline={"clusterName": "inline"}), "inline", 2,
    ),
    "kustomize's file over its values": (
        release("helmCharts", valuesFile=LOW, valuesMerge="merge", valuesInline={"clusterName": "inline"}), "low", 2,
    ),
    "kustomize's further files over all": (
        release("helmCharts", valuesInline={"clusterName": "a"}, additionalValuesFiles=[LOW, HIGH]), "high", 2,
    ),
    "Fleet's files over its values": (
        {"helm": {"chart": "slurm", "version": "1.2.1", "values": {"clusterName": "a"}, "valuesFiles": [LOW]}},
        "low", 2,
    ),
    "an URL": (argo(valueFiles=[f"https://raw.example.com/main/{LOW}?raw=true"]), "low", 2),
}  # fmt: skip


def conversion(folder: Path, tree: Any, *names: str) -> Converted:
    files = [written(folder, yaml.safe_dump(FILES[name]), name) for name in names]
    return convert([written(folder, yaml.safe_dump(tree), "release.yaml"), *files])


def fates(found: Converted) -> dict[str, tuple[Fate, str]]:
    return {entry.leaf.path: (entry.fate, entry.text) for entry in found.entries if not entry.leaf.is_default}


def cluster(found: Converted) -> tuple[str, int]:
    return found.cluster["name"], found.cluster["node_sets"][0]["replicas"]


@pytest.mark.parametrize("form", FORMS)
def test_files_that_a_release_names_are_laid_in_the_order_of_its_installer(tmp_path: Path, form: str) -> None:
    tree, name, replicas = FORMS[form]
    named = [file for file in FILES if file in yaml.safe_dump(tree)]
    found = conversion(tmp_path, tree, *named)

    assert cluster(found) == (name, replicas)
    accounts = fates(found)
    assert accounts[f"{LOW}: nodesets.cpu.slurmd.resources.limits.cpu"][0] is Fate.TAKEN
    assert not [path for path, (fate, _) in accounts.items() if fate in {Fate.NOT_POSSIBLE, Fate.UNKNOWN}]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_not_in_the_input_is_named(tmp_path: Path, form: str) -> None:
    tree, *_ = FORMS[form]
    named = [file for file in FILES if file in yaml.safe_dump(tree)]
    found, words = "", f"the file {LOW} is not in the input: convert it together with this one"
    try:
        found = conversion(tmp_path, tree, *named[1:]).report()
    except ConversionError as refusal:  # nothing else in the release is a cluster's
        found = str(refusal)
    assert words in " ".join(found.split())


def test_a_file_of_another_folder_is_told_by_its_folders(tmp_path: Path) -> None:
    for folder, name in (("dev", "dev"), ("prod", "prod")):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, yaml.safe_dump({**FILES[LOW], "clusterName": name}), "values.yaml")
    files = [tmp_path / "dev" / "values.yaml", tmp_path / "prod" / "values.yaml"]
    application = written(tmp_path, yaml.safe_dump(argo(valueFiles=["$values/prod/values.yaml"])), "app.yaml")

    with pytest.raises(ConversionError, match=r"several files of the input may be values\.yaml"):
        convert([written(tmp_path, yaml.safe_dump(argo(valueFiles=["values.yaml"])), "any.yaml"), *files])
    found = convert([application, *files])
    assert found.cluster["name"] == "prod"
    assert fates(found)["dev/values.yaml: clusterName"] == (
        Fate.NOT_NEEDED,
        "no release in the input reads this file",
    )


def test_a_file_that_another_chart_reads_is_not_the_cluster_s(tmp_path: Path) -> None:
    tree = {
        "releases": [
            {"name": "cert-manager", "chart": "x/cert-manager", "values": [HIGH]},
            *release("releases", values=[LOW])["releases"],
        ]
    }
    found = conversion(tmp_path, tree, LOW, HIGH)

    assert cluster(found) == ("low", 2)
    assert fates(found)[f"{HIGH}: clusterName"] == (
        Fate.NOT_NEEDED,
        "values of a release of something else, not the cluster",
    )


def test_a_placeholder_in_a_file_is_refused_with_the_place(tmp_path: Path) -> None:
    file = written(tmp_path, "nodesets: {cpu: {replicas: '{{ n }}'}}", LOW)
    with pytest.raises(ConversionError, match=rf"{LOW}, line 1: nodesets.cpu.replicas is a placeholder"):
        convert([written(tmp_path, yaml.safe_dump(argo(valueFiles=[LOW])), "app.yaml"), file])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"nodesets.cpu.replicas": 5}, 5),
        ({"nodesets.cpu.replicas": "null", "clusterName": "x"}, 1),
    ],
)
def test_values_of_k3s_by_name_overrule_its_others(tmp_path: Path, given: dict[str, Any], expected: int) -> None:
    found = conversion(tmp_path, k3s(set=given, valuesContent=yaml.safe_dump(FILES[LOW])))

    assert found.cluster["node_sets"][0].get("replicas", 1) == expected
    assert found.cluster["name"] == given.get("clusterName", "low")


def test_a_number_in_quotes_is_a_text_for_k3s(tmp_path: Path) -> None:
    found = conversion(
        tmp_path, k3s(set={"nodesets.cpu.replicas": "007"}, values=FILES[LOW], valuesContent="clusterName: a")
    )

    assert found.cluster["name"] == "low"
    values = {entry.leaf.path: entry.leaf.value for entry in found.entries}
    assert values["HelmChart/slurm, spec.set: nodesets.cpu.replicas"] == "007"


@pytest.mark.parametrize(("text", "name"), [("hpc", "hpc"), ("'true'", "true")])
def test_flux_sets_a_value_of_a_config_map_at_its_path(tmp_path: Path, text: str, name: str) -> None:
    reference = {"kind": "ConfigMap", "name": "names", "valuesKey": "name", "targetPath": "clusterName"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "names"}, "data": {"name": text}}
    tree = flux(chart={}, valuesFrom=[reference], values={"nodesets": {"cpu": LIMITS}})
    found = convert([written(tmp_path, yaml.safe_dump_all([tree, config_map]))])

    assert found.cluster["name"] == name


def bundle(helm: dict[str, Any] | None, **files: Any) -> dict[str, Any]:
    resources = [{"name": name, "content": content} for name, content in files.items()]
    spec = {"resources": resources, **({"helm": helm} if helm is not None else {})}
    return {"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "slurm"}, "spec": spec}


@pytest.mark.parametrize("packed", [False, True])
def test_a_bundle_has_its_values_and_files_over_the_defaults_of_its_chart(tmp_path: Path, packed: bool) -> None:
    own = {"clusterName": "own", "nodesets": {"cpu": {"replicas": 9, **LIMITS}}}
    tree = bundle(
        {"values": {"clusterName": "values"}, "valuesFiles": [HIGH]},
        **{"Chart.yaml": "name: slurm\nversion: 1.2.1\n", "values.yaml": yaml.safe_dump(own)},
        **{HIGH: yaml.safe_dump(FILES[HIGH]), "templates/a.yaml": "a: {{ .Values.b }}\n"},
    )
    if packed:
        for resource in tree["spec"]["resources"]:
            resource["content"] = base64.b64encode(gzip.compress(resource["content"].encode())).decode()
            resource["encoding"] = "base64+gz"
    found = conversion(tmp_path, tree)

    assert cluster(found) == ("high", 9)
    assert fates(found)["Bundle/slurm, spec.resources[2] high.yaml: clusterName"][0] is Fate.TAKEN


def test_the_manifests_in_a_bundle_are_objects_of_the_input(tmp_path: Path) -> None:
    node_set = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "cpu"},
        "spec": {"replicas": 2, "slurmd": LIMITS["slurmd"], "controllerRef": {"name": "hpc"}},
    }
    controller = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "hpc"},
        "spec": {"clusterName": "hpc"},
    }
    tree = bundle(None, **{"cluster.yaml": yaml.safe_dump_all([controller, node_set]), "README.md": "# Slurm"})
    found = conversion(tmp_path, tree)

    assert cluster(found) == ("hpc", 2)
    assert fates(found)["Bundle/slurm: spec.resources[0].content"] == (
        Fate.NOT_NEEDED,
        "its values are converted one by one",
    )


def test_values_of_one_target_of_a_bundle_are_lost(tmp_path: Path) -> None:
    tree = bundle({"chart": "slurm", "values": FILES[LOW]})
    tree["spec"]["targets"] = [{"name": "prod", "helm": {"values": {"clusterName": "prod"}}}]
    fate, text = fates(conversion(tmp_path, tree))["Bundle/slurm: spec.targets[0].helm.values.clusterName"]

    assert fate is Fate.NOT_POSSIBLE
    assert text.startswith("Fleet lays it over the values for one target")


@pytest.mark.parametrize(
    ("api", "kind", "spec"),
    [
        ("fleet.cattle.io/v1alpha1", "GitRepo", {"repo": "https://example.com/a.git", "paths": ["slurm"]}),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", {"path": "./slurm"}),
        ("argoproj.io/v1alpha1", "Application", {"source": {"path": "slurm", "repoURL": "https://example.com/a.git"}}),
    ],
)
def test_an_object_that_names_a_repository_alone_is_refused_with_what_to_give(
    tmp_path: Path, api: str, kind: str, spec: dict[str, Any]
) -> None:
    tree = {"apiVersion": api, "kind": kind, "metadata": {"name": "slurm"}, "spec": spec}
    with pytest.raises(ConversionError) as refusal:
        conversion(tmp_path, tree)
    assert f"{kind}/slurm names files of a repository, which are not in the input" in str(refusal.value)
    assert "slurm" in str(refusal.value)
    assert "convert the files there" in str(refusal.value)


def test_values_of_an_umbrella_chart_in_a_release_are_found(tmp_path: Path) -> None:
    values = {"mariadb": {"storage": "2Gi"}, "slurm": FILES[LOW]}
    tree = argo(valuesObject=values)
    tree["spec"]["sources"][1]["chart"] = "our-cluster"
    found = conversion(tmp_path, tree)

    assert cluster(found) == ("low", 2)
    accounts = fates(found)
    own = "Application/slurm, spec.sources[1].helm.valuesObject"
    assert accounts[f"{own}: slurm: clusterName"][0] is Fate.TAKEN
    assert accounts[f"{own}: mariadb.storage"] == (Fate.NOT_NEEDED, "values of another chart than that below slurm")


REAL = ("slinky/a3mega-values.yaml", "slinky/dcgm-values.yaml", "slinky/tpu-values.yaml", "soperator/flux-values.yaml")
WRAPPED: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {
    "Argo CD's file": lambda chart, _: with_chart(argo(valueFiles=["values.yaml"]), chart),
    "Argo CD's object": lambda chart, values: with_chart(argo(valuesObject=values), chart),
    "Argo CD's text": lambda chart, values: with_chart(argo(values=yaml.safe_dump(values)), chart),
    "k3s": lambda chart, values: {**k3s(), "spec": {"chart": chart, "valuesContent": yaml.safe_dump(values)}},
    "helmfile": lambda chart, _: {"releases": [{"name": "slurm", "chart": f"x/{chart}", "values": ["values.yaml"]}]},
    "Fleet": lambda chart, _: {"helm": {"chart": chart, "valuesFiles": ["values.yaml"]}},
    "Bundle": lambda chart, values: bundle(
        {"chart": chart, "valuesFiles": ["a/values.yaml"]}, **{"a/values.yaml": yaml.safe_dump(values)}
    ),
}


def with_chart(application: dict[str, Any], chart: str) -> dict[str, Any]:
    application["spec"]["sources"] = [{"chart": chart, "helm": application["spec"]["sources"][1]["helm"]}]
    return application


@pytest.mark.parametrize("form", WRAPPED)
@pytest.mark.parametrize("name", REAL)
def test_real_values_are_the_same_cluster_in_whatever_installs_them(tmp_path: Path, name: str, form: str) -> None:
    alone = convert([DATA / name])
    values = yaml.safe_load((DATA / name).read_text())
    chart = "slurm" if name.startswith("slinky") else "soperator-fluxcd"
    tree = WRAPPED[form](chart, values)
    inside = [] if "values.yaml" not in yaml.safe_dump(tree) or form == "Bundle" else ["values.yaml"]
    files = [written(tmp_path, (DATA / name).read_text(), file) for file in inside]
    found = convert([written(tmp_path, yaml.safe_dump(tree), "release.yaml"), *files])

    assert found.cluster == alone.cluster
    lost = {fate: sum(entry.fate is fate for entry in found.entries) for fate in (Fate.NOT_POSSIBLE, Fate.UNKNOWN)}
    assert lost == {fate: sum(entry.fate is fate for entry in alone.entries) for fate in lost}


def soperator_files(folder: Path, *node_sets: list[str] | None, **more: Any) -> list[Path]:
    """Return files of values, each with a list of node sets, or none."""
    found = []
    for index, names in enumerate(node_sets):
        resources = {"cpu": "4000m", "memory": "8Gi"}
        items = None if names is None else [{"name": name, "slurmd": {"resources": resources}} for name in names]
        tree = {**(more if index == 0 else {}), **({} if items is None else {"nodesets": items})}
        found.append(written(folder, yaml.safe_dump(tree), f"{index}.yaml"))
    return found


CLUSTER = {"clusterName": "hpc", "slurmNodes": {"login": {"size": 1}}}


@pytest.mark.parametrize("own", [{"clusterName": "hpc"}, CLUSTER])
@pytest.mark.parametrize(("lists", "left"), [([["a", "b"], ["c"]], ["c"]), ([["a"], ["b"], ["c", "a"]], ["c", "a"])])
def test_the_list_of_node_sets_of_the_last_file_counts_as_helm_merges_no_lists(
    tmp_path: Path, own: dict[str, Any], lists: list[list[str]], left: list[str]
) -> None:
    found = convert(soperator_files(tmp_path, *lists, **own))

    assert [item["name"] for item in found.cluster["node_sets"]] == left
    assert fates(found)["0.yaml: nodesets[0].name"] == (Fate.NOT_NEEDED, "a later file overrules it")
    last = f"{len(lists) - 1}.yaml"
    assert f"Several files have `nodesets`. The list of {last} counts" in " ".join(found.report().split())


def test_a_later_file_with_an_empty_list_leaves_no_node_set(tmp_path: Path) -> None:
    found = convert(soperator_files(tmp_path, ["a"], [], **CLUSTER))
    assert found.cluster["node_sets"] == TO_ADD


def node_set_release(name: str, **values: Any) -> dict[str, Any]:
    items = [{"name": name, "slurmd": {"resources": {"cpu": "4000m", "memory": "8Gi"}}}]
    tree = flux(chart={"chart": "helm-nodesets", "version": "5.0.0"}, values={"nodesets": items, **values})
    return {**tree, "metadata": {"name": name}}


def test_node_sets_of_several_releases_are_those_of_one_cluster(tmp_path: Path) -> None:
    releases = [node_set_release("cpu", imagePullSecrets=[{"name": "a"}]), node_set_release("gpu")]
    found = convert([written(tmp_path, yaml.safe_dump_all([*releases, node_set_release("big")]))])

    assert [item["name"] for item in found.cluster["node_sets"]] == ["cpu", "gpu", "big"]
    assert fates(found)["HelmRelease/gpu, spec.values: nodesets[0].name"][0] is Fate.TAKEN
    assert not [path for path, (fate, _) in fates(found).items() if fate is Fate.UNKNOWN]


def test_a_file_next_to_releases_of_node_sets_is_refused_as_its_release_is_not_known(tmp_path: Path) -> None:
    (file,) = soperator_files(tmp_path, ["a"])
    release = written(tmp_path, yaml.safe_dump(node_set_release("cpu")), "cpu.yaml")
    with pytest.raises(ConversionError, match="Two files are values of soperator's Helm chart nodesets"):
        convert([release, file])


def test_node_sets_of_releases_of_several_clusters_are_refused(tmp_path: Path) -> None:
    releases = [node_set_release(name, clusterName=name) for name in ("a", "b")]
    with pytest.raises(ConversionError, match="chart nodesets for a, b"):
        convert([written(tmp_path, yaml.safe_dump_all(releases))])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("values/slurm.yaml.gotmpl", "slurm.yaml.gotmpl is a template of helmfile: write its values into the file"),
        ("{{ .Environment.Name }}.yaml", "is a template: write the name itself, and convert the file too"),
    ],
)
def test_a_file_of_a_template_is_not_asked_for_by_its_name(tmp_path: Path, name: str, why: str) -> None:
    inline = {"nodesets": {"cpu": LIMITS}}
    fate, text = fates(conversion(tmp_path, release("releases", values=[name, inline])))["releases[0].values[0]"]
    assert (fate, why in text) == (Fate.NOT_POSSIBLE, True)
