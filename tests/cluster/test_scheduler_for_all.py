"""What a user sends to slurmctld and slurmd, and their answers to the others meanwhile."""

import base64
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from soperator_pulumi.render.layout import CONTROLLER_HOST, SLURMCTLD_PORT, SLURMD_PORT
from tests.cluster.greed import NEVER_READ, large_jobs
from tests.cluster.slurm import Slurm
from tests.cluster.workers import job_on
from tests.unit.spank_plugin.compiler import toolchain
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

HELD = 4200
"""More connections than slurmctld itself takes at a time."""


def test_a_step_that_names_more_hosts_than_slurm_can_have_is_refused_before_they_are_made(slurm: Slurm) -> None:
    """Without the bound slurmctld looks for all 100,000, while everyone waits: 7 s, and hours with more brackets."""
    told = slurm.ssh("srun -N1 sh -c 'srun -x \"x[0-99999]\" true 2>&1 || true'").stdout

    assert "Invalid node name specified" in told
    log = slurm.kubernetes.run("logs", "controller-0", "-c", "slurmctld", "-n", slurm.namespace, "--tail=200")
    assert "hostlist_create on x[0-99999] error" in log
    assert "invalid node specified" not in log


def test_a_job_that_names_too_many_hosts_is_refused_in_words(slurm: Slurm) -> None:
    told = slurm.ssh("sbatch -H -x 'x[0-9999][0-9999]' -o /dev/null --wrap true 2>&1 || true").stdout
    assert "--exclude: more than 4096 names" in told


def test_a_job_with_an_environment_over_the_limit_is_refused_in_words(slurm: Slurm) -> None:
    large = "for number in $(seq 12); do export A$number=$(printf %0100000d 0); done"
    told = slurm.ssh(f"{large}; sbatch -H -o /dev/null --wrap true 2>&1 || true").stdout

    assert "environment: 12" in told
    assert "Allowed: 524288 (slurm.max_environment_kib)" in told


def test_a_script_over_the_limit_is_refused_in_words(slurm: Slurm) -> None:
    script = "(echo '#!/bin/sh'; head -c 300000 /dev/zero | tr '\\0' '#')"
    told = slurm.ssh(f"{script} | sbatch -H -o /dev/null 2>&1 || true").stdout
    assert "Allowed: 262144 (slurm.max_script_kib)" in told


def test_a_step_with_a_long_name_is_refused(slurm: Slurm) -> None:
    step = "srun --overlap --job-name=$(printf %01025d 0) true 2>&1"
    told = slurm.ssh(f"srun -N1 sh -c '{step} || true'").stdout
    assert "too long" in told


def test_a_step_with_arguments_over_the_limit_is_refused(slurm: Slurm) -> None:
    step = "srun --overlap true $(printf %070000d 0) $(printf %070000d 0) 2>&1"
    told = slurm.ssh(f"srun -N1 sh -c '{step} || true'").stdout
    assert "too long" in told


def test_slurmctld_answers_others_while_a_user_holds_connections_open(slurm: Slurm) -> None:
    held = f"for _ in $(seq {HELD}); do exec {{held}}<>/dev/tcp/{CONTROLLER_HOST}/{SLURMCTLD_PORT}; done"
    with slurm.ssh_session(f"bash -c 'ulimit -n {HELD + 100}; {held}; echo held; sleep 60'") as session:
        assert session.stdout
        assert session.stdout.readline() == "held\n"

        assert slurm.ssh("srun hostname", user="bob").stdout


CONNECTIONS_TO_SLURMD = 256
"""That of a worker's start.sh. Of those that have lost their requests, an eighth may stay."""


def test_slurmd_has_no_thread_for_every_connection_of_a_user(slurm: Slurm) -> None:
    """A thread is a process of the machine, which has a number of them."""
    most = CONNECTIONS_TO_SLURMD * 5 // 4
    held = f"for _ in $(seq {2 * most}); do exec {{held}}<>/dev/tcp/cpu-1/{SLURMD_PORT}; done"
    with slurm.ssh_session(f"bash -c 'ulimit -n {2 * most + 100}; {held}; echo held; sleep 60'") as session:
        assert session.stdout
        assert session.stdout.readline() == "held\n"

        threads = "ls /proc/$(pgrep -o -x slurmd)/task | wc -l"
        wait_until(lambda: int(slurm.exec("cpu-1", "slurmd", "sh", "-c", threads)) < most, "slurmd has few threads")
        assert slurm.ssh("srun -w cpu-1 hostname", user="bob").stdout == "cpu-1\n"


