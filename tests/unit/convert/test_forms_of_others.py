"""Forms that files in other people's repositories have, reduced to the lines that matter.

| form | seen in |
|---|---|
| an empty set, which has the chart's defaults | condenser's modules for k3s |
| `RealMemory` with a unit | gnosia93/slurm-on-eks |
| devices of RDMA mounted from the machine | Azure/cluster-api-for-slinky, guides for OKE |
| a claim's `size` and `storageClass`, which the chart doesn't read | modules for EKS, exalsius' umbrella chart |
| `type` of a Service next to its `spec`, and `storageConfig.enabled` | modules for EKS with Aurora |
| several LoginSets, and keys in custom resources | operator's guides |
| gres.conf by hand, and `SuspendTime=-1` | guides for soperator on OKE |
| slurm.conf alone | khemingkapat/ai_sandbox |
| soperator's own annotations of node sets | sohamda/nebius-soperator-finetune |
| labels of a ServiceMonitor | guides for DOKS, with and without RDMA |
| a Service's annotations next to its `metadata` | a template for vcluster |
| values of soperator's two charts in one file | charts around soperator for Nebius, for CPUs and for GPUs |

The files of SlinkyProject/slurm-bridge (external, hybrid), gnosia93/slurm-on-k8s, and a guide for BM.GPU4.8 of OKE
needed no change. Those of redhat-hpc/slinky-on-openshift and dmvevents/slurm-operator are of Slinky 0.x, those of
agatakrajewska/iac-testing-github (SUNK), SoWiEee/Slurm-on-K8s-For-DDP, and libk24002/slurm-on-k8s of other projects:
they are refused in words.
"""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.convert.conversion import TO_ADD
from soperator_pulumi.errors import ConversionError
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.login import PoolName
from tests.unit.convert.conversions import completed, converted

NODE_SET = "{slurmd: {resources: {limits: {cpu: 4, memory: 8Gi}}}}"


def account(conversion: Converted, path: str) -> tuple[Fate, str]:
    """Return what became of the value at a path, and why."""
    (found,) = [(entry.fate, entry.text) for entry in conversion.entries if entry.leaf.path == path]
    return found


@pytest.mark.parametrize(("empty", "release"), [("{}", "1.0"), ("{}", "1.2"), ("null", "1.2"), ("", "1.2")])
def test_an_empty_set_is_taken_over_with_its_defaults(tmp_path: Path, empty: str, release: str) -> None:
    text = f"""
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: slurm}}
spec:
  chart: {{spec: {{chart: slurm, version: {release}.0}}}}
  values:
    clusterName: hpc
    nodesets:
      slinky: {empty}
    loginsets:
      slinky: {empty}
    partitions:
      all: {empty}
"""
    conversion = converted(tmp_path, text)

    assert [item["name"] for item in conversion.cluster["node_sets"]] == ["slinky"]
    assert not [entry.leaf.path for entry in conversion.entries if entry.fate is Fate.UNKNOWN]
    parse_cluster(completed(conversion))


@pytest.mark.parametrize("release", ["1.0.5", "1.1.2"])
@pytest.mark.parametrize(
    "node_sets", ["null", "{slinky: null}", f"{{slinky: null, cpu: {{enabled: true, {NODE_SET[1:-1]}}}}}"]
)
def test_null_removes_the_node_set_that_the_chart_has_itself(tmp_path: Path, release: str, node_sets: str) -> None:
    """helm 3.20 renders no NodeSet `slinky` of these releases, and refuses null for another set."""
    text = f"""
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: slurm}}
spec:
  chart: {{spec: {{chart: slurm, version: {release}}}}}
  values: {{clusterName: hpc, nodesets: {node_sets}}}
"""
    conversion = converted(tmp_path, text)

    left = conversion.cluster["node_sets"]
    assert left == TO_ADD if "cpu" not in node_sets else [item["name"] for item in left] == ["cpu"]
    assert not [entry.leaf.path for entry in conversion.entries if entry.fate is Fate.UNKNOWN]
    assert "is null: with it, Helm removes the node set slinky" in " ".join(conversion.report().split())


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("{service: {spec: {type: NodePort}, nodePort: 30022}}", "node_port", 30022),
        (
            "{service: {spec: {type: LoadBalancer, loadBalancerClass: a.example/nlb}}}",
            "load_balancer_class",
            "a.example/nlb",
        ),
    ],
)
def test_the_port_and_the_balancer_of_logins_are_taken_over(tmp_path: Path, text: str, key: str, value: object) -> None:
    conversion = converted(tmp_path, f"nodesets: {{cpu: {NODE_SET}}}\nloginsets: {{login: {text}}}")
    assert conversion.cluster["login"][key] == value


