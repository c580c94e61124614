"""Parts of soperator that its recorded files do not have, or have in one form alone."""

from pathlib import Path

import pytest

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.node_set import CpuLayout
from tests.unit.convert.conversions import completed, converted

CLUSTER = """
clusterName: hpc
slurmNodes: {login: {size: 1, sshdServiceType: NodePort, sshdServiceLoadBalancerSourceRanges: [10.0.0.0/8]}}
"""
NODE_SETS = """
nodesets:
  - {name: cpu, slurmd: {resources: {cpu: 16, memory: 64Gi}}}
  - {name: gpu, slurmd: {resources: {cpu: "8", memory: 32Gi}}}
"""


def flux(cluster: str, node_sets: str = NODE_SETS) -> str:
    """Return values with both charts in one file."""

    def indented(text: str) -> str:
        return "".join(f"    {line}\n" for line in text.splitlines())

    return (
        f"slurmCluster:\n  overrideValues:\n{indented(cluster)}"
        f"nodesets:\n  enabled: true\n  overrideValues:\n{indented(node_sets)}"
    )


def fates(conversion: Converted, path: str) -> dict[str, tuple[Fate, tuple[str, ...]]]:
    """Return fate and targets of the values below a path, by the rest of their paths."""
    return {
        entry.leaf.path.partition(path)[2]: (entry.fate, entry.targets)
        for entry in conversion.entries
        if path in entry.leaf.path
    }


def test_partitions_of_raw_lines_keep_nodes_options_and_default(tmp_path: Path) -> None:
    partitions = """
partitionConfiguration:
  configType: custom
  rawConfig:
    - PartitionName=low Nodes=cpu Default=YES MaxTime=8:00:00 PriorityTier=1
    - PartitionName=every Nodes=ALL Default=NO MinNodes=2
    - PartitionName=none Nodes=other
"""
    conversion = converted(tmp_path, flux(CLUSTER + partitions))

    assert conversion.cluster["partitions"] == [
        {"name": "low", "default": True, "options": {"MaxTime": "8:00:00", "PriorityTier": "1"}},
        {"name": "every", "default": False, "options": {"MinNodes": "2"}},
    ]
    assert [item["partitions"] for item in conversion.cluster["node_sets"]] == [["low", "every"], ["every"]]
    assert fates(conversion, "rawConfig[2]")[" (PartitionName)"][0] is Fate.NOT_POSSIBLE


def test_structured_partitions_name_node_sets_or_all(tmp_path: Path) -> None:
    partitions = """
partitionConfiguration:
  configType: structured
  partitions:
    - {name: main, isAll: true, config: "Default=YES State=UP"}
    - {name: gpu, isAll: false, nodeSetRefs: [gpu], config: "MaxTime=1-00 Nonsense=1"}
"""
    conversion = converted(tmp_path, flux(CLUSTER + partitions))

    assert conversion.cluster["partitions"] == [
        {"name": "main", "default": True, "options": {"State": "UP"}},
        {"name": "gpu", "options": {"MaxTime": "1-00"}},
    ]
    assert [item["partitions"] for item in conversion.cluster["node_sets"]] == [["main"], ["main", "gpu"]]
    assert fates(conversion, "partitions[1].config")[" (Nonsense)"][0] is Fate.NOT_POSSIBLE


def test_a_node_set_in_no_partition_gets_one_of_its_own(tmp_path: Path) -> None:
    partitions = """
partitionConfiguration: {configType: structured, partitions: [{name: main, nodeSetRefs: [cpu]}]}
"""
    conversion = converted(tmp_path, flux(CLUSTER + partitions))

    assert [item["partitions"] for item in conversion.cluster["node_sets"]] == [["main"], ["gpu"]]
    parse_cluster(completed(conversion))


def test_text_of_slurm_conf_is_taken_parameter_by_parameter(tmp_path: Path) -> None:
    text = """
slurmConfig: {maxJobCount: 20000}
customSlurmConfig: |
  # limits
  MaxJobCount=50000
  SchedulerParameters=defer,bf_continue   # as before
  GresTypes=gpu
  MetricsType=metrics/openmetrics
  Prolog
"""
    conversion = converted(tmp_path, flux(CLUSTER + text))

    assert conversion.cluster["slurm"]["extra"] == {
        "MaxJobCount": "50000",
        "SchedulerParameters": "defer,bf_continue",
    }
    found = {path: fate for path, (fate, _) in fates(conversion, "customSlurmConfig").items()}
    assert found == {
        " (MaxJobCount)": Fate.TAKEN,
        " (SchedulerParameters)": Fate.TAKEN,
        " (GresTypes)": Fate.NOT_NEEDED,
        " (MetricsType)": Fate.NOT_POSSIBLE,
        " (text)": Fate.NOT_POSSIBLE,
    }
    assert fates(conversion, "maxJobCount")[""][0] is Fate.NOT_NEEDED


