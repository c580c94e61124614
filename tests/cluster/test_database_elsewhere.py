"""Accounting in a database outside of the cluster, over TLS: MariaDB of our image, in a namespace of its own."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.render import layout
from soperator_pulumi.render.mariadb_settings import mariadb_arguments
from soperator_pulumi.spec.accounting import OwnDatabaseSpec
from tests.cluster.certificates import Authority
from tests.cluster.slurm import SMALL, VERSION, Slurm, a_cluster, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images
from tools.engine import DeployError

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

PASSWORD = "of-the-site #1"


class Elsewhere(Slurm):
    """A cluster whose records are in a database that someone else runs, in the same namespace."""

    def sql(self, statement: str) -> str:
        client = [
            "mariadb",
            "--no-defaults",
            "--skip-ssl",
            "--user=root",
            "--skip-column-names",
            "--raw",
            "-e",
            statement,
        ]
        return self.exec("db", "mariadb", *client)

    def states(self, job: int) -> list[str]:
        """Return the user and the state of a job's record, as sacct has them in the jail."""
        return self.ssh(f"sacct -nPX -j {job} --format=user,state", check=False).stdout.split()


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    bring_images(kubernetes)
    name = unique("elsewhere")
    slurm = Elsewhere(kubernetes, Path(tmp_path_factory.mktemp("slurm")), a_cluster(name=name))
    try:
        slurm.api.create_namespace({"metadata": {"name": name}})
        external = {"host": a_database(slurm), "password": {"secret": "db"}, "authority": {"secret": "db"}}
        slurm.cluster |= {
            "create_namespace": False,
            "accounting": {
                "database": {"external": external},
                "slurmdbd": {"pod_resources": SMALL},
                "enforce": ["associations"],
                "unknown_users": "refuse",
            },
        }
        slurm.up()
        yield slurm
    finally:
        slurm.destroy()
        kubernetes.throw_away(name)


