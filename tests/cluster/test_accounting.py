"""Accounting that is switched on in a living cluster: slurmdbd, its MariaDB, and the answers of sacct and sreport."""

import base64
import copy
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from soperator_pulumi.errors import ConfigRefusedError
from soperator_pulumi.lifecycle.secret_files import SecretFilesProvider
from soperator_pulumi.render import layout
from tests.cluster.slurm import SMALL, Slurm, a_cluster, a_node_set, bring_images, deployed, unique
from tests.conftest import Kubernetes
from tests.soak import SOAK, times
from tests.waiting import wait_until
from tools import paths

pytestmark = pytest.mark.cluster

ACCOUNTING = {
    "database": {"own": {"pod_resources": SMALL, "storage": {"size_gib": 1}}},
    "slurmdbd": {"pod_resources": SMALL},
    "dump": {"keep": 1, "storage": {"size_gib": 1}, "pod_resources": SMALL},
    "store": ["job_script", "job_env"],
}
USERS = [
    {"name": "alice", "uid": 2001, "shell": "/bin/sh"},
    {"name": "bob", "uid": 2002, "shell": "/bin/sh"},
]

_REPORTS, _, _PRIORITIES = (paths.ROOT / "docs" / "accounting.md").read_text().partition("## Priorities")
(_DESCRIBED,) = re.findall(r"```yaml\n(.*?)```", _PRIORITIES, re.DOTALL)
(_COMMANDS,) = re.findall(r"```sh\n(.*?)```", _PRIORITIES, re.DOTALL)
(_COMPLETED,) = re.findall(r"extra: (\{JobCompType: .*\})", _REPORTS)
COMPLETED = yaml.safe_load(_COMPLETED)
"""Parameters on the page, by which slurmctld writes a line for each completed job."""
PAGE = yaml.safe_load(_DESCRIBED)["config"]["soperator:cluster"]
"""The description on the page about accounting, of a cluster with priorities."""


PYTHON = (*layout.JAIL_TOOLS[:2], "-c")

HOLDER = f"""
import socket, subprocess
held = [socket.create_connection(("{layout.ACCOUNTING_HOST}", {layout.SLURMDBD_PORT}), timeout=10) for _ in range(150)]
command = "SLURM_CONF_SERVER={layout.CONTROLLER_HOST} sacctmgr --noheader --parsable2 show cluster format=cluster"
print(subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60).stdout.strip())
"""
"""Program that holds more connections than slurmdbd has threads, and asks slurmdbd meanwhile."""

STRANGER = f"""
import socket, struct
body = struct.pack("!HI4sHH", 42 << 8, 4, b"hpc", 0, 1)
for kind, body in ((6500, body), (1008, b"")):
    begins = struct.pack("!HHHHIHHH", 6500, 42 << 8, 0x40, kind, len(body), 0, 0, 0) + body  # without a signature
    connection = socket.create_connection(("{layout.ACCOUNTING_HOST}", {layout.SLURMDBD_PORT}), timeout=10)
    connection.sendall(struct.pack("!I", len(begins)) + begins)
    connection.recv(1)
"""
"""Program that begins connections to slurmdbd with messages that name no user, in the form of Slurm 24.11."""