def test_a_volume_of_login_nodes_and_workers_is_one_submount(tmp_path: Path) -> None:
    cluster = """
clusterName: hpc
volumeSources:
  - {name: data, persistentVolumeClaim: {claimName: datasets, readOnly: true}}
  - {name: homes, createPVC: true, size: 1Ti, persistentVolumeClaim: {claimName: homes}}
  - {name: nfs, nfs: {server: files, path: /x}}
slurmNodes:
  login:
    sshdServiceLoadBalancerSourceRanges: [10.0.0.0/8]
    volumes:
      jailSubMounts:
        - {name: data, mountPath: /data, volumeSourceName: data}
        - {name: homes, mountPath: /home, volumeSourceName: homes}
        - {name: x, mountPath: /x, volumeSourceName: nfs}
        - {name: y, mountPath: /y, volumeSourceName: other}
"""
    node_sets = """
nodesets:
  - name: cpu
    slurmd:
      resources: {cpu: 16, memory: 64Gi}
      volumes:
        sharedMemorySize: 8Gi
        jailSubMounts:
          - name: data
            mountPath: /data
            readOnly: true
            volumeSource: {persistentVolumeClaim: {claimName: datasets}}
          - {name: local, mountPath: /mnt/local, subPath: a, volumeSource: {hostPath: {path: /mnt/nvme}}}
          - {name: scratch, mountPath: /scratch, volumeSource: {emptyDir: {sizeLimit: 1500Mi}}}
          - {name: etc, mountPath: /etc/x, volumeSource: {emptyDir: {sizeLimit: 1Gi}}}
"""
    conversion = converted(tmp_path, flux(cluster, node_sets))

    assert conversion.cluster["jail"]["submounts"] == [
        {"path": "/data", "existing_claim": "datasets", "read_only": True},
        {"path": "/home", "existing_claim": "homes"},
        {"path": "/scratch", "scratch_gib": 2, "roles": ["worker"]},
        {"path": "/dev/shm", "memory_gib": 8, "roles": ["worker"]},
    ]
    parse_cluster(completed(conversion))
    left = [entry.leaf.value for entry in conversion.entries if "mountPath" in entry.leaf.keys and not entry.targets]
    assert left == ["/x", "/y", "/mnt/local", "/etc/x"]


def of_volumes(name: str, volumes: str) -> str:
    return f"  - {{name: {name}, slurmd: {{resources: {{cpu: 4, memory: 8Gi}}, volumes: {volumes}}}}}\n"


def mounts(path: str, source: str) -> str:
    return f"{{jailSubMounts: [{{name: x, mountPath: {path}, volumeSource: {source}}}]}}"


def submounts(folder: Path, node_sets: str) -> list[dict[str, object]]:
    conversion = converted(folder, flux(CLUSTER, f"nodesets:\n{node_sets}"))
    parse_cluster(completed(conversion))
    found: list[dict[str, object]] = conversion.cluster["jail"]["submounts"]
    return found


def test_two_volumes_at_one_path_are_submounts_of_their_node_sets(tmp_path: Path) -> None:
    node_sets = (
        of_volumes("a", mounts("/x", "{hostPath: {path: /mnt/a}}"))
        + of_volumes("b", mounts("/x", "{hostPath: {path: /mnt/b}}"))
        + of_volumes("c", mounts("/x", "{hostPath: {path: /mnt/a}}"))
    )
    assert submounts(tmp_path, node_sets) == [
        {"path": "/x", "host_path": "/mnt/a", "roles": ["worker"], "node_sets": ["a", "c"]},
        {"path": "/x", "host_path": "/mnt/b", "roles": ["worker"], "node_sets": ["b"]},
    ]


