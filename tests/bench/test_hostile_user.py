"""Waiting of honest users while one user does all that slurmctld lets users do, against waiting without that user."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from soperator_pulumi.render.layout import CONTROLLER_HOST, SLURMCTLD_PORT
from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.cluster.slurm import JAIL, QUICK, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

USERS = size(50, 2)
"""Number of honest users."""
TASKS = size(1000, 20)
"""Number of tasks in a job array of the hostile user."""
AT_ONCE = size(16, 2)
"""Number of commands that the hostile user runs at a time. Their own work counts: on a small machine, they take the
processors from the commands of honest users, and from slurmctld."""

HOSTILE = "mallory"

OPEN = f"for _ in $(seq {size(300, 10)}); do exec {{held}}<>/dev/tcp/{CONTROLLER_HOST}/{SLURMCTLD_PORT}; done"

ATTACKS: Mapping[str, str] = {
    "asks all the time": "squeue",
    "submits and cancels job arrays": f"scancel $(sbatch --parsable -H -o /dev/null --array=1-{TASKS} --wrap true)",
    "submits and cancels the largest scripts": "scancel $(sbatch --parsable -H -o /dev/null < /tmp/large)",
    "submits jobs that wait": "sbatch -p other -o /dev/null --wrap true",
    "submits jobs that depend on another": "sbatch -p other -o /dev/null -d afterok:$SLURM_JOB_ID --wrap true",
    "submits jobs that exclude most nodes": "sbatch -p other -o /dev/null -x cpu-[1-4000] --wrap true",
    "holds connections open": f"({OPEN}; sleep 1)",
    "stops reading answers": "squeue --states=all & sleep 0.0$((RANDOM % 10)); kill -STOP $!; sleep 1; kill -KILL $!",
}
"""Commands that the hostile user repeats, several at a time, by the words that describe them."""

PREPARE = "(echo '#!/bin/sh'; head -c 250000 /dev/zero | tr '\\0' '#') > /tmp/large"

COMMANDS = {
    "squeue": "squeue",
    "sbatch": "sbatch --output=/dev/null --wrap=true",
    "srun": "srun true",
}

ASK = "; ".join(
    f"begin=$EPOCHREALTIME; {command} > /dev/null || exit; echo {name} $begin $EPOCHREALTIME"
    for name, command in COMMANDS.items()
)


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster with honest users, and a node on which the hostile one has a job."""
    bring_images(kubernetes)
    honest = [{"name": name, "uid": 3000 + number} for number, name in enumerate(honest_users())]
    described = a_cluster(
        name=unique("hostile"),
        jail=a_jail(JAIL),
        slurm={"constrain": "none", "extra": {**QUICK}},
        node_sets=[
            a_node_set("cpu", cpus=8, partitions=["main"]),
            a_node_set("other", partitions=["other"]),
        ],
        partitions=[{"name": "main", "default": True}, {"name": "other"}],
        users=[*honest, {"name": HOSTILE, "uid": 2666}],
    )
    made = Slurm(kubernetes, tmp_path_factory.mktemp("hostile"), described)
    try:
        made.up()
        yield made
    finally:
        made.destroy()


def honest_users() -> list[str]:
    return [f"honest{number}" for number in range(USERS)]


def waited(slurm: Slurm) -> dict[str, list[float]]:
    """Return the seconds that every honest user has waited for a command, by the command, and for a whole session."""
    found: dict[str, list[float]] = {name: [] for name in (*COMMANDS, "ssh")}
    for user in honest_users():
        answers: list[str] = []
        in_all = seconds(lambda: answers.extend(slurm.ssh(f"bash -c '{ASK}'", user=user).stdout.splitlines()))  # noqa: B023
        assert len(answers) == len(COMMANDS), f"A command of {user} failed."
        for line in answers:
            name, begin, end = line.split()
            found[name].append(float(end) - float(begin))
        found["ssh"].append(in_all - sum(found[name][-1] for name in COMMANDS))
    return found


@contextmanager
def attacked(slurm: Slurm, command: str) -> Iterator[None]:
    """Have the hostile user repeat a command in a job, until the end of the context."""
    repeated = f"while :; do {command}; done > /dev/null 2>&1 &"
    attack = f"{PREPARE}; for _ in $(seq {AT_ONCE}); do {repeated} done; echo begun; wait"
    with slurm.ssh_session("srun -p other -N1 bash -s", user=HOSTILE) as session:
        assert session.stdin
        assert session.stdout
        session.stdin.write(f"{attack}\n")
        session.stdin.flush()
        said: list[str] = []
        while said[-1:] not in (["begun\n"], [""]):  # srun says that it waits for the node
            said.append(session.stdout.readline())
        assert said[-1], "".join(said)
        try:
            yield
        finally:
            wait_until(lambda: is_over(slurm), what="no job of the hostile user is left", timeout_seconds=300)


def is_over(slurm: Slurm) -> bool:
    """Cancel the jobs of the hostile user, who may still submit some, and return True if none is left."""
    slurm.exec("controller-0", "slurmctld", "scancel", f"--user={HOSTILE}")
    return not slurm.exec("controller-0", "slurmctld", "squeue", "--noheader", f"--user={HOSTILE}")


def percentile_99(values: Sequence[float]) -> float:
    """Return the smallest value that 99 of 100 values don't exceed; of fewer than 100, the largest one."""
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


@pytest.mark.parametrize("attack", ATTACKS)
def test_honest_users_while_one_user_attacks_against_without(slurm: Slurm, attack: str) -> None:
    without = waited(slurm)
    with attacked(slurm, ATTACKS[attack]):
        during = waited(slurm)
    for name, theirs in without.items():
        ours = percentile_99(during[name])
        report(f"p99 of {name} while a user {attack}", [ours], [percentile_99(theirs)], "without", Goal(2.0))