def test_a_memory_with_a_unit_is_refused_for_its_unit(tmp_path: Path) -> None:
    conversion = converted(tmp_path, "nodesets: {gpu: {extraConfMap: {CPUs: 96, RealMemory: 1152Gi}}}")

    fate, why = account(conversion, "nodesets.gpu.extraConfMap.RealMemory")
    assert (fate, why) == (
        Fate.NOT_POSSIBLE,
        "got 1152Gi, and RealMemory is a number of MiB; give node_sets[].memory_gib",
    )


@pytest.mark.parametrize("path", ["/dev/infiniband", "/dev/infiniband/uverbs0"])
def test_devices_of_rdma_have_the_way_to_get_them_here(tmp_path: Path, path: str) -> None:
    text = f"""
nodesets:
  gpu:
    slurmd: {{volumeMounts: [{{name: ib, mountPath: {path}}}], resources: {{limits: {{cpu: 4, memory: 8Gi}}}}}}
    podSpec: {{volumes: [{{name: ib, hostPath: {{path: {path}}}}}]}}
"""
    fate, why = account(converted(tmp_path, text), "nodesets.gpu.podSpec.volumes[0].hostPath.path")
    assert (fate, "node_sets[].rdma" in why) == (Fate.NOT_POSSIBLE, True)


@pytest.mark.parametrize("key", ["size", "storageClass"])
def test_keys_of_a_claim_that_the_chart_does_not_read_are_unknown(tmp_path: Path, key: str) -> None:
    text = f"controller: {{persistence: {{{key}: 10Gi, volumeMode: Filesystem}}}}\nnodesets: {{a: {NODE_SET}}}"
    conversion = converted(tmp_path, text)

    assert account(conversion, f"controller.persistence.{key}")[0] is Fate.UNKNOWN
    assert account(conversion, "controller.persistence.volumeMode")[0] is Fate.NOT_POSSIBLE


def test_soperators_reference_to_the_cluster_of_a_node_set_is_not_needed(tmp_path: Path) -> None:
    text = """
nodesets:
  - name: worker
    annotations: {slurm.nebius.ai/parental-cluster-ref: soperator, team: ai}
    slurmd: {resources: {cpu: 8, memory: 8Gi}}
"""
    conversion = converted(tmp_path, text)

    place = "nodesets[0].annotations"
    assert account(conversion, f'{place}["slurm.nebius.ai/parental-cluster-ref"]')[0] is Fate.NOT_NEEDED
    assert account(conversion, f"{place}.team")[0] is Fate.NOT_POSSIBLE


def test_the_time_that_pods_have_to_stop_is_that_of_sessions_and_of_jobs(tmp_path: Path) -> None:
    grace = "podSpec: {terminationGracePeriodSeconds: 3600}"
    conversion = converted(
        tmp_path,
        f"clusterName: hpc\nloginsets: {{a: {{enabled: true, {grace}}}}}\n"
        f"nodesets: {{a: {{slurmd: {{resources: {{limits: {{cpu: 4, memory: 8Gi}}}}}}, {grace}}}}}",
    )

    cluster = parse_cluster(completed(conversion))
    assert cluster.login.stop_seconds == cluster.node_sets[0].drain.grace.total_seconds() == 3600


def test_a_type_of_service_next_to_its_spec_is_taken_over(tmp_path: Path) -> None:
    text = f"clusterName: hpc\nrestapi: {{service: {{type: ClusterIP}}}}\nnodesets: {{cpu: {NODE_SET}}}\n"
    conversion = converted(tmp_path, text)
    assert conversion.cluster["rest"]["service"] == "ClusterIP"
    assert account(conversion, "restapi.service.type")[0] is Fate.TAKEN


def test_annotations_next_to_the_metadata_of_a_service_are_taken_over(tmp_path: Path) -> None:
    service = "{spec: {type: LoadBalancer}, annotations: {networking.gke.io/load-balancer-type: Internal}}"
    text = f"clusterName: hpc\nloginsets: {{login: {{service: {service}}}}}\nnodesets: {{cpu: {NODE_SET}}}\n"
    login = converted(tmp_path, text).cluster["login"]
    assert login["service_annotations"] == {"networking.gke.io/load-balancer-type": "Internal"}