def test_a_volume_of_all_node_sets_is_one_of_all_workers(tmp_path: Path) -> None:
    node_sets = "".join(of_volumes(name, mounts("/x", "{hostPath: {path: /mnt/a}}")) for name in "ab")

    assert submounts(tmp_path, node_sets) == [{"path": "/x", "host_path": "/mnt/a", "roles": ["worker"]}]


def test_sizes_of_shared_memory_are_those_of_their_node_sets(tmp_path: Path) -> None:
    node_sets = "".join(of_volumes(*of) for of in [("a", "{sharedMemorySize: 1Gi}"), ("b", "{}")])
    node_sets += of_volumes("c", "{sharedMemorySize: 2Gi}")

    assert submounts(tmp_path, node_sets) == [
        {"path": "/dev/shm", "memory_gib": 1, "roles": ["worker"], "node_sets": ["a"]},
        {"path": "/dev/shm", "memory_gib": 2, "roles": ["worker"], "node_sets": ["c"]},
    ]


def test_a_volume_of_a_node_set_that_needs_another_name_stays(tmp_path: Path) -> None:
    node_sets = of_volumes("4gpu", mounts("/x", "{hostPath: {path: /mnt/a}}")) + of_volumes("b", "{}")
    conversion = converted(tmp_path, flux(CLUSTER, f"nodesets:\n{node_sets}"))

    assert conversion.cluster["jail"]["submounts"] == [
        {"path": "/x", "host_path": "/mnt/a", "roles": ["worker"], "node_sets": ["<add>"]}
    ]
    assert {"node_sets[0].name", "jail.submounts[0].node_sets[0]"} <= {
        addition.path for addition in conversion.additions
    }


def test_homes_of_one_node_set_are_those_of_all(tmp_path: Path) -> None:
    node_sets = of_volumes("a", mounts("/home", "{persistentVolumeClaim: {claimName: homes}}"))
    node_sets += of_volumes("b", mounts("/home", "{hostPath: {path: /mnt/b}}"))
    conversion = converted(tmp_path, flux(CLUSTER, f"nodesets:\n{node_sets}"))

    assert conversion.cluster["jail"]["submounts"] == [{"path": "/home", "existing_claim": "homes"}]
    assert "homes are the same everywhere" in conversion.stack_file()
    assert {fate for fate, _ in fates(conversion, "nodesets[1].slurmd.volumes").values()} == {Fate.NOT_POSSIBLE}


@pytest.mark.parametrize(
    ("static", "cpus"),
    [
        ("CPUs=12 Boards=1 CoresPerSocket=99", 12),
        ("SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=2", 32),
        ("Weight=5", 16),
        ("", 16),
    ],
)
def test_cpus_are_those_that_slurm_schedules(tmp_path: Path, static: str, cpus: int) -> None:
    node_sets = f"""
nodesets:
  - {{name: cpu, nodeConfig: {{static: "{static}"}}, slurmd: {{resources: {{cpu: 16, memory: 64Gi}}}}}}
"""
    (node_set,) = converted(tmp_path, flux(CLUSTER, node_sets)).cluster["node_sets"]

    assert node_set["cpus"] == cpus
    assert ("pod_resources" in node_set) == (cpus != 16)


@pytest.mark.parametrize(
    ("static", "layout"),
    [
        ("CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2", [2, 4, 2]),
        ("Boards=2 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=2", [2, 4, 2]),
        ("Sockets=2 CoresPerSocket=8", [2, 8, 1]),
        ("CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", [2, 4, 2]),
        ("CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", [2, 8, 1]),
        ("CPUs=12 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", None),
        ("CPUs=16 Boards=1", None),
        ("CPUs=16 CoresPerSocket=0", None),
    ],
)
def test_a_layout_of_as_many_cpus_as_slurm_schedules_is_taken_over(
    tmp_path: Path, static: str, layout: list[int] | None
) -> None:
    node_sets = f"""
nodesets:
  - {{name: cpu, nodeConfig: {{static: "{static}"}}, slurmd: {{resources: {{cpu: 16, memory: 64Gi}}}}}}
"""
    conversion = converted(tmp_path, flux(CLUSTER, node_sets))
    (node_set,) = conversion.cluster["node_sets"]

    assert [node_set[key] for key in CpuLayout._fields if key in node_set] == (layout or [])
    parse_cluster(completed(conversion))