class Accounted(Slurm):
    """A cluster whose accounting was switched on while a job ran."""

    running: int
    """A job that ran before there was accounting."""
    state_of_running: str
    """State of that job once there was accounting."""
    foreseen: tuple[object, ...]
    """Changes that the next preview foresaw then."""

    def sacctmgr(self, *arguments: str) -> str:
        return self.exec("accounting-0", "slurmdbd", "sacctmgr", "--immediate", "--noheader", "--parsable2", *arguments)

    def sacct(self, *arguments: str, check: bool = True) -> list[list[str]]:
        """Return the rows of sacct, as alice has them in the jail."""
        words = " ".join(["sacct --noheader --parsable2 --allocations --starttime=now-1hours", *arguments])
        return [line.split("|") for line in self.ssh(words, check=check).stdout.splitlines()]

    def wait_for_record(self, job: int, *fields: str, state: str = "COMPLETED") -> list[str]:
        """Wait until sacct shows the end of a job, and return these fields of it.

        Another test may have stopped the database, which slurmdbd then still has to reach again.
        """
        rows = f"--jobs={job} --format=state,{','.join(fields)}"
        shown: list[list[str]] = []

        def is_shown() -> bool:
            shown[:] = self.sacct(rows, check=False)
            return any(row[0] == state for row in shown)

        wait_until(is_shown, what=f"sacct shows that job {job} is {state}")
        return shown[0][1:]


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounted]:
    """A cluster that runs a job without accounting, and gets accounting then."""
    bring_images(kubernetes)
    folder = Path(tmp_path_factory.mktemp("slurm"))
    with deployed(Accounted(kubernetes, folder, a_cluster(name=unique("accounting"), users=USERS))) as slurm:
        slurm.running = slurm.submit("sleep 3600")
        slurm.wait_for_job(slurm.running, "RUNNING")
        slurm.cluster["accounting"] = {**ACCOUNTING, **PAGE["accounting"]}
        slurm.cluster["users"] = [{**user, "shell": "/bin/sh"} for user in PAGE["users"]]
        slurm.cluster["partitions"] = PAGE["partitions"]
        slurm.cluster["node_sets"] = [a_node_set("cpu", replicas=2, partitions=["main", "urgent"])]
        slurm.cluster["slurm"]["extra"] |= {**PAGE["slurm"]["extra"], **COMPLETED}
        slurm.up()
        slurm.foreseen = slurm.deployer().preview().changed
        slurm.state_of_running = slurm.job(slurm.running)["JobState"]
        slurm.ssh(f"scancel {slurm.running}")
        yield slurm


def test_a_job_is_in_sacct_with_its_user_account_resources_and_exit_code(slurm: Accounted) -> None:
    job = slurm.submit("exit 3")

    fields = slurm.wait_for_record(job, "user", "account", "exitcode", "alloctres", state="FAILED")

    assert fields[:3] == ["alice", "physics", "3:0"]
    assert {"cpu=1", "node=1"} <= set(fields[3].split(","))
    lines = slurm.exec("controller-0", "slurmctld", "cat", COMPLETED["JobCompLoc"]).splitlines()
    (line,) = (line for line in lines if line.startswith(f"JobId={job} "))
    assert {"UserId=alice(2001)", "JobState=FAILED", "ExitCode=3:0"} <= set(line.split())


def test_the_script_and_the_environment_of_a_job_are_in_its_record(slurm: Accounted) -> None:
    job = slurm.submit("echo recorded", options="--output=/dev/null --export=ALL,GREETING=hello")
    slurm.wait_for_record(job, "user")

    def stored(option: str) -> list[str]:
        return slurm.ssh(f"sacct --jobs={job} {option}").stdout.splitlines()

    wait_until(lambda: "echo recorded" in stored("--batch-script"), what="sacct has the script")
    wait_until(lambda: "GREETING=hello" in stored("--env-vars"), what="sacct has the environment")


def test_a_job_from_before_runs_on_and_gets_its_record(slurm: Accounted) -> None:
    assert slurm.state_of_running == "RUNNING"
    assert slurm.wait_for_record(slurm.running, "user", state="CANCELLED by 2001") == ["alice"]


def test_the_state_of_slurmctld_has_the_id_that_the_database_gives(slurm: Accounted) -> None:
    name = slurm.cluster["name"]
    query = "select id from slurm_acct_db.cluster_table where deleted = 0"
    recorded = slurm.exec("database-0", "mariadb", "mariadb", "--user=root", "-N", "-e", query).strip()

    state = slurm.exec("controller-0", "slurmctld", "cat", "/var/spool/slurmctld/clustername")

    assert state == f"{name}|{recorded}"