@pytest.mark.soak
def test_slurmctld_keeps_few_answers_that_a_user_does_not_read(slurm: Slurm) -> None:
    """Every answer takes as much memory as all jobs have."""
    slurm.ssh("bash -s", user="greedy", stdin=large_jobs(100))
    try:
        with slurm.ssh_session("srun -w cpu-0 --mem=100 python3 -", user="greedy") as session:
            assert session.stdin
            assert session.stdout
            session.stdin.write(NEVER_READ)
            session.stdin.close()
            said = session.stdout.readlines()
        assert said[-1:] == ["cut off\n"], said
        assert slurm.ssh("srun -w cpu-1 hostname", user="bob").stdout == "cpu-1\n"
    finally:
        slurm.exec("controller-0", "slurmctld", "scancel", "--user=greedy")


STOPPED = """
for number in 1 2 3 4 5; do sattach {job}.0 > attached.$number & done
for number in 1 2 3 4 5; do until [ -s attached.$number ]; do sleep 0.2; done; done
kill -STOP $(jobs -p) && echo stopped && sleep 600
"""
"""Clients of a step that have had its output, and don't answer any more."""


@pytest.mark.soak
def test_clients_that_do_not_answer_do_not_hold_the_node_of_a_step(slurm: Slurm) -> None:
    """Slurm itself asks every client for three minutes, one after the other."""
    slurm.ssh("rm -f over attached.*")
    job = job_on(slurm, "cpu-1", 'srun sh -c "while [ ! -e over ]; do echo up; sleep 1; done"')
    with slurm.ssh_session(f"bash -c {shlex.quote(STOPPED.format(job=job))}") as session:
        assert session.stdout
        assert session.stdout.readline() == "stopped\n"
        slurm.ssh("touch over")

        slurm.wait_for_job(job, "COMPLETED", timeout_seconds=120)


LARGE = """
import socket, struct, sys
for host, port in zip(sys.argv[1::2], sys.argv[2::2]):
    connection = socket.create_connection((host, int(port)), timeout=30)
    sent = 0
    try:
        connection.sendall(struct.pack("!I", 71 << 20))
        while sent < 71:
            connection.sendall(bytes(1 << 20))
            sent += 1
    except ConnectionError:
        pass
    print(host, "all" if sent == 71 else "cut off")
"""
"""Program that sends requests of 71 MiB."""


def test_a_request_that_would_fill_the_memory_of_a_daemon_is_not_read(slurm: Slurm) -> None:
    daemons = [CONTROLLER_HOST, str(SLURMCTLD_PORT), "cpu-0", str(SLURMD_PORT)]
    told = slurm.exec("login-0", "sshd", "python3", "-c", LARGE, *daemons)

    assert told.splitlines() == [f"{CONTROLLER_HOST} cut off", "cpu-0 cut off"]
    assert slurm.ssh("srun -w cpu-0 hostname").stdout == "cpu-0\n"


NO_LIST = f"""
import socket, struct
names = b"x[\\0"
passed_on = struct.pack("!HHHIHI", 42 << 8, 0x40, 2013, 0, 1, len(names)) + names  # to one node, without a signature
passed_on += struct.pack("!IHHHH", 3000, 16, 1, 0, 0)
connection = socket.create_connection(("cpu-0", {SLURMD_PORT}), timeout=10)
connection.sendall(struct.pack("!I", len(passed_on)) + passed_on)
connection.recv(1)
"""
"""Program that has slurmd pass a message on to what is not a list of nodes, in the form of Slurm 24.11."""


def test_a_message_that_is_passed_on_to_no_list_of_nodes_does_not_end_slurmd(slurm: Slurm) -> None:
    before = slurm.daemon("cpu-0")
    slurm.exec("login-0", "sshd", "python3", "-c", NO_LIST)

    assert slurm.ssh("srun -w cpu-0 hostname").stdout == "cpu-0\n"
    assert slurm.daemon("cpu-0") == before


def test_a_step_and_a_file_are_passed_on_from_node_to_node(slurm: Slurm) -> None:
    """All nodes but the first have the message from another one, which reads their answers."""
    script = "srun --treewidth=1 hostname; sbcast --treewidth=1 /bin/ls /tmp/passed-on; srun ls /tmp/passed-on"
    told = slurm.ssh(f"salloc -N2 -w cpu-[0-1] sh -c {shlex.quote(script)}").stdout

    assert sorted(told.split()) == ["/tmp/passed-on", "/tmp/passed-on", "cpu-0", "cpu-1"]


