"""Files of other people's repositories, as they are or reduced to the lines that matter, and what their owners expect.

| file | from |
|---|---|
| values for SR-IOV and for the machine's network | a guide for BM.GPU.B4.8 of OKE |
| values for jobs next to pods | notes of SlinkyProject/slurm-bridge |
| resources for an external slurmctld | a customer's cluster with Karpenter |
| ports of slurmd | SlinkyProject/slurm-operator, docs for JupyterLab |
| ConfigMaps for a chart of any objects, and node sets | nebius/nebius-solutions-library, modules/slurm |
| values with a default set that nobody turned off | iambigmomma/slinky-on-doks |
| a template of values | iambigmomma/slinky-on-doks |
| values of the operator's forks | togethercomputer, giuliocalzo, pichiu: slurm-operator |
| two lines of values | Zhanyl-tech/slinky-gitops |

Left out, as the package converts no such versions: MartinVogtFHNW/argo_test (Slinky 0.3) and myelintek/soperator
(soperator 1.x), which are refused in words.
"""

from pathlib import Path

import pytest
import yaml

from soperator_pulumi.convert import Fate, convert
from soperator_pulumi.errors import ConversionError
from tests.unit.convert.conversions import converted, written
from tests.unit.convert.test_forms_of_others import NODE_SET, account
from tests.unit.convert.test_sources import fates, nodes

RESOURCES = "{cpu: 126000m, memory: 1579Gi, gpu: 8}"
TERRAFORM = """
resources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: terraform-fluxcd-values}
    data:
      values.yaml: |
        slurmCluster:
          enabled: true
          version: 3.0.2
          overrideValues:
            clusterName: soperator
            slurmNodes:
              accounting:
                enabled: true
                mariadbOperator:
                  enabled: true
                  storage:
                    ephemeral: false
                    volumeClaimTemplate:
                      accessModes: [ReadWriteOnce]
                      storageClassName: ssd
                      resources: {requests: {storage: 64Gi}}
              controller: {size: 1}
              login: {size: 2}
"""
NODE_SETS = f"""
nodesets:
  enabled: true
  releaseName: soperator-nodesets
  overrideValues:
    nodesets:
      - name: worker
        replicas: 16
        slurmd:
          resources: {RESOURCES}
          volumes:
            customVolumeMounts:
              - name: scripts
                mountPath: /opt/slurm_scripts/
                volumeSource: {{configMap: {{name: scripts}}}}
              - name: data
                mountPath: /mnt/jail.upper/data
                readOnly: true
                volumeSource: {{persistentVolumeClaim: {{claimName: data}}}}
              - name: sys-host
                mountPath: /mnt/jail.upper/sys-host
                volumeSource: {{hostPath: {{path: /sys, type: Directory}}}}
"""


def test_values_in_config_maps_of_a_chart_of_any_objects_are_one_cluster_with_the_node_sets(tmp_path: Path) -> None:
    found = convert([written(tmp_path, TERRAFORM, "cluster.yaml"), written(tmp_path, NODE_SETS, "node-sets.yaml")])

    assert (found.cluster["name"], nodes(found)) == ("soperator", [("worker", 16, 126)])
    assert found.cluster["login"]["replicas"] == 2
    assert Fate.UNKNOWN not in fates(found).values()


def test_a_config_map_that_a_release_names_is_read_once(tmp_path: Path) -> None:
    release = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: soperator-fluxcd}
spec:
  chart: {spec: {chart: helm-soperator-fluxcd}}
  valuesFrom: [{kind: ConfigMap, name: terraform-fluxcd-values}]