def test_what_the_spec_refuses_is_reported_in_its_words(tmp_path: Path) -> None:
    node_sets = NODE_SETS.replace("name: cpu", "name: controller")
    conversion = converted(tmp_path, flux(CLUSTER, node_sets))

    (addition,) = [addition for addition in conversion.additions if addition.path.endswith(".name")]
    assert 'got "controller", which is reserved' in addition.text
    (entry,) = [entry for entry in conversion.entries if entry.leaf.path.endswith("nodesets[0].name")]
    assert entry.fate is Fate.NOT_POSSIBLE


def test_problems_between_values_are_to_be_corrected(tmp_path: Path) -> None:
    node_sets = NODE_SETS.replace("name: cpu", "name: cpu, replicas: 5000")
    conversion = converted(tmp_path, flux(CLUSTER, node_sets))

    assert [addition.path for addition in conversion.additions if "slurm.max_nodes" in addition.text] == ["node_sets"]
    assert "# CORRECT node_sets: 5001 nodes in all" in conversion.stack_file()


def test_node_sets_of_a_release_that_is_off_are_not_taken(tmp_path: Path) -> None:
    conversion = converted(tmp_path, flux(CLUSTER).replace("enabled: true", "enabled: false"))

    assert conversion.cluster["node_sets"] == "<add>"
    assert {fate for fate, _ in fates(conversion, "nodesets.overrideValues").values()} == {Fate.NOT_NEEDED}


def test_resources_of_kubectl_get_are_taken_from_their_list(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: List
items:
  - apiVersion: slurm.nebius.ai/v1
    kind: SlurmCluster
    metadata:
      name: hpc
      uid: 8d7c
      resourceVersion: "7"
      managedFields: [{manager: helm, operation: Apply}]
      annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", mine: yes}
    spec:
      crVersion: 5.0.0
      secrets: {sshdKeysName: keys}
      slurmNodes: {login: {size: 0, sshdServiceType: ClusterIP}, wrong: 1}
    status: {phase: Available}
  - apiVersion: slurm.nebius.ai/v1alpha1
    kind: NodeSet
    metadata: {name: cpu}
    spec: {replicas: 0, slurmd: {resources: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 8}}}
  - {apiVersion: slurm.nebius.ai/v1alpha1, kind: NodeSetPowerState, metadata: {name: cpu}, spec: {nodeSetRef: cpu}}
"""
    conversion = converted(tmp_path, text)
    found = {path: fate for path, (fate, _) in fates(conversion, "SlurmCluster/hpc: ").items()}

    assert conversion.cluster["secrets"] == {"ssh_host_key": {"secret": "keys"}}
    assert conversion.cluster["login"] == {"replicas": 0, "service": "ClusterIP"}
    assert conversion.cluster["node_sets"][0]["replicas"] == 0
    assert found["metadata.uid"] is found["status.phase"] is Fate.NOT_NEEDED
    assert found["metadata.annotations.mine"] is Fate.NOT_POSSIBLE
    assert found["spec.slurmNodes.wrong"] is Fate.UNKNOWN
    parse_cluster(completed(conversion))


def test_images_have_one_pull_policy_and_all_pull_secrets(tmp_path: Path) -> None:
    more = """
imagePullPolicy: Always
imagePullSecrets: [{name: one}]
populateJail: {imagePullPolicy: Never, imagePullSecrets: [{name: two}, {name: one}]}
"""
    conversion = converted(tmp_path, flux(CLUSTER + more))

    assert conversion.cluster["images"]["pull_policy"] == "Always"
    assert conversion.cluster["images"]["pull_secrets"] == ["one", "two"]
    assert fates(conversion, "populateJail.imagePullPolicy")[""][0] is Fate.NOT_POSSIBLE


def test_values_in_another_form_and_misspelt_keys_are_unknown_and_empty_ones_are_not(tmp_path: Path) -> None:
    more = """
