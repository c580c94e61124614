"""Faults of an embedded Kubernetes that runs, fixed by the next `up`: on a machine next to this one."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import busybox
from tests.cluster.isolated import Machine, environment, machine
from tools.kube.debs import tool
from tools.kube.supervisor import Supervisor

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


@pytest.fixture(scope="module")
def box() -> Iterator[Machine]:
    with machine() as made:
        made.up_with_pods()
        yield made


@pytest.fixture
def up(box: Machine) -> Machine:
    """The machine with the cluster up and two pods of a Deployment in it, also after a test that failed."""
    box.kubernetes("up")
    box.await_pods()
    return box


def pids(box: Machine) -> dict[str, int]:
    supervisor = Supervisor(box.settings.run, box.settings.logs, Path("/dev/null"))
    names = [record.stem for record in box.settings.run.glob("*.json")]
    return {name: process.pid for name in names if (process := supervisor.process(name))}


def test_up_after_kill_9_of_everything_brings_servers_pods_and_objects_back(up: Machine) -> None:
    up.kubectl("create", "configmap", "kept", "--from-literal=answer=42")
    up.kill_everything()
    up.kubernetes("up")
    assert up.kubectl("get", "configmap", "kept", "--output=jsonpath={.data.answer}") == "42"
    up.await_pods()
    up.kubectl("delete", "configmap", "kept")


def test_only_a_server_that_was_killed_is_started_again(up: Machine) -> None:
    before = pids(up)
    os.kill(before["kube-scheduler"], signal.SIGKILL)
    said = up.kubernetes("up")
    after = pids(up)
    assert "kube-scheduler is well" in said
    assert {name for name in before if before[name] != after[name]} == {"kube-scheduler"}


def test_servers_that_were_killed_come_back_to_pods_that_ran_on(up: Machine) -> None:
    def started_ticks() -> dict[str, str]:
        pods = json.loads(up.kubectl("get", "pods", "--selector=app=web", "--output=json"))["items"]
        names = [pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        return {name: up.kubectl("exec", name, "--", "cut", "-d ", "-f22", "/proc/1/stat") for name in names}

    before = started_ticks()
    for pid in pids(up).values():
        os.kill(pid, signal.SIGKILL)
    up.kubernetes("up")
    up.await_pods()
    assert started_ticks() == before


def test_up_heals_a_bridge_that_was_removed(up: Machine) -> None:
    up.sh(f"{' '.join(environment('ip'))} {tool('ip').path} link delete {up.settings.bridge}")
    up.kubernetes("up")
    up.await_pods()


def test_up_puts_back_rules_that_were_removed(up: Machine) -> None:
    nft: list[str | Path] = ["env", *environment("nft"), tool("nft").path]
    before = up.run(*nft, "list", "tables").stdout
    assert up.run(*nft, "delete", "table", "ip", up.settings.table).returncode == 0
    up.kubernetes("up")
    assert sorted(up.run(*nft, "list", "tables").stdout.split("\n")) == sorted(before.split("\n"))


def test_outside_names_fail_at_once_where_no_nameserver_answers(up: Machine) -> None:
    said = up.kubectl("exec", "deployment/web", "--", "sh", "-c", busybox.lookup("debian.example"))
    assert "NXDOMAIN" in said
    assert "; answered" in said


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