"""
    names = {"values.yaml": TERRAFORM, "release.yaml": release, "node-sets.yaml": NODE_SETS}
    found = convert([written(tmp_path, text, name) for name, text in names.items()])

    assert (found.cluster["name"], nodes(found)) == ("soperator", [("worker", 16, 126)])
    (entry,) = [entry for entry in found.entries if entry.leaf.path.endswith("overrideValues.clusterName")]
    assert entry.fate is Fate.TAKEN


def test_the_claim_of_the_database_keeps_its_size_and_class(tmp_path: Path) -> None:
    database = converted(tmp_path, TERRAFORM).cluster["accounting"]["database"]["mariadb_operator"]

    assert (database["size_gib"], database["storage_class"]) == (64, "ssd")


def test_there_is_one_slurmctld(tmp_path: Path) -> None:
    path = "ConfigMap/terraform-fluxcd-values, data.values.yaml: slurmCluster.overrideValues.slurmNodes.controller.size"

    assert account(converted(tmp_path, TERRAFORM), path) == (Fate.NOT_NEEDED, "there is one slurmctld")
    assert account(converted(tmp_path, TERRAFORM.replace("size: 1", "size: 2")), path)[0] is Fate.NOT_POSSIBLE


def test_a_volume_in_the_jail_of_soperator_is_a_submount_and_one_outside_is_not(tmp_path: Path) -> None:
    found = converted(tmp_path, NODE_SETS)
    mounts = "nodesets.overrideValues.nodesets[0].slurmd.volumes.customVolumeMounts"

    assert found.cluster["jail"]["submounts"] == [
        {"path": "/data", "existing_claim": "data", "read_only": True, "roles": ["worker"]}
    ]
    assert "outside the jail" in account(found, f"{mounts}[0].mountPath")[1]
    assert account(found, f"{mounts}[1].mountPath") == (Fate.CHANGED, "as jobs and sessions see it")
    assert 'got "/sys", which shows /sys' in account(found, f"{mounts}[2].mountPath")[1]


def test_ports_and_probes_of_a_container_are_read_by_slinky(tmp_path: Path) -> None:
    text = f"nodesets: {{cpu: {NODE_SET}}}\ncontroller: {{slurmctld: {{livenessProbe: {{periodSeconds: 5}}}}}}\n"
    tree = yaml.safe_load(text)
    tree["nodesets"]["cpu"]["slurmd"]["ports"] = [{"containerPort": 9999}]
    found = converted(tmp_path, yaml.safe_dump(tree))

    for path in ("nodesets.cpu.slurmd.ports[0].containerPort", "controller.slurmctld.livenessProbe.periodSeconds"):
        assert account(found, path) == (Fate.NOT_POSSIBLE, "containers of daemons have no such setting here")


@pytest.mark.parametrize(("switch", "fate"), [("true", Fate.NOT_POSSIBLE), ("false", Fate.NOT_NEEDED)])
def test_the_address_of_an_external_slurmctld_counts_if_it_is_external(tmp_path: Path, switch: str, fate: Fate) -> None:
    text = f"controller: {{external: {switch}, externalConfig: {{host: 203.0.113.4}}}}\nnodesets: {{cpu: {NODE_SET}}}\n"

    assert account(converted(tmp_path, text), "controller.externalConfig.host")[0] is fate


@pytest.mark.parametrize("text", ["task/cgroup", "task/cgroup,task/affinity"])
def test_the_plugins_of_tasks_are_named(tmp_path: Path, text: str) -> None:
    values = {"controller": {"extraConfMap": {"TaskPlugin": text.split(",")}}, "nodesets": {"cpu": {}}}
    why = account(converted(tmp_path, yaml.safe_dump(values)), "controller.extraConfMap.TaskPlugin[0]")

    assert why == (Fate.NOT_NEEDED, "slurm.constrain is cgroup, which has task/cgroup and task/affinity")


def test_a_node_set_that_only_the_chart_has_is_named(tmp_path: Path) -> None:
    text = f"nodesets: {{gpu: {{enabled: true, useResourceLimits: true, {NODE_SET[1:]}}}\n"
    remark = "The chart itself has the node set slinky, which the input does not turn off"

    assert remark in " ".join(converted(tmp_path, text).report().split())
    assert remark not in " ".join(
        converted(tmp_path, text.replace("nodesets: {", "nodesets: {slinky: {enabled: false}, ")).report().split()
    )


@pytest.mark.parametrize(
    ("limits", "image", "words"),
    [
        ("__GPU_VENDOR__.com/gpu: 8", "a/b", 'limits["__GPU_VENDOR__.com/gpu"] is a placeholder'),
        ("cpu: 8", "${REGISTRY}/slurmd", "nodesets.cpu.slurmd.image.repository is a placeholder, ${REGISTRY}/slurmd"),
    ],
)
def test_a_placeholder_in_a_key_or_within_a_value_is_refused(
    tmp_path: Path, limits: str, image: str, words: str
) -> None:
    slurmd = f"{{image: {{repository: '{image}'}}, resources: {{limits: {{{limits}}}}}}}"
    text = f"nodesets: {{cpu: {{slurmd: {slurmd}}}}}\n"
    with pytest.raises(ConversionError) as refusal:
        converted(tmp_path, text)
    assert words in str(refusal.value)


def test_a_variable_of_a_shell_is_no_placeholder(tmp_path: Path) -> None:
    text = "nodesets: {cpu: {slurmd: {env: [{name: PATH, value: '/opt/bin:${PATH}'}]}}}\n"
    scripts = 'prologScripts: {a: "#!/bin/sh\\necho ${SLURM_JOB_ID}\\n"}\n'

    assert converted(tmp_path, text + scripts).cluster["node_sets"][0]["name"] == "cpu"