imagePullSecrets: registry
secrets: {}
k8sNodeFilterz: [{name: x}]
slurmConfig: {maxJobCount: 5}
"""
    conversion = converted(tmp_path, flux(CLUSTER + more))

    unknown = [
        entry.leaf.path.rpartition("overrideValues.")[2] for entry in conversion.entries if entry.fate is Fate.UNKNOWN
    ]
    assert unknown == ["imagePullSecrets", "k8sNodeFilterz[0].name"]
    assert fates(conversion, "overrideValues.secrets")[""][0] is Fate.NOT_NEEDED


def test_a_release_without_values_has_the_defaults_of_its_chart(tmp_path: Path) -> None:
    cluster = converted(tmp_path, "slurmCluster: {releaseName: soperator, overrideValues: null}\n").cluster

    assert (cluster["name"], cluster["login"]["replicas"]) == ("soperator", 2)


def test_node_sets_in_values_that_are_not_overridden_are_taken(tmp_path: Path) -> None:
    text = flux(CLUSTER).replace("  enabled: true\n  overrideValues:", "  enabled: true\n  values:")
    conversion = converted(tmp_path, text)

    assert [item["name"] for item in conversion.cluster["node_sets"]] == ["cpu", "gpu"]
    assert Fate.UNKNOWN not in {entry.fate for entry in conversion.entries}


def test_accounting_and_the_rest_api_are_on_where_they_are_on(tmp_path: Path) -> None:
    services = """
  accounting:
    enabled: true
    externalDB:
      {enabled: true, host: db.example.com, port: 3306, user: me, passwordSecretKeyRef: {name: mine, key: word},
       tls: {serverCASecretRef: authority, clientCertSecretRef: client}}
    slurmdbdConfig: {purgeJobAfter: 12month, purgeTXNAfter: soon}
  rest: {enabled: true, size: 2, threadCount: 3}
"""
    cluster = CLUSTER.replace("{login: ", "\n  login: ").replace("]}}\n", f"]}}{services}")
    conversion = converted(tmp_path, flux(cluster))

    password, authority = {"secret": "mine", "key": "word"}, {"secret": "authority"}
    database = {"host": "db.example.com", "port": 3306, "user": "me", "password": password, "authority": authority}
    assert conversion.cluster["accounting"] == {"database": {"external": database}, "purge": {"jobs": "12 months"}}
    assert conversion.cluster["rest"] == {"replicas": 2}
    for left in ("tls.clientCertSecretRef", "slurmdbdConfig.purgeTXNAfter", "rest.threadCount"):
        assert [fate for fate, _ in fates(conversion, left).values()] == [Fate.NOT_POSSIBLE]
    parse_cluster(completed(conversion))


def test_a_database_of_mariadb_operator_stays_one(tmp_path: Path) -> None:
    services = """
  accounting:
    {enabled: true, mariadbOperator: {enabled: true, replicas: 3, storage: {storageClassName: fast}}}