def test_no_connection_to_the_database_waits_for_a_name_server(slurm: Accounted) -> None:
    assert sql(slurm, "SELECT @@skip_name_resolve").strip() == "1"


def test_slurmdbd_answers_others_while_a_user_holds_connections_open(slurm: Accounted) -> None:
    answer = slurm.exec("login-0", "sshd", "python3", "-c", HOLDER)

    assert answer.strip() == slurm.cluster["name"]


def restarts_of_slurmdbd(slurm: Accounted) -> int:
    pod = slurm.api.read_namespaced_pod("accounting-0", slurm.namespace)
    return sum(status.restart_count for status in pod.status.container_statuses if status.name == "slurmdbd")


def test_a_connection_that_names_no_user_does_not_end_slurmdbd(slurm: Accounted) -> None:
    before = restarts_of_slurmdbd(slurm)
    slurm.exec("login-0", "sshd", "python3", "-c", STRANGER)

    assert "alice" in slurm.ssh("sacctmgr --noheader show user format=user").stdout
    assert restarts_of_slurmdbd(slurm) == before


def test_a_mariadb_that_is_stopped_is_not_ready_until_it_answers_again(slurm: Accounted) -> None:
    def is_ready() -> bool:
        statuses = slurm.api.read_namespaced_pod("database-0", slurm.namespace).status.container_statuses
        return all(status.ready for status in statuses)

    wait_until(is_ready, "MariaDB is ready")
    slurm.exec("database-0", "mariadb", "pkill", "-STOP", "-x", "mariadbd")
    try:
        wait_until(lambda: not is_ready(), "the pod is not ready", timeout_seconds=60)
    finally:
        slurm.exec("database-0", "mariadb", "pkill", "-CONT", "-x", "mariadbd")
    wait_until(is_ready, "the pod is ready again")


def test_users_of_the_spec_have_their_accounts(slurm: Accounted) -> None:
    rows = slurm.sacctmgr("show", "associations", f"cluster={slurm.cluster['name']}", "format=account,user").split()

    assert {"root|root", "default|", "physics|alice", "biology|bob"} <= {*rows}


def test_a_user_who_was_added_inside_the_jail_gets_the_default_account(slurm: Accounted) -> None:
    line = "Carol:x:2003:2003::/home/Carol:/bin/sh"
    slurm.exec("controller-0", "users", *PYTHON, f"open('/jail/active/etc/passwd', 'a').write('{line}\\n')")
    show = ("show", "associations", "user=Carol", "format=account,user")

    wait_until(lambda: slurm.sacctmgr(*show).split() == ["default|Carol"], what="Carol has an association")


def test_the_next_deployment_changes_nothing(slurm: Accounted) -> None:
    assert slurm.foreseen == ()


def test_a_job_of_an_account_that_the_user_does_not_have_is_refused(slurm: Accounted) -> None:
    refused = slurm.ssh("sbatch --account=biology --wrap true", check=False)

    assert refused.returncode != 0
    assert "Invalid account" in refused.stderr


