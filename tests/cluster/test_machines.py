"""Several machines of the embedded Kubernetes, one of which ends without a word: on a machine of its own."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import busybox
from tests.cluster.isolated import Machine, environment, machine
from tests.waiting import wait_until
from tools.kube.cgroups import Cgroup
from tools.kube.debs import tool

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

NODES = ("n1", "n2", "n3")
UNANNOUNCED_SECONDS = (35, 75)
"""Kubernetes takes a machine for dead after 50 s of silence (--node-monitor-grace-period), on a busy one later."""


@pytest.fixture(scope="module")
def box() -> Iterator[Machine]:
    with machine() as made:
        yield made


@pytest.fixture
def three(box: Machine) -> Machine:
    """Three machines that run, with a pod on each, `pod-n1` and so on, and one Service for all of them."""
    box.kubernetes("up", "--machines", "3")
    box.import_busybox()
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}
    listed: list[dict[str, Any]] = [claim]
    for node in NODES:
        pod = busybox.pod(f"pod-{node}", labels={"app": node}, nodeName=node, volumes=[volume])
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": node},
            "spec": {"selector": {"app": node}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        listed += [pod, service]
    apply(box, *listed)
    box.kubectl("wait", "--for=condition=Ready", "--timeout=90s", *(f"pod/pod-{node}" for node in NODES))
    wait_until(lambda: all(answers(box, node) for node in NODES), "all pods answer")
    return box


def apply(box: Machine, *objects: dict[str, Any]) -> None:
    manifest = box.folder / "objects.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    box.kubectl("apply", "-f", str(manifest))


def run(box: Machine, node: str, script: str) -> str:
    """Run a shell script in a machine's pod and return what it prints, whatever its exit code."""
    kubectl = (box.kube.bin_dir / "kubectl", "--kubeconfig", box.kube.kubeconfig)
    return box.run(*kubectl, "exec", f"pod-{node}", "--", "sh", "-c", f"{script} 2>&1; true").stdout.strip()


def answers(box: Machine, node: str) -> bool:
    return run(box, node, "wget -qO- http://127.0.0.1:8080") == f"pod-{node}"


def address(box: Machine, node: str) -> str:
    return box.kubectl("get", "pod", f"pod-{node}", "--output=jsonpath={.status.podIP}")


def opens(box: Machine, node: str, host: str, port: int = 8080) -> bool:
    return run(box, node, f"nc -w 1 {host} {port} < /dev/null && echo open").endswith("open")


def ready(box: Machine, node: str) -> str:
    path = '{.status.conditions[?(@.type=="Ready")].status}'
    return box.kubectl("get", "node", node, f"--output=jsonpath={path}")


def processes(box: Machine, number: int) -> set[int]:
    return Cgroup(box.settings.further(number).cgroup).processes()


def links(box: Machine) -> set[str]:
    return {link["ifname"] for link in json.loads(box.run(tool("ip").path, "-json", "link", "show").stdout)}


def test_pods_of_all_machines_reach_each_other_services_and_the_api_server(three: Machine) -> None:
    for node in NODES:
        for other in NODES:
            assert opens(three, node, address(three, other)), f"{node} -> pod of {other}"
            assert opens(three, node, other, 80), f"{node} -> service of {other}"
        assert opens(three, node, "kubernetes.default", 443), node


def test_a_network_policy_holds_between_machines(three: Machine) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "only-n1"},
        "spec": {
            "podSelector": {"matchLabels": {"app": "n3"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "n1"}}}]}],
        },
    }
    target = address(three, "n3")
    apply(three, policy)
    try:
        wait_until(lambda: not opens(three, "n2", target), "n2 is shut out")
        assert opens(three, "n1", target)
    finally:
        three.kubectl("delete", "networkpolicy", "only-n1")
    wait_until(lambda: opens(three, "n2", target), "n2 is let in again")


def test_all_machines_see_one_volume(three: Machine) -> None:
    run(three, "n2", "echo from-n2 > /shared/file")
    assert {run(three, node, "cat /shared/file") for node in NODES} == {"from-n2"}


