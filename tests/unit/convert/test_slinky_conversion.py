"""Parts of Slinky that its recorded files do not have, or have in one form alone."""

from pathlib import Path

import pytest

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.node_set import CpuLayout
from tests.unit.convert.conversions import completed, converted

NODE_SET = "{slurmd: {resources: {limits: {cpu: 4, memory: 8Gi}}}, partition: {enabled: true}}"


def fate_of(conversion: Converted, path: str) -> Fate:
    (entry,) = [entry for entry in conversion.entries if entry.leaf.path == path]
    return entry.fate


def test_defaults_of_sets_reach_each_set_that_does_not_overrule_them(tmp_path: Path) -> None:
    text = """
clusterName: hpc
nodesetDefaults:
  replicas: 3
  slurmd: {image: registry.example.com/slurmd:1, resources: {limits: {cpu: 16, memory: 64Gi}}}
  extraConfMap: {Features: [fast, big], Weight: 1}
  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}
nodesets:
  a: {}
  b: {replicas: 5, slurmd: {resources: {limits: {cpu: 1500m}}}}
  c: {enabled: false, replicas: 9}
"""
    conversion = converted(tmp_path, text)
    a, b = conversion.cluster["node_sets"]

    assert (a["replicas"], a["cpus"], a["memory_gib"], a["features"]) == (3, 16, 64, ["fast", "big"])
    assert "pod_resources" not in a
    assert (b["replicas"], b["cpus"], b["memory_gib"]) == (5, 1, 64)
    assert b["pod_resources"] == {"limits": {"cpu": "1500m", "memory": "64Gi"}}
    assert a["rolling_update"] == b["rolling_update"] == {"max_unavailable": 2}
    assert conversion.cluster["jail"]["source"] == {"image": "registry.example.com/slurmd:1"}
    assert fate_of(conversion, "nodesetDefaults.replicas") is Fate.TAKEN
    assert fate_of(conversion, "nodesetDefaults.extraConfMap.Weight") is Fate.NOT_POSSIBLE
    assert fate_of(conversion, "nodesets.c.replicas") is Fate.NOT_NEEDED


def test_one_jail_comes_from_the_first_image(tmp_path: Path) -> None:
    text = """
clusterName: hpc
nodesets:
  a: {slurmd: {image: {repository: registry.example.com/a, digest: "sha256:%s"}}}
  b: {slurmd: {image: {repository: registry.example.com/b, tag: "1"}}}
""" % ("0" * 64)
    conversion = converted(tmp_path, text)

    assert conversion.cluster["jail"]["source"]["image"] == f"registry.example.com/a@sha256:{'0' * 64}"
    assert fate_of(conversion, "nodesets.b.slurmd.image.repository") is Fate.NOT_POSSIBLE


def test_partitions_of_the_values_and_of_node_sets_are_one_list(tmp_path: Path) -> None:
    text = f"""
clusterName: hpc
nodesets: {{cpu: {NODE_SET}, gpu: {{partition: {{enabled: true, config: "MaxTime=4:00:00 State=UP"}}}}}}
partitions:
  every: {{enabled: true, nodesets: [ALL], configMap: {{Default: "YES", AllowGroups: [a, b]}}}}
  default: {{enabled: true, nodesets: [cpu]}}
  off: {{enabled: false, nodesets: [cpu]}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["partitions"] == [
        {"name": "cpu"},
        {"name": "gpu", "options": {"MaxTime": "4:00:00", "State": "UP"}},
        {"name": "every", "default": True, "options": {"AllowGroups": "a,b"}},
    ]
    assert [item["partitions"] for item in conversion.cluster["node_sets"]] == [["cpu", "every"], ["gpu", "every"]]
    assert fate_of(conversion, "partitions.default.enabled") is Fate.NOT_POSSIBLE  # Slurm reserves the name
    parse_cluster(completed(conversion))


def test_a_node_set_whose_only_partition_is_refused_gets_one_of_its_own(tmp_path: Path) -> None:
    text = """