def test_priorities_are_those_of_the_page(slurm: Accounted) -> None:
    for command in _COMMANDS.splitlines():
        slurm.exec("accounting-0", "slurmdbd", *command.split())

    # A limit holds a job.
    first = slurm.submit("sleep 3600", options="--nodes=2 --exclusive")
    slurm.wait_for_job(first, "RUNNING")
    second = slurm.submit("true")
    wait_until(lambda: slurm.job(second)["Reason"] == "AssocGrpJobsLimit", what="the second job is held")
    # A job of the QoS and partition for urgent ones preempts another.
    urgent = slurm.submit("true", options="--partition=urgent --qos=urgent --nodes=2 --exclusive", user="bob")
    assert slurm.wait_for_record(urgent, "account", "qos") == ["biology", "urgent"]
    wait_until(lambda: slurm.job(first)["Restarts"] == "1", what="the first job was requeued")
    # The shares of both accounts are those that were set.
    rows = slurm.ssh("sshare --all --noheader --parsable2 --format=account,user,normshares").stdout.splitlines()
    shares = {(account.strip(), user): float(share) for account, user, share in (row.split("|") for row in rows)}
    assert shares["physics", ""] / shares["biology", ""] == pytest.approx(70 / 30, rel=0.01)
    assert shares["physics", "alice"] == 1
    slurm.ssh(f"scancel {first} {second}")
    wait_until(lambda: "RUNNING" not in slurm.job(first)["JobState"], what="the nodes are free")
    slurm.sacctmgr("modify", "account", "physics", "set", "GrpJobs=-1")


def test_slurmdbd_sums_the_usage_of_users(slurm: Accounted) -> None:
    job = slurm.submit("sleep 2")
    slurm.wait_for_record(job, "account")
    # slurmdbd sums an hour when it is over, and the last hour by itself: the job is made one of the hour before.
    hour = int(time.time()) // 3600 * 3600 - 3600
    cluster = f"slurm_acct_db.`{slurm.cluster['name']}"
    earlier = ", ".join(
        f"time_{what} = {hour} - 100 + time_{what} - time_start" for what in ("submit", "eligible", "end")
    )
    sql(slurm, f"UPDATE {cluster}_job_table` SET {earlier}, time_start = {hour} - 100 WHERE id_job = {job}")  # noqa: S608
    # sreport answers for hours alone in which the cluster was registered.
    registered = "node_name = '' AND time_end = 0"
    sql(slurm, f"UPDATE {cluster}_event_table` SET time_start = {hour - 3600} WHERE {registered}")  # noqa: S608
    slurm.sacctmgr("rollup", _time(hour - 3600), _time(hour))

    owners = f"{cluster}_assoc_usage_hour_table` u JOIN {cluster}_assoc_table` a ON u.id = a.id_assoc"
    alices = f"a.user = 'alice' AND u.id_tres = 1 AND u.time_start = {hour - 3600}"
    cpu_seconds = sql(slurm, f"SELECT alloc_secs FROM {owners} WHERE {alices}")  # noqa: S608
    assert 2 <= int(cpu_seconds) < 100
    period = [f"start={_time(hour - 3600)}", f"end={_time(hour)}"]
    report = ["cluster", "AccountUtilizationByUser", *period, "users=alice", "format=account,login,used"]
    options = ["--noheader", "--parsable2", "-t", "Seconds"]
    reported = slurm.exec("accounting-0", "slurmdbd", "sreport", *options, *report)
    assert reported.split() == [f"physics|alice|{cpu_seconds.strip()}"]


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def test_every_job_has_one_record_though_slurmdbd_and_its_database_are_killed(slurm: Accounted) -> None:
    array = slurm.submit("true", options="--array=1-100 -o /dev/null")
    for pod in ("accounting-0", "database-0"):
        slurm.api.delete_namespaced_pod(pod, slurm.namespace, grace_period_seconds=0)
    rows = f"--jobs={array} --array --duplicates --format=jobid,state"

    def ended() -> list[str]:
        return [row[0] for row in slurm.sacct(rows, check=False) if row[1:] == ["COMPLETED"]]

    def seen() -> str:
        rows_by_state = Counter(row[1] for row in slurm.sacct(rows, check=False))
        queue = slurm.exec("controller-0", "slurmctld", "squeue", f"--jobs={array}", "--noheader", "--format=%T %r")
        (unsent,) = re.findall("DBD Agent queue size: .*", slurm.exec("controller-0", "slurmctld", "sdiag"))
        pods = slurm.kubernetes.run("get", "pods", "--namespace", slurm.namespace)
        return f"sacct has {dict(rows_by_state)}, squeue {Counter(queue.splitlines())}; {unsent}; {pods}"

    # A container that starts while the killed one still has its files fails, and Kubernetes waits 5 minutes at most.
    wait_until(lambda: len(ended()) >= 100, what="sacct shows 100 ends of jobs,", timeout_seconds=600, seen=seen)
    assert sorted(ended()) == sorted(f"{array}_{task}" for task in range(1, 101))


