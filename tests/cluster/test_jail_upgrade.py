"""Another tree takes the jail's place, and goes again, while a job of two nodes and a session live in the first."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

import pytest

from tests.cluster import root_trees
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, deployed, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]  # its fixture lives a whole life

NEWER = root_trees.FORKY
CONFLICTING = root_trees.with_user(NEWER, "dave", 5006)
"""Has a user of a name that root gives another uid in the older tree."""

RELEASE = "sed -n s/^VERSION_CODENAME=//p /etc/os-release"
STEPS = f"""#!/bin/bash
while [ ! -e ~/stop ]; do
    srun --overlap -N2 {RELEASE} | sort | xargs echo >> ~/steps
    sleep 0.2
done
"""


@dataclass
class Life:
    """Observations before, between and after."""

    refused: str = ""
    """Output of `up` while the changes of users were to be kept."""
    active: list[str] = field(default_factory=list)
    """The active tree: at first, after the upgrade, after the rollback."""
    steps: list[set[str]] = field(default_factory=list)
    """Output of the job's steps meanwhile."""
    session: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    """Output of a new job about files that root had added."""
    job_state: str = ""
    conflict: str = ""
    after_conflict: str = ""


@pytest.fixture(scope="module")
def upgrading(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if kubernetes.target.embedded:
        for tree in (NEWER, CONFLICTING):
            tree.bring_to(kubernetes.target.embedded)
    jail = a_jail(JAIL, admin_shell=True, storage={"size_gib": 2})
    cluster = a_cluster(name=unique("upgrading"), jail=jail, login={"replicas": 2, **a_cluster()["login"]})
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("upgrading"), cluster)) as slurm:
        yield slurm


class Conversation:
    """A shell that is asked and answers in lines."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks, self._answers = asks, answers

    def ask(self, command: str) -> str:
        self._asks.write(f"{command}\n")
        self._asks.flush()
        return self._answers.readline().strip()


@contextmanager
def open_session(slurm: Slurm) -> Iterator[Conversation]:
    with slurm.ssh_session("exec sh") as session:
        assert session.stdin
        assert session.stdout
        yield Conversation(session.stdin, session.stdout)


@pytest.fixture(scope="module")
def life(upgrading: Slurm) -> Life:
    """Do it all once; the tests below look at what was seen."""
    slurm, seen = upgrading, Life()
    slurm.ssh("cat > steps.sh && rm -f stop steps", stdin=STEPS)
    job = int(slurm.ssh("sbatch --parsable -N2 -o /dev/null steps.sh").stdout)
    with open_session(slurm) as session:

        def look() -> None:
            """Note what everyone sees now, the job's next steps among them."""
            slurm.ssh(": > steps")
            wait_until(lambda: slurm.ssh("wc -l < steps").stdout.strip() not in {"0", "1"}, what="two steps more ran")
            seen.active.append(slurm.active_tree())
            seen.steps.append(set(slurm.ssh("cat steps").stdout.splitlines()))
            seen.session.append(session.ask(RELEASE))
            seen.logins.append(slurm.ssh(RELEASE).stdout.strip())
            seen.jobs.append(slurm.ssh(f"srun --overcommit -N2 {RELEASE} | sort | xargs echo").stdout.strip())

        look()
        slurm.wait_for_the_admin_shell()
        root = ("admin-0", "admin", "/bin/sh", "-ec")
        slurm.exec(*root, "printf '#!/bin/sh\\necho tool\\n' > /usr/local/bin/tool && chmod 755 /usr/local/bin/tool")
        slurm.exec(*root, "echo carried > /etc/site.conf && useradd --uid 5005 dave")

        slurm.cluster["jail"]["source"] = {"image": NEWER.reference}
        with pytest.raises(DeployError) as refusal:
            slurm.up()
        seen.refused = str(refusal.value)
        slurm.cluster["jail"]["changes"] = "carry_over"
        slurm.up()
        look()
        seen.carried = slurm.ssh("srun -N1 --overcommit sh -c 'tool; cat /etc/site.conf; id -u dave'").stdout.split()

        slurm.cluster["jail"]["source"] = {"image": CONFLICTING.reference}
        with pytest.raises(DeployError) as refusal:
            slurm.up()
        seen.conflict, seen.after_conflict = str(refusal.value), slurm.active_tree()

        slurm.cluster["jail"]["source"] = {"image": NEWER.reference}
        slurm.cluster["jail"]["active"] = seen.active[0]
        slurm.up()
        look()
    slurm.ssh("touch stop")
    seen.job_state = slurm.wait_for_job(job, "COMPLETED")["ExitCode"]
    return seen


def test_changes_of_users_are_listed_and_kept_unless_it_is_said_what_becomes_of_them(life: Life) -> None:
    assert "files in /usr/local/bin: 1 added (tool)" in life.refused
    assert "files in /etc: 1 added (site.conf)" in life.refused
    assert life.active[0] != life.active[1]


def test_new_logins_and_new_jobs_enter_the_new_tree(life: Life) -> None:
    assert (life.logins[:2], life.jobs[:2]) == (["bookworm", "forky"], ["bookworm bookworm", "forky forky"])


def test_an_open_session_stays_where_it_is(life: Life) -> None:
    assert life.session == ["bookworm"] * 3


def test_all_steps_of_a_running_job_stay_in_its_tree_on_both_nodes(life: Life) -> None:
    assert life.steps == [{"bookworm bookworm"}] * 3


def test_the_job_that_ran_through_it_all_ends_well(life: Life) -> None:
    assert life.job_state == "0:0"


def test_the_old_tree_is_switched_back_to(life: Life) -> None:
    assert (life.active[2], life.logins[2], life.jobs[2]) == (life.active[0], "bookworm", "bookworm bookworm")


def test_what_root_added_is_carried_over(life: Life) -> None:
    assert life.carried == ["tool", "carried", "5005"]


def test_accounts_that_do_not_go_together_are_refused_and_nothing_is_switched(life: Life) -> None:
    assert "dave" in life.conflict
    assert "5005" in life.conflict
    assert "5006" in life.conflict
    assert life.after_conflict == life.active[1]


def test_the_deployment_says_which_tree_is_active(life: Life, upgrading: Slurm) -> None:
    assert upgrading.deployer().outputs()["jail_tree"] == life.active[2]


@pytest.mark.parametrize("pod", ["login-0", "login-1"])
def test_every_login_pod_gives_sessions_in_the_same_jail(upgrading: Slurm, life: Life, pod: str) -> None:
    said = upgrading.ssh(
        f"{RELEASE}; hostname; echo $HOME; srun hostname", options=upgrading.by_way_of(pod)
    ).stdout.split()

    assert said[:3] == ["bookworm", pod, "/home/alice"]
    assert said[3].startswith("cpu-")