clusterName: hpc
nodesets: {cpu: {}}
partitions: {default: {enabled: true, nodesets: [ALL]}}
"""
    (node_set,) = converted(tmp_path, text).cluster["node_sets"]

    assert node_set["partitions"] == ["cpu"]


def test_a_node_on_each_machine_needs_a_number(tmp_path: Path) -> None:
    conversion = converted(tmp_path, "clusterName: hpc\nnodesets: {cpu: {scalingMode: DaemonSet}}\n")

    assert "node_sets[0].replicas" in {addition.path for addition in conversion.additions}
    parse_cluster(completed(conversion))


def test_login_nodes_come_from_the_first_set_that_is_enabled_and_pools_from_the_others(tmp_path: Path) -> None:
    text = f"""
clusterName: hpc
loginsetDefaults: {{service: {{spec: {{type: LoadBalancer, loadBalancerSourceRanges: [10.1.0.0/16]}}}}}}
loginsets:
  off: {{enabled: false}}
  on:
    replicas: 2
    service: {{metadata: {{annotations: {{example.com/internal: "true"}}}}, port: 2222}}
    login:
      volumeMounts: [{{name: homes, mountPath: /home}}]
      resources: {{requests: {{cpu: 1, memory: 1073741824, ephemeral-storage: 1Gi}}}}
    podSpec:
      volumes: [{{name: homes, persistentVolumeClaim: {{claimName: homes}}}}, {{name: unused, emptyDir: {{}}}}]
  more-2: {{replicas: 7, podSpec: {{nodeSelector: {{pool: gpu}}, terminationGracePeriodSeconds: 600}}}}