# -- the password ---------------------------------------------------------------------------------------------------

JOBS = times(40, 400)
KILLED_AFTER = [None, *range(0, 16, 2)] if SOAK else [None]
"""Seconds after which a rotation is killed; None for the moment at which both passwords are accepted."""


def sql(slurm: Accounted, statement: str) -> str:
    """Return the rows of a statement, as the administrator gets them by the socket."""
    client = ["mariadb", "--no-defaults", "--user=root", "--skip-column-names", "--raw", "-e", statement]
    return slurm.exec("database-0", "mariadb", *client)


def accepted_passwords(slurm: Accounted) -> int:
    """Return the number of passwords that slurmdbd's account accepts."""
    row = sql(slurm, "SELECT Priv FROM mysql.global_priv WHERE User = 'slurm' AND Host = '%'")
    return row.count("mysql_native_password")


def rotate(slurm: Accounted) -> None:
    """Describe the cluster with another password."""
    accounting = copy.deepcopy(slurm.cluster["accounting"])
    own = accounting["database"]["own"]
    own["password_version"] = own.get("password_version", 1) + 1
    slurm.cluster["accounting"] = accounting


def kill_rotation(slurm: Accounted, seconds: float | None) -> None:
    """Begin `up`, and kill it with all that it has started."""
    with slurm.start_up() as up:
        if seconds is None:
            wait_until(lambda: accepted_passwords(slurm) == 2, what="both passwords are accepted")
        else:
            with suppress(subprocess.TimeoutExpired):
                up.wait(seconds)
        with suppress(ProcessLookupError):
            os.killpg(up.pid, signal.SIGKILL)


@pytest.mark.parametrize("seconds", KILLED_AFTER)
def test_a_password_is_rotated_while_jobs_end_and_no_record_is_lost_wherever_the_run_is_killed(
    slurm: Accounted, seconds: float | None
) -> None:
    array = slurm.submit("sleep 0.$((SLURM_ARRAY_TASK_ID % 10))", options=f"--array=1-{JOBS} --output=/dev/null")
    rotate(slurm)
    kill_rotation(slurm, seconds)

    slurm.up()

    assert accepted_passwords(slurm) == 1
    rows = f"--jobs={array} --format=jobid,state"
    expected = sorted([f"{array}_{task}", "COMPLETED"] for task in range(1, JOBS + 1))
    wait_until(lambda: sorted(slurm.sacct(rows)) == expected, what="each job is recorded once", timeout_seconds=240)
    assert slurm.deployer().up().changed == ()


def test_a_password_that_the_database_refuses_leaves_slurmdbd_on_the_former_one(slurm: Accounted) -> None:
    secret = slurm.api.read_namespaced_secret("slurmdbd-config", slurm.namespace)
    former = {name: base64.b64decode(text).decode() for name, text in secret.data.items()}
    wrong = re.sub("(?<=^StoragePass=).*", "no-such-hunter2", former["slurmdbd.conf"], flags=re.MULTILINE)
    instance = secret.metadata.labels["app.kubernetes.io/instance"]
    props = {
        "kind": "Secret",
        "namespace": slurm.namespace,
        "owner": "test",
        "name": "slurmdbd-config",
        "labels": secret.metadata.labels,
        "annotations": {},
        "files": {**former, "slurmdbd.conf": wrong},
        "selector": {"app.kubernetes.io/instance": instance},
        "readers": [{"component": "accounting", "container": "slurmdbd"}],
        "after_sync": "slurmdbd",
        "kubeconfig": str(slurm.kubernetes.kubeconfig),
        "context": slurm.kubernetes.target.context,
    }
    id_ = secret.metadata.annotations["soperator-pulumi/resource"]
    with pytest.raises(ConfigRefusedError, match="Access denied for user 'slurm'@") as refused:
        SecretFilesProvider().update(id_, {"known_good": former}, props)
    assert "The old files are in effect again." in str(refused.value)
    assert "hunter2" not in str(refused.value)
    live = slurm.api.read_namespaced_secret("slurmdbd-config", slurm.namespace)
    assert live.data == secret.data
    assert (
        live.metadata.annotations["soperator-pulumi/in-force"]
        == secret.metadata.annotations["soperator-pulumi/in-force"]
    )
    wait_until(lambda: slurmdbd_is_ready(slurm), what="Kubernetes sees that slurmdbd answers again")