def test_labels_of_a_service_monitor_are_told_as_labels(tmp_path: Path) -> None:
    monitor = "{enabled: true, labels: {release: prometheus}}"
    metrics = f"controller: {{metrics: {{enabled: true, serviceMonitor: {monitor}}}}}"
    conversion = converted(tmp_path, f"clusterName: hpc\n{metrics}\nnodesets: {{cpu: {NODE_SET}}}\n")
    fate, text = account(conversion, "controller.metrics.serviceMonitor.labels.release")
    assert (fate, "set for all objects together (labels" in text) == (Fate.NOT_POSSIBLE, True)


def test_values_of_both_charts_of_soperator_in_one_file_are_one_cluster(tmp_path: Path) -> None:
    partition = '{name: main, nodeSetRefs: [a], config: "Default=YES"}'
    text = (
        f"clusterType: cpu\npartitionConfiguration: {{configType: structured, partitions: [{partition}]}}\n"
        "nodesets:\n  - {name: a, replicas: 3, slurmd: {resources: {cpu: 8, memory: 8Gi}}}\n"
    )
    conversion = converted(tmp_path, text)
    (node_set,) = conversion.cluster["node_sets"]
    assert (node_set["replicas"], node_set["partitions"]) == (3, ["main"])
    assert not [entry.leaf.path for entry in conversion.entries if entry.fate is Fate.UNKNOWN]


def test_a_switch_of_the_databases_settings_is_not_needed(tmp_path: Path) -> None:
    accounting = "accounting: {enabled: true, storageConfig: {enabled: true, host: db}}"
    text = f"clusterName: hpc\n{accounting}\nnodesets: {{cpu: {NODE_SET}}}\n"
    conversion = converted(tmp_path, text)
    assert account(conversion, "accounting.storageConfig.enabled") == (
        Fate.NOT_NEEDED,
        "the other keys describe the database",
    )


def test_further_sets_of_login_nodes_become_pools_with_the_names_that_a_person_would_choose(tmp_path: Path) -> None:
    def login_set(name: str) -> str:
        return (
            f"---\napiVersion: slinky.slurm.net/v1beta1\nkind: LoginSet\nmetadata: {{name: {name}}}\n"
            f"spec: {{controllerRef: {{name: slurm}}, replicas: 2}}\n"
        )

    controller = (
        "apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: slurm}\nspec: {clusterName: hpc}\n"
    )
    sets = "".join(map(login_set, ("slurm-login", "slurm-login-gpu", "large-2")))
    conversion = converted(tmp_path, f"{controller}{sets}")
    assert conversion.cluster["login"] == {
        "replicas": 2,
        "pools": {"gpu": {"replicas": 2}, "large2": {"replicas": 2}},
    }


def test_pools_have_names_that_the_stack_takes_and_none_takes_in_another_set(tmp_path: Path) -> None:
    names = ("main", "login-gpu", "gpu", "a-1", "a1", "login-2", "Big.pool", "x" * 60, "x" * 61)
    sets = ", ".join(f"{name}: {{enabled: true, replicas: {count}}}" for count, name in enumerate(names, start=1))
    conversion = converted(tmp_path, f"clusterName: hpc\nloginsets: {{{sets}}}\nnodesets: {{cpu: {NODE_SET}}}\n")
    pools = conversion.cluster["login"]["pools"]
    assert [pool["replicas"] for pool in pools.values()] == [*range(2, len(names) + 1)]
    assert [*pools][:-2] == ["gpu", "gpu2", "a1", "a12", "pool2", "big-pool"]
    assert TypeAdapter(dict[PoolName, Any]).validate_python(pools)