def test_a_pod_sees_its_own_machine_alone(three: Machine) -> None:
    """Processes and network of a machine are in namespaces of its own."""
    host = busybox.pod("host", script="sleep 600", nodeName="n2", hostNetwork=True, hostPID=True)
    apply(three, host)
    three.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/host")
    try:
        commands = three.kubectl("exec", "host", "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "kubelet" in commands
        assert "etcd" not in commands
        assert "--hostname-override=n1" not in commands
        assert three.kubectl("exec", "host", "--", "hostname").strip() == "n2"
    finally:
        three.kubectl("delete", "pod", "host")


def test_a_machine_that_is_killed_takes_its_pods_and_network_with_it(three: Machine) -> None:
    there, other = processes(three, 2), (three.settings.run / "n3.json").read_text()
    target = address(three, "n2")
    three.kubernetes("machine-kill", "--number", "2")
    assert not processes(three, 2)
    assert not any(Path(f"/proc/{pid}").exists() for pid in there)
    assert "timed out" in run(three, "n1", f"nc -w 2 {target} 8080 < /dev/null")  # no answer, not even a refusal
    assert answers(three, "n3")
    assert (three.settings.run / "n3.json").read_text() == other
    assert three.run(sys.executable, "-m", "tools.kube", "status").returncode == 1


def test_kubernetes_learns_of_the_end_by_silence_and_takes_the_machine_back(three: Machine) -> None:
    killed_at = time.monotonic()
    three.kubernetes("machine-kill", "--number", "2")
    wait_until(lambda: ready(three, "n2") == "Unknown", "n2 is taken for dead")
    seconds = time.monotonic() - killed_at
    assert UNANNOUNCED_SECONDS[0] < seconds < UNANNOUNCED_SECONDS[1]
    restarts = "--output=jsonpath={.status.containerStatuses[0].restartCount}"
    before = int(three.kubectl("get", "pod", "pod-n2", restarts))
    three.kubernetes("machine-start", "--number", "2")
    assert ready(three, "n2") == "True"
    wait_until(lambda: answers(three, "n2"), "the pod of n2 answers again")
    assert int(three.kubectl("get", "pod", "pod-n2", restarts)) == before + 1  # by a new container


def test_up_starts_a_machine_that_was_killed(three: Machine) -> None:
    three.kubernetes("machine-kill", "--number", "3")
    three.kubernetes("up")
    assert ready(three, "n3") == "True"
    wait_until(lambda: answers(three, "n3"), "the pod of n3 answers again")


def test_a_server_of_a_further_machine_that_was_killed_comes_back_without_a_boot(three: Machine) -> None:
    def started_ticks() -> str:
        return run(three, "n2", "cut '-d ' -f22 /proc/1/stat")

    before = started_ticks()
    for pid in processes(three, 2):
        if "/kubelet\0" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    assert "kubelet is well" in three.kubernetes("up") or ready(three, "n2") == "True"
    assert started_ticks() == before


def test_a_machine_made_later_has_the_images_of_the_first(box: Machine) -> None:
    box.kubernetes("down")
    box.kubernetes("up")
    box.import_busybox()
    box.kubernetes("up", "--machines", "2")
    wait_until(lambda: "default" in box.kubectl("get", "serviceaccounts"), "pods are allowed")
    apply(box, busybox.pod("late", nodeName="n2"))
    box.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/late")


@pytest.mark.parametrize("seconds", [0.3, 0.8, 1.5, 2.5])
def test_up_repairs_what_an_up_that_was_killed_has_left(box: Machine, seconds: float) -> None:
    box.kubernetes("up", "--machines", "3")
    box.kubernetes("machine-kill", "--number", "2")
    with box.start(sys.executable, "-m", "tools.kube", "up") as process:
        time.sleep(seconds)  # the time of the kill is what is tried
        process.kill()
    box.kubernetes("up")
    assert ready(box, "n2") == "True"
    assert box.run(sys.executable, "-m", "tools.kube", "status").returncode == 0


def test_down_leaves_nothing_of_any_machine(three: Machine) -> None:
    box = three
    folders = [folder for number in range(1, 4) for folder in cgroup_folders(box, number)]
    assert any(folder.exists() for folder in folders)
    said = box.kubernetes("down")
    assert "machine n2 with" in said
    assert not [str(folder) for folder in folders if folder.exists()]
    assert not [name for name in links(box) if name.startswith(box.settings.bridge)]
    assert not box.settings.state.exists()
    tables = box.run("env", *environment("nft"), tool("nft").path, "list", "tables").stdout
    assert "soperator" not in tables


def cgroup_folders(box: Machine, number: int) -> list[Any]:
    settings = box.settings if number == 1 else box.settings.further(number)
    return Cgroup(settings.cgroup).folders
