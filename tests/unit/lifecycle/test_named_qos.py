"""QoS that a spec names: a warning in previews, deployments, and preflights if the database does not have them."""

from typing import Any

import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.lifecycle import associations
from soperator_pulumi.lifecycle.associations import AssociationsProvider
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity
from soperator_pulumi.operations.preflight.planned import PlannedCluster
from soperator_pulumi.operations.preflight.preflight_run import Preflight
from soperator_pulumi.simulation.deployment import deploy
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.stack.preflight_plan import planned_clusters
from tests.fakes.accounting import POD_PATH, AccountingWorld
from tests.fakes.objects import NAMESPACE
from tests.strategies import a_cluster

ASK = "sacctmgr --noheader --parsable2 show"
PARTITIONS = [{"name": "main", "options": {"AllowQos": "Normal, hgih", "DenyQos": "ALL"}}]
WORDS = (
    'partitions[0].options.AllowQos: names the QoS "hgih", which the accounting database does not have: slurmctld '
    'leaves it out, and jobs with it are refused. Did you mean "high"?'
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> AccountingWorld:
    world = AccountingWorld()
    world.add_slurmdbd("creating")
    world.objects[POD_PATH]["status"] = {"phase": "Running", "containerStatuses": [RUNNING]}
    world.answers = {
        f"{ASK} cluster format=cluster": Answer(0, "hpc\n", ""),
        f"{ASK} associations cluster=hpc format=account,user": Answer(0, "default|\n", ""),
        f"{ASK} user withassoc where cluster=hpc format=user,defaultaccount": Answer(0, "", ""),
        f"{ASK} qos format=name": Answer(0, "normal\nhigh\n", ""),
    }
    monkeypatch.setattr(AssociationsProvider, "kube", lambda _self, _props: world)
    return world


RUNNING = {"name": "slurmdbd", "ready": True, "state": {"running": {}}}


def inputs(**qos: list[str]) -> dict[str, Any]:
    named = {"qos": {f"partitions[0].options.{option}": names for option, names in qos.items()}} if qos else {}
    return {
        "namespace": NAMESPACE,
        "owner": "o",
        "selector": {},
        "cluster_name": "hpc",
        "accounts": ["default"],
        "users": {},
        **named,
    }


@pytest.mark.parametrize("step", ["diff", "create"])
def test_a_preview_and_an_up_warn_of_a_name_without_a_qos_and_suggest_a_near_one(
    world: AccountingWorld, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(associations, "report", reported.append)
    news = inputs(AllowQos=["Normal", "hgih"])
    if step == "diff":
        assert not AssociationsProvider().diff("", {}, news).changes, "a warning is no change"
    else:
        AssociationsProvider().create(news)
    assert reported == [f"accounting: warning: {WORDS}"]


def test_without_a_near_name_the_warning_has_the_command_that_makes_the_qos(
    world: AccountingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(associations, "report", reported.append)
    AssociationsProvider().diff("", {}, inputs(QOS=["urgent"]))
    assert len(reported) == 1
    assert reported[0].endswith(
        "does not have: slurmctld does not start with it. Correct it, or make it: sacctmgr --immediate add qos urgent"
    )


def test_a_spec_without_names_asks_the_database_for_no_qos(world: AccountingWorld) -> None:
    AssociationsProvider().diff("", {}, inputs())
    assert not [command for command in world.commands if " qos " in command]


def test_names_are_those_of_partitions_and_long_checks() -> None:
    checks = {"tcp_bandwidth": {"qos": "idle"}}
    found = parse_cluster(a_cluster(partitions=PARTITIONS, health={"long_checks": checks})).named_qos
    assert found == {
        "partitions[0].options.AllowQos": ["Normal", "hgih"],
        "health.long_checks.tcp_bandwidth.qos": ["idle"],
    }


def planned(**spec: Any) -> PlannedCluster:
    description = a_cluster(namespace=NAMESPACE, partitions=PARTITIONS, **spec)
    (found,) = planned_clusters(deploy(lambda: SlurmCluster("hpc", description), project="p", stack_name="s"))
    return found


def of_qos(world: AccountingWorld, plan: PlannedCluster) -> list[Diagnosis]:
    found = Preflight(world, plan, lambda _: None, probes=()).findings()
    return [finding for finding in found if "QoS" in f"{finding.path} {finding.found}"]


def test_a_preflight_of_a_cluster_that_is_up_warns_of_a_name_without_a_qos(world: AccountingWorld) -> None:
    (found,) = of_qos(world, planned())
    assert (found.severity, found.path) == (Severity.WARNED, "partitions[0].options.AllowQos")
    assert str(found).startswith(WORDS.partition("Did")[0])
    assert found.cure == 'Did you mean "high"?'


def test_before_a_cluster_is_up_nothing_is_asked(world: AccountingWorld) -> None:
    del world.objects[POD_PATH]
    assert not of_qos(world, planned())


def test_a_database_that_does_not_answer_is_a_warning(world: AccountingWorld) -> None:
    world.answers[f"{ASK} qos format=name"] = Answer(1, "", "Unable to connect to database")
    (found,) = of_qos(world, planned())
    assert found.found.startswith("not checked: sacctmgr show qos format=name failed with 1: Unable to connect")