nodesets: {{cpu: {NODE_SET}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["login"] == {
        "replicas": 2,
        "service": "LoadBalancer",
        "service_annotations": {"example.com/internal": "true"},
        "allowed_sources": ["10.1.0.0/16"],
        "pod_resources": {"requests": {"cpu": "1", "memory": "1048576Ki"}},
        "pools": {
            "more2": {
                "replicas": 7,
                "service": "LoadBalancer",
                "allowed_sources": ["10.1.0.0/16"],
                "node_selector": {"pool": "gpu"},
                "termination_grace": "600s",
            }
        },
    }
    assert conversion.cluster["jail"]["submounts"] == [{"path": "/home", "existing_claim": "homes"}]
    assert fate_of(conversion, "loginsets.on.service.port") is Fate.NOT_POSSIBLE
    assert fate_of(conversion, "loginsets.more-2.replicas") is Fate.TAKEN
    parse_cluster(completed(conversion))


def test_slurm_conf_comes_from_the_text_where_both_forms_are_given(tmp_path: Path) -> None:
    text = f"""
clusterName: hpc
controller:
  extraConf: "MinJobAge=2 \\nSlurmctldParameters=enable_stepmgr\\nPartitionName=p Nodes=cpu,other Default=YES\\n"
  extraConfMap: {{MinJobAge: 9}}
  persistence: {{existingClaim: state}}
nodesets: {{cpu: {NODE_SET}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["slurm"]["extra"] == {"MinJobAge": "2", "SlurmctldParameters": "enable_stepmgr"}
    assert [partition["name"] for partition in conversion.cluster["partitions"]] == ["p", "cpu"]
    assert fate_of(conversion, "controller.extraConfMap.MinJobAge") is Fate.NOT_NEEDED
    assert fate_of(conversion, "controller.persistence.existingClaim") is Fate.NOT_POSSIBLE
    assert "state" not in conversion.cluster.get("storage", {})


def test_lists_of_parameters_are_joined_as_slurm_writes_them(tmp_path: Path) -> None:
    text = "clusterName: hpc\ncontroller: {extraConfMap: {DebugFlags: [Power, Agent], PrologFlags: []}}\nnodesets: {}\n"

    assert converted(tmp_path, text).cluster["slurm"]["extra"] == {"DebugFlags": "Power,Agent"}


@pytest.mark.parametrize(("hostname", "name"), [("cpu-", "cpu"), ("", "slurm-worker-cpu")])
def test_a_node_set_resource_is_named_as_in_slurm(tmp_path: Path, hostname: str, name: str) -> None:
    text = f"""
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {{name: hpc}}
---
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {{name: slurm-worker-cpu}}
spec: {{template: {{spec: {{hostname: "{hostname}"}}}}, partition: {{enabled: true}}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["name"] == "hpc"
    assert [item["name"] for item in conversion.cluster["node_sets"]] == [name]
    assert [partition["name"] for partition in conversion.cluster["partitions"]] == [name]


def test_the_class_of_all_pods_is_that_of_each_role(tmp_path: Path) -> None:
    text = f"""
clusterName: hpc
priorityClass: {{enabled: true, name: high}}
nodesets: {{cpu: {NODE_SET}, own: {{podSpec: {{priorityClassName: mine}}}}}}
"""
    cluster = converted(tmp_path, text).cluster

    assert cluster["controller"]["priority_class"] == "high"
    assert [item["priority_class"] for item in cluster["node_sets"]] == ["high", "mine"]


@pytest.mark.parametrize("kind", ["nodesets", "loginsets", "partitions"])
def test_a_set_that_is_no_mapping_is_of_no_known_form(kind: str, tmp_path: Path) -> None:
    conversion = converted(tmp_path, f"clusterName: hpc\n{kind}: {{a: 3}}\n")
    assert fate_of(conversion, f"{kind}.a") is Fate.UNKNOWN


def test_accounting_keeps_its_database_and_the_ages_of_its_records(tmp_path: Path) -> None:
    text = f"""
clusterName: hpc
accounting:
  enabled: true
  storageConfig:
    {{host: db.example.com, port: 3307, database: acct, username: me, passwordKeyRef: {{name: mine, key: word}}}}
  extraConfMap: {{PurgeJobAfter: 12month, DebugLevel: debug2}}
nodesets: {{a: {NODE_SET}}}
"""
    conversion = converted(tmp_path, text)
    accounting = conversion.cluster["accounting"]

    password = {"secret": "mine", "key": "word"}
    external = {"host": "db.example.com", "port": 3307, "database": "acct", "user": "me", "password": password}
    assert accounting == {"database": {"external": external}, "purge": {"jobs": "12 months"}}
    assert fate_of(conversion, "accounting.extraConfMap.DebugLevel") is Fate.NOT_POSSIBLE
    assert {"accounting", "rest"} <= conversion.cluster["images"].keys()
    assert "database" not in conversion.cluster["images"]
    parse_cluster(completed(conversion))


def test_the_chart_s_own_database_and_partition_are_known(tmp_path: Path) -> None:
    text = f"""
accounting: {{enabled: true, storageConfig: {{username: me}}, extraConf: "PurgeJobAfter=2month"}}
nodesets: {{a: {NODE_SET}}}
partitions: {{all: {{enabled: true}}}}
"""
    conversion = converted(tmp_path, text)

    password = {"secret": "mariadb-password", "key": "password"}
    assert conversion.cluster["accounting"] == {
        "database": {"external": {"host": "mariadb", "user": "me", "password": password}},
        "purge": {"jobs": "2 months"},
    }
    assert conversion.cluster["partitions"] == [
        {"name": "a"},
        {"name": "all", "default": True, "options": {"MaxTime": "UNLIMITED"}},
    ]
    parse_cluster(completed(conversion))


def test_services_keep_their_place_and_size(tmp_path: Path) -> None:
    pod = "podSpec: {nodeSelector: {pool: ops}, tolerations: [{key: ops, operator: Exists}], priorityClassName: high}"
    text = f"""
accounting: {{enabled: true, slurmdbd: {{resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}, {pod}}}
restapi:
  slurmrestd: {{resources: {{limits: {{memory: 2Gi}}}}}}
  service: {{spec: {{type: NodePort}}}}
  {pod}
nodesets: {{a: {NODE_SET}}}
"""
    conversion = converted(tmp_path, text)

    place = {
        "node_selector": {"pool": "ops"},
        "tolerations": [{"key": "ops", "operator": "Exists"}],
        "priority_class": "high",
    }
    slurmdbd = conversion.cluster["accounting"]["slurmdbd"]
    assert slurmdbd == place | {"pod_resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    rest = {"replicas": 1, "service": "NodePort", "pod_resources": {"limits": {"memory": "2Gi"}}}
    assert conversion.cluster["rest"] == place | rest | {"allowed_sources": "<add>"}


def test_refused_options_and_features_have_their_reasons_alone(tmp_path: Path) -> None:
    text = """
nodesets:
  a:
    extraConf: "Features=a100,40gb,no!,rdma"
    partition: {enabled: true, configMap: {Topology: flat, NoSuchOption: 1, State: UP}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["node_sets"][0]["features"] == ["a100", "40gb", "rdma"]
    assert conversion.cluster["partitions"] == [{"name": "a", "options": {"State": "UP"}}]
    refused = [entry for entry in conversion.entries if entry.fate is Fate.NOT_POSSIBLE]
    assert [entry.leaf.path.removeprefix("nodesets.a.") for entry in refused] == [
        "extraConf (Features no!)",
        "partition.configMap.Topology",
        "partition.configMap.NoSuchOption",
    ]


def test_a_path_has_a_volume_for_sessions_and_others_for_jobs(tmp_path: Path) -> None:
    def memory(size: str) -> str:
        return f"podSpec: {{volumes: [{{name: t, emptyDir: {{medium: Memory, sizeLimit: {size}}}}}]}}"

    mounts = "{volumeMounts: [{name: t, mountPath: /tmp}]}"
    text = f"""
loginsets: {{a: {{login: {mounts}, {memory("1Gi")}}}}}
nodesets: {{a: {{slurmd: {mounts}, {memory("2Gi")}}}, b: {{slurmd: {mounts}, {memory("3Gi")}}}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["jail"]["submounts"] == [
        {"path": "/tmp", "roles": ["login"], "memory_gib": 1},
        {"path": "/tmp", "roles": ["worker"], "node_sets": ["a"], "memory_gib": 2},
        {"path": "/tmp", "roles": ["worker"], "node_sets": ["b"], "memory_gib": 3},
    ]
    parse_cluster(completed(conversion))


def test_jobs_of_one_node_set_share_a_volume_with_sessions(tmp_path: Path) -> None:
    volumes = "podSpec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}"
    mounts = "{volumeMounts: [{name: d, mountPath: /data}, {name: d, mountPath: /data, subPath: x}]}"
    text = f"""
loginsets: {{a: {{login: {mounts}, {volumes}}}}}
nodesets: {{a: {{slurmd: {mounts}, {volumes}}}, b: {NODE_SET}}}
"""
    conversion = converted(tmp_path, text)

    assert conversion.cluster["jail"]["submounts"] == [{"path": "/data", "existing_claim": "data", "node_sets": ["a"]}]
    assert fate_of(conversion, "nodesets.a.slurmd.volumeMounts[1].subPath") is Fate.NOT_POSSIBLE
    parse_cluster(completed(conversion))


def test_a_slurmdbd_elsewhere_has_no_counterpart(tmp_path: Path) -> None:
    text = f"""
clusterName: hpc
accounting: {{enabled: true, external: true, externalConfig: {{host: slurmdbd.example.com}}}}
nodesets: {{a: {NODE_SET}}}
"""
    assert fate_of(converted(tmp_path, text), "accounting.externalConfig.host") is Fate.NOT_POSSIBLE


@pytest.mark.parametrize(
    ("monitor", "metrics"),
    [
        ("{enabled: true, interval: 1m, scrapeTimeout: 25s}", {"pod_monitor": True, "interval": "1m"}),
        ("{enabled: false}", {"pod_monitor": False}),
        ("{enabled: true, interval: 1s}", {"pod_monitor": True}),
    ],
)
def test_metrics_of_slurmctld_are_those_of_the_exporter(
    tmp_path: Path, monitor: str, metrics: dict[str, object]
) -> None:
    text = f"controller: {{metrics: {{enabled: true, serviceMonitor: {monitor}}}}}\nnodesets: {{a: {NODE_SET}}}\n"
    conversion = converted(tmp_path, text)

    assert conversion.cluster["metrics"] == metrics
    parse_cluster(completed(conversion))


def test_a_node_without_limits_has_the_size_of_its_configuration(tmp_path: Path) -> None:
    text = """
nodesets:
  a: {extraConf: "Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=65536 Weight=3"}
  b: {extraConfMap: {CPUs: 8, RealMemory: 1024}, slurmd: {resources: {limits: {cpu: 8, memory: 4Gi}}}}
"""
    conversion = converted(tmp_path, text)

    assert [(item["cpus"], item["memory_gib"]) for item in conversion.cluster["node_sets"]] == [(64, 64), (8, 4)]
    assert [conversion.cluster["node_sets"][0][key] for key in CpuLayout._fields] == [2, 16, 2]
    assert fate_of(conversion, "nodesets.b.extraConfMap.CPUs") is Fate.TAKEN
    assert fate_of(conversion, "nodesets.b.extraConfMap.RealMemory") is Fate.NOT_POSSIBLE
    assert fate_of(conversion, "nodesets.a.extraConf (Weight)") is Fate.NOT_POSSIBLE
