"""slurmdbd.conf, the slurm.conf of its pod, and MariaDB's settings."""

from typing import Any

import pytest

from soperator_pulumi.render.change_impact import parse_conf
from soperator_pulumi.render.mariadb_settings import mariadb_settings, my_cnf
from soperator_pulumi.render.slurm_conf import slurm_conf
from soperator_pulumi.render.slurmdbd_conf import slurmdbd_conf, tracks_wckeys
from soperator_pulumi.spec.accounting import AccountingSpec
from tests.strategies import a_spec


def pairs(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_slurmdbd_reaches_the_database_of_the_cluster() -> None:
    found = pairs(slurmdbd_conf(AccountingSpec(), "hunter2"))
    wanted = {"StorageHost": "database", "StoragePort": "3306", "StorageUser": "slurm", "StoragePass": "hunter2"}
    assert wanted.items() <= found.items()
    assert "StorageParameters" not in found


def test_users_with_capitals_keep_them_in_the_database() -> None:
    """sacctmgr(1) makes them small otherwise, and slurmctld finds no association."""
    assert pairs(slurmdbd_conf(AccountingSpec(), "hunter2"))["Parameters"] == "PreserveCaseUser"


def test_slurmdbd_speaks_tls_to_a_database_whose_authority_is_given() -> None:
    external = {
        "host": "db.example.com",
        "port": 3307,
        "database": "acct",
        "user": "dbd",
        "password": {"secret": "db"},
        "authority": {"secret": "db-ca"},
    }
    accounting = a_spec(accounting={"database": {"external": external}}).accounting
    assert accounting is not None
    found = pairs(slurmdbd_conf(accounting, "a b#c"))
    assert found["StorageHost"] == "db.example.com"
    assert found["StoragePort"] == "3307"
    assert (found["StorageLoc"], found["StorageUser"]) == ("acct", "dbd")
    assert found["StorageParameters"] == "SSL_CA=/etc/database-authority/ca.crt"
    assert found["StoragePass"] == '"a b\\#c"'


def test_records_are_purged_at_the_ages_of_the_spec() -> None:
    accounting = AccountingSpec.model_validate({"purge": {"jobs": "24 months", "steps": "72 hours"}})
    found = pairs(slurmdbd_conf(accounting, "hunter2"))
    assert found["PurgeJobAfter"] == "24months"
    assert found["PurgeStepAfter"] == "72hours"
    assert "PurgeEventAfter" not in found


def test_slurm_conf_has_the_rules_and_the_parts_of_jobs_to_store() -> None:
    described = {"enforce": ["safe", "qos"], "store": ["job_script", "job_env"]}
    found = parse_conf(slurm_conf(a_spec(accounting=described))).parameters
    assert found["AccountingStorageEnforce"] == "safe,qos"
    assert found["AccountingStoreFlags"] == "job_script,job_env"


def test_gpus_are_recorded_by_type_next_to_their_sum() -> None:
    gpus = [
        {"count": 8, "type": "h100"},
        {"count": 4, "type": "h100", "mig": {"1g.10gb": 7}},
        {"count": 2, "shards_per_gpu": 4},
    ]
    node_sets = [{"name": f"n{i}", "cpus": 8, "memory_gib": 8, "gpus": gpu} for i, gpu in enumerate(gpus)]
    found = parse_conf(slurm_conf(a_spec(node_sets=node_sets))).parameters["AccountingStorageTRES"]
    assert found == "gres/gpu,gres/gpu:1g.10gb,gres/gpu:h100,gres/shard"


@pytest.mark.parametrize(
    ("changes", "tracked"),
    [
        ({}, False),
        ({"accounting": {"enforce": ["wckeys"]}}, True),
        ({"slurm": {"extra": {"TrackWCKey": True}}}, True),
        ({"slurm": {"extra": {"TrackWCKey": False}}}, False),
        ({"accounting": "none", "slurm": {"extra": {"TrackWCKey": True}}}, False),
    ],
)
def test_slurmdbd_tracks_wckeys_where_jobs_have_them(changes: dict[str, Any], *, tracked: bool) -> None:
    spec = a_spec(**changes)
    found = pairs(slurmdbd_conf(AccountingSpec(), "hunter2", wckeys=tracks_wckeys(spec)))
    assert found.get("TrackWCKey") == ("yes" if tracked else None)


@pytest.mark.parametrize("extra", [{}, {"TrackWCKey": True}])
def test_slurm_conf_tracks_wckeys_that_are_enforced_in_one_line(extra: dict[str, bool]) -> None:
    text = slurm_conf(a_spec(accounting={"enforce": ["wckeys"]}, slurm={"extra": extra}))
    assert [line.lower() for line in text.splitlines() if line.startswith("TrackWCKey")] == ["trackwckey=yes"]


def test_without_accounting_slurm_conf_names_nothing_that_needs_it() -> None:
    gpus = [{"name": "gpu", "cpus": 8, "memory_gib": 64, "gpus": {"count": 8, "type": "h100"}}]
    found = parse_conf(slurm_conf(a_spec(accounting="none", node_sets=gpus))).parameters
    accounting = {name: value for name, value in found.items() if name.startswith(("Accounting", "MaxDBD"))}
    assert accounting == {"AccountingStorageType": "accounting_storage/none"}


@pytest.mark.parametrize(("memory", "pool", "log"), [("16Gi", "8192M", "2048M"), ("1Gi", "512M", "128M")])
def test_half_of_the_memory_is_the_pool_and_a_quarter_of_that_the_log(memory: str, pool: str, log: str) -> None:
    found = mariadb_settings(memory)
    assert (found["innodb_buffer_pool_size"], found["innodb_log_file_size"]) == (pool, log)


def test_snapshot_isolation_is_off_as_slurmdbd_ends_by_it() -> None:
    assert my_cnf(None).splitlines()[0] == "[mariadb]"
    assert "innodb_snapshot_isolation=OFF" in my_cnf(None).splitlines()


def test_mariadb_asks_no_name_server_for_those_who_connect() -> None:
    assert "skip_name_resolve=ON" in my_cnf(None).splitlines()
