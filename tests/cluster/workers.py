"""The nodes and jobs of a test's cluster, as Slurm sees them, and what its users and admins do to them."""

import copy
import json
import os
import signal
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until
from tools.engine import Result, StackChanges

OUT_OF_SERVICE = {"DRAIN", "DOWN", "FAIL", "UNKNOWN", "INVALID_REG"}
"""NOT_RESPONDING is not among them: Slurm reports it for a moment of a node that was just resumed."""
NO_TIME = {"timeout": "1s", "on_timeout": "abort"}
"""A policy under which a running job stops what is being done."""
UNTIL_DRAINED = "until scontrol show node $SLURMD_NODENAME | grep -q DRAIN; do sleep 0.5; done; sleep 2"
"""A job that ends by itself, but only some time after its node was drained: one that is not waited for is lost."""
AS_LONG_AS_IT_TAKES = {"timeout": "1s", "on_timeout": "wait", "max_wait": "2m"}


@dataclass(frozen=True)
class SlurmNode:
    """Output of `scontrol show nodes` for a node that tests ask for."""

    state: frozenset[str]
    reason: str
    set_by: str
    """Author of the reason."""
    since: int
    """When, in seconds since 1970."""

    @property
    def drained(self) -> bool:
        return "DRAIN" in self.state

    @property
    def in_service(self) -> bool:
        return not self.state & OUT_OF_SERVICE


def nodes(slurm: Slurm) -> dict[str, SlurmNode]:
    """Return all nodes that Slurm has, by name."""
    listed = json.loads(slurm.scontrol("show", "nodes", "--json"))["nodes"]
    return {
        item["name"]: SlurmNode(
            frozenset(item["state"]), item["reason"], item["reason_set_by_user"], item["reason_changed_at"]["number"]
        )
        for item in listed
    }


def in_service(slurm: Slurm) -> set[str]:
    """Return the names of the nodes that take jobs."""
    return {name for name, node in nodes(slurm).items() if node.in_service}


def drained(slurm: Slurm) -> dict[str, SlurmNode]:
    """Return the nodes that are drained or draining."""
    return {name: node for name, node in nodes(slurm).items() if node.drained}


def pods(slurm: Slurm, node_set: str = "cpu") -> dict[str, Any]:
    """Return the node set's pods by name, those that are being deleted among them."""
    listed = slurm.api.list_namespaced_pod(slurm.namespace).items
    return {pod.metadata.name: pod for pod in listed if pod.metadata.name.rpartition("-")[0] == node_set}


def drain(slurm: Slurm, names: Collection[str], reason: str) -> None:
    """Drain nodes as an admin does."""
    slurm.scontrol("update", f"nodename={','.join(names)}", "state=drain", f"reason={reason}")


def resume(slurm: Slurm, names: Collection[str]) -> None:
    """Put nodes in service as an admin does."""
    slurm.scontrol("update", f"nodename={','.join(names)}", "state=resume")


def job_on(slurm: Slurm, node: str, command: str = "sleep 600", options: str = "") -> int:
    """Return a job that runs on a node because it has asked for it, and so runs on no other."""
    job = slurm.submit(command, options=f"-w {node} -o /dev/null {options}")
    slurm.wait_for_job(job, "RUNNING")
    return job


def job_placed_on(slurm: Slurm, node: str, others: Collection[str], options: str = "") -> int:
    """Return a job that runs on a node although it may run on the others, which are drained as it is submitted."""
    drain(slurm, others, "not here")
    job = slurm.submit("sleep 600", options=f"-o /dev/null {options}")
    assert slurm.wait_for_job(job, "RUNNING")["NodeList"] == node
    resume(slurm, others)
    return job


def ended_well(slurm: Slurm, job: int) -> bool:
    """Say whether a job came to its own end, at the first try."""
    told = slurm.job(job)
    return (told["JobState"], told["ExitCode"], told["Restarts"]) == ("COMPLETED", "0:0", "0")


def ends_by(slurm: Slurm, job: int) -> str:
    """Return the pattern of the words that name the end of a job's time: with its date, if that is another day."""
    day, time = slurm.job(job)["EndTime"].split("T")
    return rf"ends by ({day} )?{time[:5]}\b"


def said(run: Result | StackChanges) -> str:
    """Return all messages of a run. Under which resource one stands depends on what else ran at that moment."""
    return "\n".join([*run.messages, *(line for change in run.changes for line in change.messages)])


def set_size(slurm: Slurm, replicas: int, **policy: object) -> None:
    """Describe another size of the first node set, and what becomes of jobs on nodes that leave for it."""
    node_set = slurm.cluster["node_sets"][0]
    node_set["replicas"] = replicas
    node_set["drain"] = {**node_set["drain"], **policy}


def scale(slurm: Slurm, replicas: int, **policy: object) -> Result:
    """Deploy another size of the first node set."""
    set_size(slurm, replicas, **policy)
    return slurm.up()


@contextmanager
def started_up(slurm: Slurm) -> Iterator[subprocess.Popen[str]]:
    """Run `up` while the test runs. It is killed, with all that it has started, at the end."""
    with slurm.start_up() as up:
        try:
            yield up
        finally:
            kill(up)


def kill(up: subprocess.Popen[str]) -> None:
    """Kill an engine with its program and providers."""
    if up.poll() is None:
        os.killpg(up.pid, signal.SIGKILL)


def put_back(slurm: Slurm, cluster: dict[str, Any]) -> None:
    """Bring a cluster back to what it was described as before a test, with every node idle and nothing to run."""
    slurm.exec("controller-0", "slurmctld", "scancel", "--user=alice")
    for reservation in json.loads(slurm.scontrol("show", "reservations", "--json"))["reservations"]:
        slurm.scontrol("delete", f"reservationname={reservation['name']}")
    if names := drained(slurm):
        resume(slurm, names)
    wanted = {f"{item['name']}-{i}" for item in cluster["node_sets"] for i in range(item["replicas"])}
    alive = {name for item in cluster["node_sets"] for name in pods(slurm, item["name"])}
    if slurm.cluster != cluster or in_service(slurm) != wanted or alive != wanted:
        if alive != {f"{item['name']}-{i}" for item in slurm.cluster["node_sets"] for i in range(item["replicas"])}:
            slurm.deployer().refresh()
        slurm.cluster = copy.deepcopy(cluster)
        slurm.up()
    idle = frozenset({"IDLE", "DYNAMIC_NORM"})
    wait_until(lambda: {name for name, node in nodes(slurm).items() if node.state == idle} == wanted, "all are idle")
