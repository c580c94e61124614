"""Descriptions of platforms: all problems at once, each with its place and the next step; sources of charts."""

from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.platform import GpuOperator, Platform, parse_platform
from soperator_pulumi.platform.charts import GPU_OPERATOR, MARIADB, MARIADB_OPERATOR, NVIDIA, Chart
from soperator_pulumi.platform.description import release_source
from soperator_pulumi.spec.platform.chart_part import ChartSource

BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown part": ({"gpu_operatr": {}}, ['gpu_operatr: unknown key. Did you mean "gpu_operator"?']),
    "unknown value": (
        {"gpu_operator": {"values": {"driver": {"enbled": False}}}},
        [
            (
                "gpu_operator.values.driver.enbled: the chart gpu-operator v26.7.0 has no such key."
                ' Did you mean "driver.enabled"?'
            )
        ],
    ),
    "value and field": (
        {"cilium": {"mode": "own", "values": {"hubbble": 1}}, "network_operator": {"ip_pools": [{"name": "a"}]}},
        [
            'cilium.values.hubbble: the chart cilium 1.20.2 has no such key. Did you mean "hubble"?',
            "network_operator.ip_pools[0].subnet: missing. It has no default: give a value.",
        ],
    ),
    "no mode": ({"cilium": {}}, ["cilium.mode: missing. Choose one of "]),
    "chained": ({"cilium": {"mode": "chained"}}, ["cilium.cni_config_map: missing: "]),
    "conflist of nobody": (
        {"cilium": {"mode": "own", "cni_config_map": "c"}},
        ["cilium.cni_config_map: given without "],
    ),
    "gke": ({"cilium": {"mode": "gke"}}, ["cilium.pod_cidr: missing: "]),
    "values of what exists": (
        {"cert_manager": {"exists": True, "values": {"replicaCount": 2}, "version": "1.2.3"}},
        ["cert_manager.values: given with exists: true", "cert_manager.version: given with exists: true"],
    ),
    "settings of what exists": (
        {
            "cilium": {"exists": True, "mode": "own", "hubble": False, "namespace": "cilium"},
            "gpu_operator": {"exists": True, "rdma": True, "runtime_class": "nvidia-legacy", "keep": True},
            "kube_prometheus_stack": {"exists": True, "grafana": {"enabled": False}},
            "network_operator": {
                "exists": True,
                "namespace": "n",
                "ip_pools": [{"name": "a", "subnet": "10.0.0.0/24"}],
                "shared_rdma": [{"name": "a", "pods": 4}, {"name": "b"}],
            },
        },
        [
            f"{path}: given with exists: true"
            for path in (
                "cilium.hubble",
                "cilium.mode",
                "gpu_operator.rdma",
                "kube_prometheus_stack.grafana",
                "network_operator.ip_pools",
                "network_operator.namespace",
                "network_operator.shared_rdma[0].pods",
            )
        ],
    ),
    "secret in place of a mapping": (
        {"kube_prometheus_stack": {"values": {"grafana": {"a": 1}, "alertmanager": "hunter2"}}, "cilium": None},
        ["kube_prometheus_stack.values.alertmanager: got a value that is not shown here, needs a mapping with "],
    ),
    "secret in place of all values": (
        {"cert_manager": {"values": "hunter2", "unchecked_values": "hunter2"}},
        [
            f"cert_manager.{name}: got a value that is not shown here, needs a map"
            for name in ("unchecked_values", "values")
        ],
    ),
    "images with a scheme": (
        {"network_operator": {"images": "https://registry.example.com/nvidia"}},
        ['network_operator.images: got "https://registry.example.com/nvidia", needs a registry and its folder without'],
    ),
    "range": (
        {"cert_manager": {"version": ">=1"}},
        ['cert_manager.version: got ">=1", needs an exact version of the chart'],
    ),
    "two sources": (
        {"source": {"oci": "oci://r.example/c", "folder": "x"}},
        ["source: has oci and folder. Give exactly "],
    ),
    "no source": ({"cert_manager": {"source": {}}}, ["cert_manager.source: empty. Give exactly one of "]),
    "no pool": (
        {"network_operator": {"networks": [{"name": "n", "kind": "host_device", "pool": "x", "ip_pool": "y"}]}},
        [
            'network_operator.networks[0].ip_pool: got "y", needs a pool of ip_pools: none.',
            'network_operator.networks[0].pool: got "x", needs a pool of host_devices: none.',
        ],
    ),
    "no interface": (
        {"network_operator": {"networks": [{"name": "n", "kind": "macvlan"}]}},
        ["network_operator.networks[0].interface: missing: "],
    ),
    "routes without a gateway": (
        {"network_operator": {"ip_pools": [{"name": "p", "subnet": "10.1.0.0/24", "routes": ["10.1.0.0/16"]}]}},
        ["network_operator.ip_pools[0].gateway: missing: routes go through it. "],
    ),
    "a gateway and routes elsewhere": (
        {
            "network_operator": {
                "ip_pools": [{"name": "p", "subnet": "10.1.0.0/24", "gateway": "10.2.0.1", "routes": ["fd00::/64"]}]
            }
        },
        [
            'network_operator.ip_pools[0].gateway: got "10.2.0.1", needs an address of the subnet 10.1.0.0/24.',
            'network_operator.ip_pools[0].routes[0]: got "fd00::/64", needs IPv4, as the subnet 10.1.0.0/24 has.',
        ],
    ),
    "a size of packets for InfiniBand": (
        {"network_operator": {"networks": [{"name": "n", "kind": "ipoib", "interface": "ib0", "mtu": 4092}]}},
        ["network_operator.networks[0].mtu: given with kind ipoib, whose devices keep their own. "],
    ),
    "twice": (
        {"network_operator": {"shared_rdma": [{"name": "a"}, {"name": "a"}]}},
        ['network_operator.shared_rdma[1].name: got "a", which an earlier entry has. '],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_each_problem_has_its_place_and_the_next_step(case: str) -> None:
    description, expected = BAD[case]
    with pytest.raises(SpecError) as caught:
        parse_platform(description)
    found = [*map(str, caught.value.problems)]
    assert len(found) == len(expected), found
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_problems_of_a_part_by_itself_have_paths_in_it() -> None:
    with pytest.raises(SpecError) as caught:
        GpuOperator("gpus", {"values": {"cdi": {"enbled": 1}}, "mig_strategy": "both"})
    assert str(caught.value).splitlines()[0] == "GpuOperator 'gpus' has 2 problems:"
    assert [problem.path for problem in caught.value.problems] == ["mig_strategy", "values.cdi.enbled"]


def test_a_checked_spec_is_settled_once() -> None:
    spec = parse_platform({"kubernetes": "eks", "gpu_operator": {}, "source": {"folder": "charts"}})
    assert parse_platform(spec) == spec
    assert spec.gpu_operator is not None
    assert spec.gpu_operator.source == spec.source


@pytest.mark.parametrize(
    ("chart", "source", "expected"),
    [
        (
            GPU_OPERATOR,
            None,
            {
                "chart": "gpu-operator",
                "version": "v26.7.0",
                "repository_opts": {"repo": "https://helm.ngc.nvidia.com/nvidia"},
            },
        ),
        (
            MARIADB_OPERATOR,
            None,
            {"chart": "oci://ghcr.io/mariadb-operator/charts/mariadb-operator", "version": "26.6.0"},
        ),
        (
            GPU_OPERATOR,
            {"oci": "oci://registry.example.com/charts"},
            {"chart": "oci://registry.example.com/charts/gpu-operator", "version": "v26.7.0"},
        ),
        (
            MARIADB_OPERATOR,
            {"repository": "https://charts.example.com"},
            {
                "chart": "mariadb-operator",
                "version": "26.6.0",
                "repository_opts": {"repo": "https://charts.example.com"},
            },
        ),
    ],
)
def test_a_chart_comes_from_the_place_that_is_given(
    chart: Chart, source: dict[str, str] | None, expected: dict[str, Any]
) -> None:
    place = None if source is None else ChartSource.model_validate(source)
    assert release_source(chart, place, chart.version) == expected


@pytest.mark.parametrize("name", ["gpu-operator-v26.7.0.tgz", "gpu-operator"])
def test_a_chart_comes_from_a_folder_packed_or_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    source = ChartSource(folder=str(tmp_path))
    assert release_source(GPU_OPERATOR, source, "v26.7.0") == {"chart": str(tmp_path / name)}


def test_a_folder_next_to_the_program_is_no_repository_of_that_name() -> None:
    assert release_source(GPU_OPERATOR, ChartSource(folder="charts"), "v26.7.0") == {
        "chart": "./charts/gpu-operator-v26.7.0.tgz"
    }


def test_a_folder_without_charts_is_refused_with_all_commands_that_fetch_them(tmp_path: Path) -> None:
    (tmp_path / "cert-manager-v1.21.2.tgz").touch()
    parts = {"cert_manager": {}, "mariadb_operator": {}, "gpu_operator": {"version": "v26.7.1"}}
    with pytest.raises(SpecError) as caught:
        Platform("platform", {"source": {"folder": str(tmp_path)}, **parts})
    assert [(problem.path, problem.text.partition(" Fetch it: ")[2]) for problem in caught.value.problems] == [
        ("source.folder", f"helm pull {MARIADB}/mariadb-operator-crds --version 26.6.0"),
        ("source.folder", f"helm pull {MARIADB}/mariadb-operator --version 26.6.0"),
        ("source.folder", f"helm pull gpu-operator --repo {NVIDIA} --version v26.7.1"),
    ]


def test_an_unpacked_chart_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gpu-operator").mkdir()
    (tmp_path / "gpu-operator/Chart.yaml").write_text("name: gpu-operator\nversion: v24.6.0\n")
    with pytest.raises(SpecError) as caught:
        GpuOperator("gpus", {"source": {"folder": str(tmp_path)}})
    (problem,) = caught.value.problems
    assert str(problem).startswith(
        "source.folder: has gpu-operator v24.6.0, needs v26.7.0. Unpack that version: helm pull "
    )
