"""The embedded Kubernetes starts from whatever there is, and leaves nothing: on a machine next to this one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.isolated import Machine, environment, machine
from tests.waiting import wait_until
from tools.kube import cgroups
from tools.kube.debs import tool

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

LEFT_OVER_PLACES = ("/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods")


@pytest.fixture(scope="module")
def box() -> Iterator[Machine]:
    with machine() as made:
        yield made


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


@dataclass(frozen=True)
class Ended:
    """Observations of a cluster that was started, had pods, and was ended."""

    before: dict[str, object]
    during: dict[str, object]
    after: dict[str, object]
    said: str
    """Output of `down`."""
    cgroups: dict[str, bool]
    """Presence of Slurm's cgroups at the top afterwards, of before and of meanwhile."""


@pytest.fixture(scope="module")
def ended(box: Machine) -> Ended:
    hierarchy = cgroups.hierarchies().folders[0]
    of_slurm = {moment: hierarchy / f"slurm_{moment}-{os.getpid()}" for moment in ("before", "during")}
    box.kubernetes("down")
    before = left_over(box)
    of_slurm["before"].mkdir()
    try:
        box.up_with_pods()
        (of_slurm["during"] / "uid_2001").mkdir(parents=True)
        during = left_over(box)
        said = box.kubernetes("down")
        return Ended(before, during, left_over(box), said, {name: path.exists() for name, path in of_slurm.items()})
    finally:
        of_slurm["before"].rmdir()


def test_down_with_pods_leaves_nothing(ended: Ended) -> None:
    found = ended.after
    assert ended.during != ended.before
    assert found == ended.before
    assert (found["processes"], found["mounts"], found["links"]) == (set(), [], ["lo"])
    assert (found["nft"], found["cgroups"], found["files"], found["state"]) == ("", [], "", False)


def test_down_says_what_it_has_removed(ended: Ended) -> None:
    for part in ("processes", "bridge soperator0", "nft table ip kube-proxy", "cgroups", "the cluster's data"):
        assert part in ended.said


def test_down_removes_cgroups_that_slurm_made_at_the_top_and_leaves_those_of_before(ended: Ended) -> None:
    assert ended.cgroups == {"before": True, "during": False}


@pytest.mark.parametrize("moment", range(20))
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
    assert "waiting up to" in second.stdout
    assert "kube up" in second.stdout


def test_pods_pass_a_firewall_that_drops_what_it_does_not_know(box: Machine) -> None:
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
        box.up_with_pods()
        (one, two) = json.loads(box.kubectl("get", "pods", "--output=json"))["items"]
        reached = box.kubectl(
            "exec", one["metadata"]["name"], "--", "wget", "-qO-", f"http://{two['status']['podIP']}:8080"
        )
        assert reached.strip() == two["metadata"]["name"]
        box.kubernetes("down")
        assert box.run(*nft, "list", "table", "ip", "filter").stdout == before
    finally:
        box.run(*nft, "delete", "table", "ip", "filter")