def test_a_volume_of_one_set_of_login_nodes_is_that_of_its_pool(tmp_path: Path) -> None:
    def login_set(path: str) -> str:
        mounts = f"volumeMounts: [{{name: v, mountPath: {path}}}, {{name: d, mountPath: /data}}]"
        claim = "{name: d, persistentVolumeClaim: {claimName: data}}"
        volumes = f"volumes: [{{name: v, hostPath: {{path: /mnt/nvme}}}}, {claim}]"
        service = "service: {spec: {type: ClusterIP}}"
        return f"{{enabled: true, login: {{{mounts}}}, podSpec: {{{volumes}}}, {service}}}"

    sets = f"loginsets: {{main: {login_set('/local')}, login-gpu: {login_set('/fast')}}}"
    conversion = converted(tmp_path, f"clusterName: hpc\n{sets}\nnodesets: {{cpu: {NODE_SET}}}\n")

    submounts = {item["path"]: item for item in conversion.cluster["jail"]["submounts"]}
    assert {path: (item["roles"], item.get("logins")) for path, item in submounts.items()} == {
        "/local": (["login"], ["login"]),
        "/data": (["login"], None),
        "/fast": (["login"], ["login-gpu"]),
    }
    parse_cluster(completed(conversion))


def test_keys_of_slinkys_services_have_the_account_of_keys(tmp_path: Path) -> None:
    text = (
        "apiVersion: slinky.slurm.net/v1beta1\nkind: Controller\nmetadata: {name: slurm}\nspec: {clusterName: hpc}\n"
        "---\napiVersion: slinky.slurm.net/v1beta1\nkind: Accounting\nmetadata: {name: slurm}\n"
        "spec: {slurmKeyRef: {name: a, key: b}, jwtKeyRef: {name: a, key: b}, storageConfig: {host: db}}\n"
    )
    conversion = converted(tmp_path, text)
    assert "munge key" in account(conversion, "Accounting/slurm: spec.slurmKeyRef.name")[1]
    assert "tokens are signed" in account(conversion, "Accounting/slurm: spec.jwtKeyRef.key")[1]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ('["Name=gpu Type=a100 File=/dev/nvidia[0-7]"]', "a100"),
        ('["Name=gpu Type=a100 File=/dev/nvidia0", "Name=gpu Type=h100 File=/dev/nvidia1"]', None),
        ('["Name=gpu Type=3090 File=/dev/nvidia0"]', None),
        ("[AutoDetect=nvidia]", None),
    ],
)
def test_a_line_of_gres_conf_gives_the_type_of_the_gpus(tmp_path: Path, lines: str, kind: str | None) -> None:
    text = (
        "clusterName: hpc\nnodesets:\n  - name: gpu\n    replicas: 1\n"
        f"    nodeConfig: {{gresConfig: {lines}}}\n    slurmd: {{resources: {{cpu: 8, memory: 64Gi, gpu: 8}}}}\n"
    )
    (item,) = converted(tmp_path, text).cluster["node_sets"]
    assert item["gpus"].get("type") == kind


@pytest.mark.parametrize("value", ["-1", "INFINITE", "600"])
def test_power_saving_that_is_off_is_not_missed(tmp_path: Path, value: str) -> None:
    text = f"clusterName: hpc\ncontroller: {{extraConfMap: {{SuspendTime: {value}}}}}\nnodesets: {{cpu: {NODE_SET}}}\n"
    fate = Fate.NOT_POSSIBLE if value == "600" else Fate.NOT_NEEDED
    assert account(converted(tmp_path, text), "controller.extraConfMap.SuspendTime")[0] is fate


@pytest.mark.parametrize("more", ["", "MaxJobs 5\n", "NodeName=c[1-2] CPUs=4 # two\n  x\n"])
def test_slurm_conf_alone_is_refused_by_its_name(tmp_path: Path, more: str) -> None:
    with pytest.raises(ConversionError, match=r"slurm\.conf, which describes no pods.*slurm\.extra"):
        converted(tmp_path, f"ClusterName=hpc\nSlurmctldHost=head\n{more}PartitionName=a Nodes=ALL Default=YES\n")


@pytest.mark.parametrize("more", ["", ", slurmNodes: {login: {volumes: {jail: {volumeSourceName: jail}}}}"])
def test_the_volume_of_the_jail_is_that_which_the_chart_names_itself(tmp_path: Path, more: str) -> None:
    text = f"""
{{clusterName: hpc, populateJail: {{overwrite: false}}{more},
 volumeSources: [{{name: jail, createPVC: true, size: 2Ti, storageClassName: fs}}]}}
"""
    conversion = converted(tmp_path, text)
    assert conversion.cluster["jail"]["storage"] == {"size_gib": 2048, "storage_class": "fs"}
    assert not [
        entry.leaf.path for entry in conversion.entries if entry.leaf.is_default and "volumes" in entry.leaf.path
    ]
