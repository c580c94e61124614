"""Another munge key and another host key while jobs start, run and end: none is lost, and no one is thrown out."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.slurm import Slurm
from tests.cluster.workers import in_service, pods, said
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

STREAM = """
sbatch --parsable -N3 -o /dev/null --wrap 'srun sleep 600'
while [ ! -e "$HOME/enough" ]; do
    sbatch --parsable -o /dev/null --wrap 'sleep 0.2' || echo failed
    srun --quiet true || echo failed
done
rm "$HOME/enough"; echo over
"""
"""Submits a job over all nodes, and then short ones until it is told to end; prints their ids."""


def munge_keys(slurm: Slurm) -> dict[str, str]:
    """Return the sum of the key that munged uses, by pod."""
    found = slurm.api.list_namespaced_pod(slurm.namespace).items
    running = [
        pod.metadata.name
        for pod in found
        if any(status.name == "munged" and status.state.running for status in pod.status.init_container_statuses or [])
    ]
    return {pod: slurm.exec(pod, "munged", "sha256sum", "/run/munge-key/munge.key").split()[0] for pod in running}


def identities(slurm: Slurm) -> dict[str, Any]:
    """Return what changes when a worker's pod or its slurmd is replaced; of running ones alone."""
    slurmds = {name: pod.status.container_statuses[0] for name, pod in pods(slurm).items()}
    return {name: slurmd.container_id for name, slurmd in slurmds.items() if slurmd.ready and slurmd.state.running}


def test_jobs_start_run_and_end_while_all_daemons_take_other_keys(workers: Slurm, tmp_path: Path) -> None:
    slurm = workers
    wait_until(lambda: len(identities(slurm)) == 3, "the workers of an earlier test are back")
    keys, before = munge_keys(slurm), identities(slurm)
    with slurm.ssh_session(STREAM) as session:
        assert session.stdout is not None
        ids = [session.stdout.readline().strip() for _ in range(4)]

        slurm.cluster["secrets"] = {"munge_key_version": 2, "ssh_host_key_version": 2}
        plan = slurm.deployer().preview()
        config = slurm.ssh_config("alice")
        former = shutil.copy(config.with_name(f"{config.name}.known_hosts"), tmp_path)
        result = slurm.up()

        slurm.ssh("touch enough")
        ids += session.stdout.read().split()
    assert ids.pop() == "over", "the session outlived both changes"
    assert "failed" not in ids

    text = f"{said(plan)}\n{said(result)}"
    assert f"a new munge key, which {len(keys)} pods load at the same moment" in text
    assert "a new host key of the login nodes" in text
    assert munge_keys(slurm).keys() == keys.keys()
    assert not {*munge_keys(slurm).values()} & {*keys.values()}
    assert len({*munge_keys(slurm).values()}) == 1
    assert identities(slurm) == before

    for worker in before:
        both = "munge -n --socket=/run/munge/jobs/munge.socket.2 | unmunge"
        assert "Success" in slurm.exec(worker, "slurmd", "sh", "-c", both), "jobs have the key of the daemons"

    whole, *short = map(int, ids)
    for job in short:
        slurm.wait_for_job(job, "COMPLETED")
    assert slurm.job(whole)["JobState"] == "RUNNING"
    slurm.scontrol("requeuehold", str(whole))
    assert in_service(slurm) == {"cpu-0", "cpu-1", "cpu-2"}
    assert "State=UP" in slurm.scontrol("show", "partitions")

    refused = slurm.ssh("true", options=["-o", f"UserKnownHostsFile={former}"], check=False)
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