OTHERS_TYPES = "2004 2029 2058 5042 6001 6011"
"""Those of answers, and of requests to slurmd: slurmctld has no use for them from anyone."""

OF_SLURMD = "2004 2029 4005 5016 6011 6018"
"""Those of answers, and of what slurmctld and slurmstepd alone send to slurmd."""


@pytest.fixture
def damaged_messages(tmp_path: Path) -> bytes:
    """Return a library that has a client send damaged messages (damaged_messages.c)."""
    tools, source, library = toolchain(), Path(__file__).with_name("damaged_messages.c"), tmp_path / "library.so"
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-ldl"]
    command = [*tools.compiler, *flags, "-o", str(library), str(source)]
    subprocess.run(command, env={**os.environ, **tools.environment}, check=True, timeout=300)
    return library.read_bytes()


def restarts_of_controller(slurm: Slurm) -> dict[str, int]:
    """Return how often the containers have started again. A new slurmctld has the process id of the old one."""
    pod = slurm.api.read_namespaced_pod("controller-0", slurm.namespace)
    return {status.name: status.restart_count for status in pod.status.container_statuses or []}


@pytest.mark.soak
def test_damaged_messages_do_not_end_slurmctld(slurm: Slurm, damaged_messages: bytes) -> None:
    """Without the guard, one in some hundred ends Slurm 24.11 and 26.05."""
    before = restarts_of_controller(slurm)
    slurm.ssh("base64 -d > damaged.so", user="greedy", stdin=base64.b64encode(damaged_messages).decode())

    for seed, client in enumerate(["squeue", "sinfo", "sbatch --hold --wrap true", "scontrol show node"] * 2):
        damaging = f"MESSAGES=300 SEED={seed} TYPES={shlex.quote(OTHERS_TYPES)} LD_PRELOAD=./damaged.so"
        assert "300 messages" in slurm.ssh(f"{damaging} {client}", user="greedy", timeout_seconds=120).stdout
    try:
        for seed, client in enumerate(["sbatch --hold --wrap true", "scancel 1", "scontrol update jobid=1 nice=1"] * 2):
            damaging = f"MESSAGES=300 SEED={seed} LD_PRELOAD=./damaged.so"
            assert "300 messages" in slurm.ssh(f"{damaging} {client}", user="greedy", timeout_seconds=120).stdout
    finally:
        slurm.exec("controller-0", "slurmctld", "scancel", "--user=greedy")

    assert restarts_of_controller(slurm) == before
    assert slurm.ssh("srun hostname", user="bob").stdout


@pytest.mark.soak
def test_damaged_messages_do_not_end_slurmd(slurm: Slurm, damaged_messages: bytes) -> None:
    """Without the guard, one in a thousand ends Slurm 24.11 and 26.05."""
    before = slurm.daemon("cpu-0")
    slurm.ssh("base64 -d > damaged.so", user="greedy", stdin=base64.b64encode(damaged_messages).decode())
    slurm.ssh("sbatch -w cpu-0 -n1 --mem=200 -o /dev/null --wrap 'srun sleep 600'", user="greedy")
    try:
        wait_until(lambda: ".0 " in slurm.ssh("squeue --me -h -s -o '%i '", user="greedy").stdout, "a step runs")
        job = slurm.ssh("squeue --me -h -o %A", user="greedy").stdout.strip()
        clients = [f"sstat -j {job}", f"srun --jobid={job} --overlap -n1 true"]
        for seed, client in enumerate(clients * 2):
            damaging = f"MESSAGES=300 SEED={seed} TO_SLURMD=1 LD_PRELOAD=./damaged.so"
            assert "300 messages" in slurm.ssh(f"{damaging} {client}", user="greedy", timeout_seconds=120).stdout
            damaging = f"TYPES={shlex.quote(OF_SLURMD)} {damaging}"
            assert "300 messages" in slurm.ssh(f"{damaging} {client}", user="greedy", timeout_seconds=120).stdout
    finally:
        slurm.exec("controller-0", "slurmctld", "scancel", "--user=greedy")

    assert slurm.daemon("cpu-0") == before
    assert slurm.ssh("srun -w cpu-0 hostname", user="bob").stdout == "cpu-0\n"
