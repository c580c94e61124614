"""Pyxis in the input becomes `containers`; other SPANK plugins and settings of enroot get a reason."""

from pathlib import Path

import pytest

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.spec.cluster import parse_cluster
from tests.unit.convert.conversions import completed, converted

PLUG_STACK = """
    # plugins
    include /usr/share/pyxis/*
    required /usr/lib/spank_other.so level=3
"""
NODE_SETS = "nodesets: {cpu: {slurmd: {resources: {limits: {cpu: 4, memory: 8Gi}}}}}"


def accounts(conversion: Converted, part: str) -> set[tuple[Fate, str]]:
    return {(entry.fate, entry.text) for entry in conversion.entries if part in entry.leaf.path}


def test_pyxis_in_plugstack_conf_lets_jobs_run_in_images(tmp_path: Path) -> None:
    conversion = converted(tmp_path, f"clusterName: hpc\nconfigFiles:\n  plugstack.conf: |{PLUG_STACK}{NODE_SETS}\n")

    assert conversion.cluster["containers"] == {}
    assert {fate for fate, _ in accounts(conversion, "(/usr/share/pyxis/*)")} == {Fate.CHANGED}
    assert "containers: Pyxis is in use: jobs run in images with its options" in " ".join(conversion.report().split())
    assert {fate for fate, _ in accounts(conversion, "(/usr/lib/spank_other.so)")} == {Fate.NOT_POSSIBLE}
    parse_cluster(completed(conversion))


@pytest.mark.parametrize("text", ["optional /usr/lib/spank_other.so", "# include /usr/share/pyxis/*", ""])
def test_without_pyxis_no_job_runs_in_an_image(tmp_path: Path, text: str) -> None:
    conversion = converted(tmp_path, f"clusterName: hpc\nconfigFiles: {{plugstack.conf: '{text}'}}\n{NODE_SETS}\n")

    assert "containers" not in conversion.cluster


@pytest.mark.parametrize(
    ("argument", "fate"),
    [
        ("execute_entrypoint=1", Fate.NOT_POSSIBLE),
        ("execute_entrypoint=0", Fate.NOT_NEEDED),
        ("container_scope=job", Fate.NOT_POSSIBLE),
        ("runtime_path=/run/pyxis", Fate.NOT_NEEDED),
    ],
)
def test_arguments_of_pyxis_have_an_account_of_their_own(tmp_path: Path, argument: str, fate: Fate) -> None:
    text = f"required /usr/lib/spank_pyxis.so {argument}"
    conversion = converted(tmp_path, f"clusterName: hpc\nconfigFiles: {{plugstack.conf: '{text}'}}\n{NODE_SETS}\n")

    assert conversion.cluster["containers"] == {}
    ((found, _),) = accounts(conversion, f"({argument})")
    assert found is fate


def test_files_of_a_controller_are_those_of_its_config_maps(tmp_path: Path) -> None:
    conversion = converted(
        tmp_path,
        """
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: hpc}
spec: {configFileRefs: [{name: plugins}, {name: elsewhere}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plugins}
data: {plugstack.conf: "include /usr/share/pyxis/*", oci.conf: FileDebug=debug2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: others}
data: {plugstack.conf: "required /x.so"}
""",
    )
    assert conversion.cluster["containers"] == {}
    assert {fate for fate, _ in accounts(conversion, '["oci.conf"]')} == {Fate.NOT_POSSIBLE}
    assert {fate for fate, _ in accounts(conversion, "configFileRefs[1].name")} == {Fate.NOT_POSSIBLE}
    assert {fate for fate, _ in accounts(conversion, "ConfigMap/others: data")} == {Fate.NOT_NEEDED}


@pytest.mark.parametrize("pyxis", ["{}", "{pyxis: {required: false, useSquashfuse: true, containerImageSave: /data/}}"])
def test_soperator_always_has_pyxis(tmp_path: Path, pyxis: str) -> None:
    conversion = converted(tmp_path, f"clusterName: hpc\nslurmNodes: {{}}\nplugStackConfig: {pyxis}\n")

    assert conversion.cluster["containers"] == {}
    assert {fate for fate, _ in accounts(conversion, "pyxis.required")} == {Fate.CHANGED}
    assert {fate for fate, _ in accounts(conversion, "useSquashfuse") | accounts(conversion, "containerImageSave")} <= {
        Fate.NOT_POSSIBLE
    }


def test_settings_of_enroot_and_proxies_are_told_apart_from_other_volumes(tmp_path: Path) -> None:
    text = """
clusterName: hpc
nodesets:
  cpu:
    slurmd:
      resources: {limits: {cpu: 4, memory: 8Gi}}
      env: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}, {name: X, value: "1"}]
      volumeMounts: [{name: enroot, mountPath: /etc/enroot/enroot.conf, subPath: enroot.conf}]
    podSpec: {volumes: [{name: enroot, configMap: {name: enroot-config}}]}
"""
    conversion = converted(tmp_path, text)

    ((fate, reason),) = accounts(conversion, "volumeMounts[0].mountPath")
    assert fate is Fate.NOT_POSSIBLE
    assert "`containers` has mirrors" in reason
    ((_, proxy),) = accounts(conversion, "env[0]")
    assert "containers.proxy" in proxy
    assert accounts(conversion, "env[1]") != accounts(conversion, "env[0]")