def slurmdbd_is_ready(slurm: Accounted) -> bool:
    statuses = slurm.api.read_namespaced_pod("accounting-0", slurm.namespace).status.container_statuses
    return all(status.ready for status in statuses or [])


# -- dumps ----------------------------------------------------------------------------------------------------------


def dumps(slurm: Accounted, *command: str) -> tuple[int, str]:
    """Run the command for dumps, and return its exit status and its standard error."""
    kubeconfig = ["--kubeconfig", str(slurm.kubernetes.kubeconfig), "--namespace", slurm.namespace]
    words = [sys.executable, "-m", "soperator_pulumi.cli", "dumps", *command, *kubeconfig]
    done = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def scale_slurmdbd(slurm: Accounted, replicas: int) -> None:
    """Stop or start slurmdbd as the error of a restore and its last line say, and wait until it is so."""
    where = ["statefulset/accounting", "--namespace", slurm.namespace]
    slurm.kubernetes.run("scale", *where, f"--replicas={replicas}")
    slurm.kubernetes.run("rollout", "status", *where)
    label = "app.kubernetes.io/component=accounting"

    def pods() -> int:
        return len(slurm.api.list_namespaced_pod(slurm.namespace, label_selector=label).items)

    wait_until(lambda: pods() == replicas, what=f"{replicas} pods of slurmdbd are there")


@pytest.mark.soak
def test_a_database_that_was_lost_is_restored_from_a_dump(slurm: Accounted) -> None:
    job = slurm.submit("true")
    recorded = f"--jobs={job} --format=state"
    wait_until(lambda: slurm.sacct(recorded) == [["COMPLETED"]], what=f"job {job} is recorded")
    assert dumps(slurm, "make")[0] == 0
    dump = dumps(slurm, "list")[1].split()[0]

    status, words = dumps(slurm, "restore", dump)
    assert status == 1
    assert "Stop slurmdbd first; jobs continue: kubectl scale statefulset/accounting" in words
    scale_slurmdbd(slurm, 0)
    sql(slurm, "DROP DATABASE slurm_acct_db; CREATE DATABASE slurm_acct_db; CREATE TABLE slurm_acct_db.wrong (a INT)")
    meanwhile = slurm.submit("true")
    status, words = dumps(slurm, "restore", dump)
    assert status == 0, words
    assert "kept as slurm_acct_db_replaced" in words
    scale_slurmdbd(slurm, 1)

    assert slurm.sacct(recorded) == [["COMPLETED"]]
    row = f"--jobs={meanwhile} --format=state"
    wait_until(lambda: slurm.sacct(row) == [["COMPLETED"]], what="the job that ended meanwhile is recorded")
    assert sql(slurm, "SHOW TABLES IN slurm_acct_db_replaced") == "wrong\n"
    assert dumps(slurm, "forget") == (0, "forgotten\n")
    assert "slurm_acct_db_" not in sql(slurm, "SHOW DATABASES")
    assert slurm.deployer().up().changed == ()
