"""Accounting in a description: its word, its databases, and its problems."""

from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import IMAGES, a_cluster, a_spec

EXTERNAL = {"host": "db.example.com", "password": {"secret": "db"}}


def test_a_cluster_has_accounting_with_a_database_of_its_own() -> None:
    accounting = a_spec().accounting
    assert accounting is not None
    assert accounting.own is not None


def test_the_word_none_means_no_accounting() -> None:
    assert a_spec(accounting="none").accounting is None


@pytest.mark.parametrize("database", [{"external": EXTERNAL}, {"mariadb_operator": {}}])
def test_another_database_takes_the_place_of_the_own_one(database: dict[str, Any]) -> None:
    accounting = a_spec(accounting={"database": database}).accounting
    assert accounting is not None
    assert accounting.own is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accounting": None}, 'accounting: got nothing, needs "none", or a mapping that describes accounting'),
        ({"accounting": "off"}, "accounting: "),
        ({"accounting": {"enforce": ["limit"]}}, "accounting.enforce[0]: "),
        ({"accounting": {"purge": {"jobs": "12"}}}, "accounting.purge.jobs: "),
        ({"accounting": {"default_account": "root"}}, "accounting.default_account: "),
        (
            {"accounting": {"database": {"own": {}, "external": EXTERNAL}}},
            "accounting.database: has own and external. Give one of them.",
        ),
        (
            {"accounting": "none", "users": [{"name": "alice", "uid": 2001, "accounts": ["physics"]}]},
            'users[0].accounts: given with accounting: "none". Remove one.',
        ),
        (
            {"images": {name: image for name, image in IMAGES.items() if name != "database"}},
            "images.database: missing: accounting needs it.",
        ),
        (
            {"accounting": {"dump": {"storage": {"existing_claim": "a", "storage_class": "b"}}}},
            "accounting.dump.storage.storage_class: given together with accounting.dump.storage.existing_claim",
        ),
        ({"accounting": {"dump": {"schedule": "at night"}}}, "accounting.dump.schedule: "),
        (
            {"accounting": {"dump": {}, "database": {"external": EXTERNAL}}},
            "accounting.dump: given, but the database is external.",
        ),
        (
            {"accounting": {"database": {"own": {"password": {"secret": "a"}, "password_version": 2}}}},
            "accounting.database.own.password_version: given together with password",
        ),
        (
            {"accounting": {"database": {"own": {"storage": {"existing_claim": "a", "storage_class": "b"}}}}},
            "accounting.database.own.storage.storage_class: given together with",
        ),
        (
            {"accounting": {"database": {"own": {"password": {"secret": "database-password"}}}}},
            'accounting.database.own.password.secret: got "database-password", which is the Secret of a generated',
        ),
        ({"slurm": {"extra": {"AccountingStorageTRES": "gres/gpu"}}}, "it is rendered from node_sets[].gpus"),
        ({"slurm": {"extra": {"AccountingStorageEnforce": "limits"}}}, "set accounting.enforce"),
    ],
)
def test_a_problem_names_its_field_and_its_cure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse_cluster(a_cluster(**changes))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "host", ["db", "db.example.com", "10.0.0.5", "2001:db8::5", "1:2:3:4:5:6:7:8", "::ffff:10.0.0.5"]
)
def test_a_database_elsewhere_has_a_name_or_an_address(host: str) -> None:
    assert a_spec(accounting={"database": {"external": {**EXTERNAL, "host": host}}}).accounting


@pytest.mark.parametrize("host", ["db:3307", "10.0.0.5:3306", "1:2:3", "a..b", "-db", "db.", "[::1]", "db\n", ""])
def test_a_port_or_a_slip_in_the_host_of_a_database_is_refused(host: str) -> None:
    with pytest.raises(SpecError, match=r"accounting\.database\.external\.host: .*without a port"):
        a_spec(accounting={"database": {"external": {**EXTERNAL, "host": host}}})


def test_a_database_elsewhere_needs_no_image_of_ours() -> None:
    images = {name: image for name, image in IMAGES.items() if name != "database"}
    assert a_spec(images=images, accounting={"database": {"external": EXTERNAL}}).accounting


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"slurm": {"extra": {"PreemptType": "preempt/qos"}}}, 'slurm.extra.PreemptType: got "preempt/qos"'),
        *(
            ({"partitions": [{"name": "main", "options": {name: "high"}}]}, f'partitions[0].options.{name}: got "high"')
            for name in ("AllowQos", "DenyQos", "QOS")
        ),
    ],
    ids=str,
)
def test_settings_about_qos_need_accounting(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(SpecError) as raised:
        a_spec(accounting="none", **changes)
    assert f'{place}, but there is no QOS with accounting: "none".' in str(raised.value)
    assert a_spec(**changes).accounting


def test_a_partition_for_all_qos_needs_no_accounting() -> None:
    spec = a_spec(accounting="none", partitions=[{"name": "main", "options": {"AllowQos": "ALL"}}])
    assert spec.partitions[0].options == {"AllowQos": "ALL"}