def a_database(slurm: Elsewhere) -> str:
    """Start MariaDB, which accepts TLS alone, and return its address."""
    service = slurm.api.create_namespaced_service(
        slurm.namespace, {"metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}, "ports": [{"port": 3306}]}}
    )
    address = str(service.spec.cluster_ip)
    authority = Authority.made("authority of the site")
    files = {"password": PASSWORD.encode(), "ca.crt": authority.pem, **authority.sign(address)}
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    slurm.api.create_namespaced_secret(slurm.namespace, {"metadata": {"name": "db"}, "data": data})
    slurm.api.create_namespaced_pod(slurm.namespace, _pod())
    return address


def _pod() -> dict[str, Any]:
    secret = "/etc/database-password"
    tls = [f"--ssl-cert={secret}/tls.crt", f"--ssl-key={secret}/tls.key", "--require-secure-transport=ON"]
    where = {"data": "/var/lib/mysql", "run": "/run/mysqld", "tmp": "/tmp"}
    mounts = [{"name": name, "mountPath": path} for name, path in where.items()]
    container = {
        "name": "mariadb",
        "image": images.references(slurm=VERSION)["database"],
        "command": [f"{layout.IMAGE_SCRIPTS}/start-database", *mariadb_arguments(OwnDatabaseSpec()), *tls],
        "env": [
            {"name": "DATABASE_NAME", "value": layout.DATABASE_NAME},
            {"name": "DATABASE_USER", "value": layout.DATABASE_USER},
            {"name": "ANSWERS_PORT", "value": str(layout.ANSWERS_PORT)},
        ],
        "securityContext": {"runAsUser": layout.MYSQL_UID, "runAsGroup": layout.MYSQL_UID},
        "volumeMounts": [*mounts, {"name": "secret", "mountPath": secret}],
    }
    volumes: list[dict[str, Any]] = [{"name": name, "emptyDir": {}} for name in where]
    volumes.append({"name": "secret", "secret": {"secretName": "db"}})
    return {
        "metadata": {"name": "db", "labels": {"app": "db"}},
        "spec": {
            "containers": [container],
            "volumes": volumes,
            "securityContext": {"fsGroup": layout.MYSQL_UID},
            "automountServiceAccountToken": False,
        },
    }


def test_jobs_are_recorded_in_the_database_of_the_site(slurm: Elsewhere) -> None:
    job = slurm.submit("true")

    wait_until(lambda: slurm.states(job) == ["alice|COMPLETED"], what="the job is recorded")
    table = f"{layout.DATABASE_NAME}.`{slurm.cluster['name']}_job_table`"
    assert str(job) in slurm.sql(f"select id_job from {table}").split()  # noqa: S608 its own name


def test_only_users_of_the_spec_are_registered(slurm: Elsewhere) -> None:
    pod = slurm.api.read_namespaced_pod("accounting-0", slurm.namespace)
    registered = slurm.exec("accounting-0", "slurmdbd", "sacctmgr", "-nP", "show", "associations", "format=user")

    assert {*registered.split()} == {"root", "alice"}
    assert "unknown-users" not in {container.name for container in (*pod.spec.containers, *pod.spec.init_containers)}


def test_a_job_of_a_user_who_is_registered_no_more_is_refused(slurm: Elsewhere) -> None:
    change = ("sacctmgr", "--immediate")
    slurm.exec("accounting-0", "slurmdbd", *change, "delete", "user", "alice")
    try:
        refused = slurm.ssh("sbatch --wrap true", check=False).stderr
    finally:
        slurm.exec("accounting-0", "slurmdbd", *change, "add", "user", "alice", "account=default")

    assert "Invalid account or account/partition combination" in refused


def test_accounting_that_is_switched_off_leaves_jobs_running_and_the_records_where_they_are(slurm: Elsewhere) -> None:
    job = slurm.submit("sleep 600")
    slurm.wait_for_job(job, "RUNNING")
    accounting = slurm.cluster["accounting"]
    slurm.cluster["accounting"] = "none"
    try:
        slurm.up()
        assert slurm.job(job)["JobState"] == "RUNNING"
        assert "Slurm accounting storage is disabled" in slurm.ssh("sacct 2>&1", check=False).stdout
        assert slurm.deployer().up().changed == ()
    finally:
        slurm.cluster["accounting"] = accounting
        slurm.up()
    state = slurm.job(job)
    slurm.ssh(f"scancel {job}")
    assert (state["JobState"], state["Restarts"]) == ("RUNNING", "0")
    wait_until(lambda: slurm.states(job) == ["alice|CANCELLED", "by", "2001"], what="the job is recorded in the end")


def test_records_under_another_id_are_not_taken_for_this_clusters_until_the_id_is_confirmed(slurm: Elsewhere) -> None:
    """Another cluster of the same name may have written them. Slurm keeps ids in 16 bits."""
    recorded = slurm.submit("true")
    wait_until(lambda: slurm.states(recorded) == ["alice|COMPLETED"], what="the job is recorded")
    job = slurm.submit("sleep 600")
    slurm.wait_for_job(job, "RUNNING")
    accounting = slurm.cluster["accounting"]
    slurm.cluster["accounting"] = "none"
    slurm.up()
    slurm.sql(f"update {layout.DATABASE_NAME}.cluster_table set id = 4321 where deleted = 0")  # noqa: S608 its own name
    slurm.cluster["accounting"] = accounting

    with pytest.raises(DeployError, match=r"(?s)CLUSTER ID MISMATCH.*4321.*set accounting\.cluster_id to that id"):
        slurm.up()
    assert slurm.job(job)["JobState"] == "RUNNING"

    slurm.cluster["accounting"] = {**accounting, "cluster_id": 4321}
    slurm.up()
    assert slurm.job(job)["JobState"] == "RUNNING"
    slurm.ssh(f"scancel {job}")
    wait_until(lambda: slurm.states(job) == ["alice|CANCELLED", "by", "2001"], what="the job's end is recorded")
    assert slurm.states(recorded) == ["alice|COMPLETED"]