"""
    cluster = CLUSTER.replace("{login: ", "\n  login: ").replace("]}}\n", f"]}}{services}")
    conversion = converted(tmp_path, flux(cluster))

    operator = {"replicas": 3, "storage_class": "fast"}
    assert conversion.cluster["accounting"] == {"database": {"mariadb_operator": operator}}
    parse_cluster(completed(conversion))


ACTIVE_CHECKS = """
soperatorActiveChecks:
  enabled: true
  overrideValues:
    images: {slurmJob: example.com/check:1}
    checks:
      gpu-checks: {schedule: "0 3 * * *", failureReactions: {drainSlurmNode: null}}
      dcgmi-diag-r3: {enabled: true, suspend: false, schedule: "0 4 * * 0"}
      ours: {enabled: true, checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/sh"}}
      manage-jail-state-dry-run: {enabled: false}
"""
GPU_NODES = """
nodesets:
  - {name: gpu, slurmd: {resources: {cpu: 16, memory: 64Gi, gpu: 8}}, gpu: {enabled: true}}
"""


def test_active_checks_of_gpus_are_long_checks(tmp_path: Path) -> None:
    conversion = converted(tmp_path, flux(CLUSTER, GPU_NODES) + ACTIVE_CHECKS)

    assert conversion.cluster["health"]["long_checks"] == {
        "nccl_bandwidth": {"enabled": True, "schedule": "0 3 * * *", "nodes_per_run": 200, "action": "log"},
        "gpu_diagnostics": {"enabled": True, "schedule": "0 4 * * 0", "arguments": {"level": 3}},
    }
    found = {path: fate for path, (fate, _) in fates(conversion, "overrideValues.checks.").items()}
    assert found["ours.slurmJobSpec.sbatchScript"] is Fate.NOT_POSSIBLE
    assert found["manage-jail-state-dry-run.enabled"] is Fate.NOT_NEEDED
    parse_cluster(completed(conversion))


@pytest.mark.parametrize(
    ("node_sets", "checks"), [(NODE_SETS, ACTIVE_CHECKS), (GPU_NODES, "soperatorActiveChecks: {enabled: false}\n")]
)
def test_without_gpus_or_active_checks_there_is_no_long_check(tmp_path: Path, node_sets: str, checks: str) -> None:
    assert "health" not in converted(tmp_path, flux(CLUSTER, node_sets) + checks).cluster


def metrics_of(folder: Path, cluster: str) -> object:
    """Return the metrics of a cluster, which deploys with them."""
    conversion = converted(folder, flux(cluster))
    parse_cluster(completed(conversion))
    return conversion.cluster.get("metrics")


def exporters(exporter: str, endpoint: str) -> str:
    """Return a cluster with both of soperator's exporters, as they are given."""
    head, _, rest = CLUSTER.partition("slurmNodes: {")
    return f"{head}slurmNodes: {{exporter: {exporter}, controller: {{openMetrics: {endpoint}}}, {rest}"


def test_the_exporter_s_switch_and_interval_are_those_of_metrics(tmp_path: Path) -> None:
    cluster = exporters("{enabled: true, podMonitorConfig: {interval: 1m}, collectionInterval: 45s}", "{enabled: true}")
    assert metrics_of(tmp_path, cluster) == {"pod_monitor": True, "interval": "45s"}


@pytest.mark.parametrize("on", [True, False])
def test_metrics_are_on_where_one_of_both_exporters_is(tmp_path: Path, *, on: bool) -> None:
    cluster = exporters("{enabled: false, collectionInterval: 45s}", f"{{enabled: {str(on).lower()}}}")
    assert metrics_of(tmp_path, cluster) == ({"pod_monitor": True} if on else None)


def test_gpus_are_those_of_the_pod_and_gres_adds_their_type(tmp_path: Path) -> None:
    text = """
nodesets:
  - {name: a, nodeConfig: {static: "CPUs=128 Gres=gpu:h100:8"}, slurmd: {resources: {cpu: 127, memory: 8Gi, gpu: 8}}}
  - {name: b, nodeConfig: {static: "Gres=gpu:mi300x:8"}, slurmd: {resources: {cpu: 8, memory: 8Gi, amd.com/gpu: 8}}}
  - name: c
    nodeConfig: {static: "CPUs=8 Gres=gpu:1g.10gb:7"}
    slurmd: {resources: {cpu: "8", memory: 8Gi, nvidia.com/mig-1g.10gb: 7}}
"""
    conversion = converted(tmp_path, text)
    a, b, c = conversion.cluster["node_sets"]

    assert (a["cpus"], a["gpus"]) == (128, {"count": 8, "type": "h100"})
    assert b["gpus"] == {"count": 8, "type": "mi300x", "resource": "amd.com/gpu"}
    assert c["gpus"] == {"mig": {"1g.10gb": 7}}
    assert not {entry.fate for entry in conversion.entries} & {Fate.UNKNOWN}
    assert fates(conversion, "nodesets[2].slurmd.resources.cpu") == {"": (Fate.TAKEN, ("node_sets[2].cpus",))}


def test_services_have_the_place_of_their_filter(tmp_path: Path) -> None:
    text = """
clusterName: hpc
k8sNodeFilters: [{name: ops, nodeSelector: {pool: ops}}]
slurmNodes:
  login: {size: 0}
  accounting:
    enabled: true
    k8sNodeFilterName: ops
    externalDB: {enabled: true, host: db, passwordSecretKeyRef: {name: db}}
    slurmdbd: {resources: {cpu: 1000m, memory: 3Gi}}
    slurmConfig: {accountingStorageEnforce: "limits", priorityWeightAge: 7}
  rest: {enabled: true, size: 2, k8sNodeFilterName: ops}
  exporter: {enabled: true, k8sNodeFilterName: ops}
"""
    cluster = converted(tmp_path, flux(text)).cluster

    place = {"node_selector": {"pool": "ops"}}
    resources = {"requests": {"cpu": "1000m", "memory": "3Gi"}, "limits": {"memory": "3Gi"}}
    assert cluster["accounting"]["slurmdbd"] == place | {"pod_resources": resources}
    assert cluster["rest"] == place | {"replicas": 2}
    assert cluster["metrics"] == place | {"pod_monitor": True}
    assert (cluster["accounting"]["enforce"], cluster["slurm"]["extra"]) == (["limits"], {"PriorityWeightAge": 7})
