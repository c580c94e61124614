"""The embedded Kubernetes starts from whatever there is, and leaves nothing: on a machine beside this one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import busybox
from tests.cluster.isolated import Machine, machine
from tests.waiting import wait_until
from tools.kube import cgroups
from tools.kube.debs import tool
from tools.kube.supervisor import Supervisor

pytestmark = pytest.mark.cluster

LEFT_OVER_PLACES = ("/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods")


@pytest.fixture(scope="module")
def box() -> Iterator[Machine]:
    with machine() as made:
        yield made


@pytest.fixture
def up(box: Machine) -> Machine:
    """The machine with the cluster up and a pod of a Deployment in it."""
    box.kubernetes("up")
    import_image = "import sys; from pathlib import Path; from tools.kube import EmbeddedKubernetes; "
    import_image += "EmbeddedKubernetes().import_image(Path(sys.argv[1]))"
    assert box.run(sys.executable, "-c", import_image, busybox.archive()).returncode == 0
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [busybox.container()]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    manifest = box.folder / "web.json"
    manifest.write_text(
        json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    )
    box.kubectl("apply", "-f", str(manifest))
    pods_run(box)
    return box


def pods_run(box: Machine) -> None:
    """Wait until both pods answer through a new exec: their status may be of before a crash."""

    def answers() -> bool:
        listed = json.loads(box.kubectl("get", "pods", "--selector=app=web", "--output=json"))["items"]
        names = [each["metadata"]["name"] for each in listed if not each["metadata"].get("deletionTimestamp")]
        kubectl = (box.kube.bin_dir / "kubectl", "--kubeconfig", box.kube.kubeconfig)
        return len(names) == 2 and all(
            box.run(*kubectl, "exec", name, "--", "wget", "-qO-", "http://127.0.0.1:8080").returncode == 0
            for name in names
        )

    wait_until(answers, "both pods answer")


def pids(box: Machine) -> dict[str, int]:
    supervisor = Supervisor(box.settings.run, box.settings.logs, Path("/dev/null"))
    names = [record.stem for record in box.settings.run.glob("*.json")]
    return {name: process.pid for name in names if (process := supervisor.process(name))}


def left_over(box: Machine) -> dict[str, object]:
    """Return all that the cluster could have left on its machine."""
    mounts = [line for line in box.sh("cat /proc/self/mounts").splitlines() if str(box.settings.state) in line]
    links = json.loads(box.run(tool("ip").path, "-json", "link", "show").stdout)
    existing = " ".join(place for place in LEFT_OVER_PLACES)
    return {
        "processes": box.processes(),
        "mounts": mounts,
        "links": sorted(link["ifname"] for link in links),
        "nft": box.run("env", *environment("nft"), tool("nft").path, "list", "tables").stdout,
        "cgroups": [folder for folder in box.kube._cgroup.folders if folder.exists()],
        "files": box.sh(f"find {existing} -mindepth 1 ! -path '/run/mount*' 2> /dev/null; true"),
        "state": box.settings.state.exists(),
        "forwarding": box.sh("cat /proc/sys/net/ipv4/ip_forward"),
    }


def environment(name: str) -> list[str]:
    return [f"{key}={value}" for key, value in tool(name).environment.items()]


def test_down_leaves_nothing_and_up_works_again(box: Machine) -> None:
    box.kubernetes("down")
    before = left_over(box)
    assert before["links"] == ["lo"]
    assert not before["processes"]
    box.kubernetes("up")
    assert left_over(box) != before
    said = box.kubernetes("down")
    assert left_over(box) == before
    for part in ("processes", "bridge soperator0", "nft table ip kube-proxy", "cgroups", "the cluster's data"):
        assert part in said


def test_down_with_pods_leaves_nothing(up: Machine) -> None:
    up.kubernetes("down")
    found = left_over(up)
    assert (found["processes"], found["mounts"], found["links"]) == (set(), [], ["lo"])
    assert (found["nft"], found["cgroups"], found["files"], found["state"]) == ("", [], "", False)


def test_down_removes_cgroups_that_slurm_made_at_the_top_and_leaves_those_of_before(box: Machine) -> None:
    hierarchy = cgroups.layout().hierarchies[0]
    before, during = hierarchy / f"slurm_before-{os.getpid()}", hierarchy / f"slurm_during-{os.getpid()}"
    box.kubernetes("down")
    before.mkdir()
    try:
        box.kubernetes("up")
        (during / "uid_2001").mkdir(parents=True)
        box.kubernetes("down")
        assert before.exists()
        assert not during.exists()
    finally:
        before.rmdir()


def test_up_after_kill_9_of_everything_brings_servers_pods_and_objects_back(up: Machine) -> None:
    up.kubectl("create", "configmap", "kept", "--from-literal=answer=42")
    up.kill_everything()
    up.kubernetes("up")
    assert up.kubectl("get", "configmap", "kept", "--output=jsonpath={.data.answer}") == "42"
    pods_run(up)
    up.kubectl("delete", "configmap", "kept")


def test_only_a_server_that_was_killed_is_started_again(up: Machine) -> None:
    before = pids(up)
    os.kill(before["kube-scheduler"], signal.SIGKILL)
    said = up.kubernetes("up")
    after = pids(up)
    assert "kube-scheduler is well" in said
    assert {name for name in before if before[name] != after[name]} == {"kube-scheduler"}


def test_servers_that_were_killed_come_back_to_pods_that_ran_on(up: Machine) -> None:
    uptime = "cat /proc/1/stat | cut -d' ' -f22"
    started = up.kubectl("exec", "deployment/web", "--", "sh", "-c", uptime)
    for pid in pids(up).values():
        os.kill(pid, signal.SIGKILL)
    up.kubernetes("up")
    pods_run(up)
    assert up.kubectl("exec", "deployment/web", "--", "sh", "-c", uptime) == started


def test_up_heals_a_bridge_that_was_removed(up: Machine) -> None:
    up.sh(f"{' '.join(environment('ip'))} {tool('ip').path} link delete {up.settings.bridge}")
    up.kubernetes("up")
    pods_run(up)


def test_up_puts_back_rules_that_were_removed(up: Machine) -> None:
    nft: list[str | Path] = ["env", *environment("nft"), tool("nft").path]
    before = up.run(*nft, "list", "tables").stdout
    assert up.run(*nft, "delete", "table", "ip", up.settings.table).returncode == 0
    up.kubernetes("up")
    assert sorted(up.run(*nft, "list", "tables").stdout.split("\n")) == sorted(before.split("\n"))


@pytest.mark.parametrize("moment", range(int(os.environ.get("SOAK", "0")) * 17 + 3))
def test_an_up_that_was_killed_at_any_moment_is_followed_by_one_that_works(box: Machine, moment: int) -> None:
    box.kubernetes("down")
    seconds = random.uniform(0, 5)  # noqa: S311 - any moment of a start (pytest-randomly seeds it)
    with box.start(sys.executable, "-m", "tools.kube", "up") as first:
        time.sleep(seconds)
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate(timeout=30)
    box.kubernetes("up")
    status = box.kubernetes("status")
    assert all("well" in line for line in status.splitlines()), f"run {moment}, killed after {seconds:.2f} s: {status}"


def test_a_port_that_another_program_has_is_named_with_that_program(box: Machine) -> None:
    box.kubernetes("down")
    listen = "import socket,sys; s=socket.create_server(('', 6443)); print('ready', flush=True); sys.stdin.read()"
    command = box.command(sys.executable, "-c", listen)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        other.stdout.readline()
        done = box.run(sys.executable, "-m", "tools.kube", "up")
        other.kill()
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert "tcp port 6443 is taken by python" in done.stdout
    assert str(other.pid) in done.stdout
    assert not box.processes()


def test_a_server_that_does_not_get_well_fails_with_its_last_words(box: Machine) -> None:
    box.kubernetes("down")
    box.settings.etcd_data.parent.mkdir(parents=True)
    box.settings.etcd_data.write_text("not a folder")
    done = box.run(sys.executable, "-m", "tools.kube", "up")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    box.kubernetes("down")  # which takes the spoilt data with it
    assert "etcd ended. The last lines of" in done.stdout
    assert "not a directory" in done.stdout


def test_one_who_waits_for_another_up_is_told_for_whom(box: Machine) -> None:
    box.kubernetes("down")
    with box.start(sys.executable, "-m", "tools.kube", "up") as first:
        wait_until(lambda: bool(box.processes()), "the first is at work")
        second = box.run(sys.executable, "-m", "tools.kube", "up")
        said, _ = first.communicate(timeout=120)
    assert first.returncode == second.returncode == 0, said + second.stdout
    assert "waiting for process" in second.stdout
    assert "kube up" in second.stdout


def test_outside_names_fail_at_once_where_no_nameserver_answers(up: Machine) -> None:
    started = time.monotonic()
    said = up.kubectl("exec", "deployment/web", "--", "sh", "-c", "nslookup debian.example 2>&1; true")
    assert "NXDOMAIN" in said
    assert time.monotonic() - started < 3


def test_pods_pass_a_firewall_that_drops_what_it_does_not_know(box: Machine, request: pytest.FixtureRequest) -> None:
    nft: list[str | Path] = ["env", *environment("nft"), tool("nft").path]
    for script in (
        "add table ip filter",
        "add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }",
        "add chain ip filter INPUT { type filter hook input priority 0; policy drop; }",
        'add rule ip filter INPUT iifname "lo" accept',
    ):
        assert box.run(*nft, script).returncode == 0
    try:
        before = box.run(*nft, "list", "table", "ip", "filter").stdout
        request.getfixturevalue("up")
        (one, two) = json.loads(box.kubectl("get", "pods", "--output=json"))["items"]
        reached = box.kubectl(
            "exec", one["metadata"]["name"], "--", "wget", "-qO-", f"http://{two['status']['podIP']}:8080"
        )
        assert reached.strip() == two["metadata"]["name"]
        box.kubernetes("down")
        assert box.run(*nft, "list", "table", "ip", "filter").stdout == before
    finally:
        box.run(*nft, "delete", "table", "ip", "filter")


NAMESERVER = """\
import socket
answer = bytes.fromhex("c00c00010001000000050004") + bytes([192, 0, 2, 7])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("127.0.0.53", 53))
    print("ready", flush=True)
    while True:
        query, client = server.recvfrom(512)
        end = query.index(b"\\0", 12) + 5
        is_address = query[end - 4 : end - 2] == b"\\0\\1"
        server.sendto(
            query[:2] + b"\\x81\\x80" + query[4:6] + (b"\\0\\1" if is_address else b"\\0\\0") + b"\\0\\0\\0\\0"
            + query[12:end] + (answer if is_address else b""), client)
"""


def test_pods_resolve_outside_names_where_the_machine_does(up: Machine) -> None:
    resolv_conf = up.folder / "resolv.conf"
    resolv_conf.write_text("nameserver 127.0.0.53\n")
    with up.start(sys.executable, "-c", NAMESERVER) as nameserver:
        assert nameserver.stdout
        assert nameserver.stdout.readline() == "ready\n"
        up.sh(f"mount --bind {resolv_conf} /etc/resolv.conf")
        try:
            up.kubernetes("up")
            said = up.kubectl("exec", "deployment/web", "--", "sh", "-c", "nslookup outside.example 2>&1; true")
            assert "192.0.2.7" in said
        finally:
            up.sh("umount /etc/resolv.conf")
            nameserver.kill()
