"""Impact of a change of Slurm's files."""

from typing import Any

import pytest
from hypothesis import given

from soperator_pulumi.render.change_impact import PARAMETER_EFFECTS, Change, Effect, changes, parse_conf
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.slurm_parameters import OWNED_PARAMETERS, PARAMETERS
from tests.strategies import Data, a_spec, cluster_specs

SETS = [
    {"name": "a", "cpus": 2, "memory_gib": 4, "partitions": ["main"]},
    {"name": "b", "cpus": 2, "memory_gib": 4, "partitions": ["main", "big"]},
]


def between(old: Data, new: Data) -> tuple[Change, ...]:
    return changes(slurm_files(a_spec(**old)), slurm_files(a_spec(**new)))


def in_conf(old: str, new: str) -> tuple[Change, ...]:
    return changes({"slurm.conf": old}, {"slurm.conf": new})


def test_a_parameter_that_reloads_needs_a_reconfigure_only() -> None:
    assert between({}, {"slurm": {"extra": {"KillWait": 60}}}) == (Change("KillWait", Effect.RELOAD, ""),)


def test_a_parameter_that_is_taken_away_is_a_change() -> None:
    assert between({"slurm": {"extra": {"TreeWidth": 60}}}, {}) == (Change("TreeWidth", Effect.RELOAD, ""),)


def test_names_that_differ_in_case_only_and_comments_are_no_change() -> None:
    assert in_conf("KillWait=30\n# a\n", "# b\nkillwait=30  # c\n") == ()


def test_listening_otherwise_needs_a_restart_of_slurmctld() -> None:
    (change,) = between({}, {"slurm": {"extra": {"CommunicationParameters": "EnableIPv6"}}})
    assert change.effect is Effect.RESTART
    assert change.reason


def test_a_partition_that_is_removed_loses_its_jobs() -> None:
    (change, *rest) = between({"node_sets": SETS}, {"node_sets": [SETS[0], {**SETS[1], "partitions": ["main"]}]})
    assert (change.what, change.effect, change.partition) == ("PartitionName=big", Effect.LOSES_JOBS, "big")
    assert rest == []


def test_a_partition_that_is_new_or_changes_reloads() -> None:
    partitions = [{"name": "big", "options": {"MaxTime": 60}}]
    found = between({"node_sets": SETS[:1]}, {"node_sets": SETS, "partitions": partitions})
    assert {change.effect for change in found} == {Effect.RELOAD}
    assert {change.what for change in found} >= {"NodeSet=b", "PartitionName=big", "PartitionName=main"}


def test_a_node_set_that_leaves_lets_its_jobs_continue() -> None:
    found = between({"node_sets": [SETS[0], {**SETS[1], "partitions": ["main"]}]}, {"node_sets": SETS[:1]})
    assert {change.effect for change in found} == {Effect.RELOAD}


@pytest.mark.parametrize(
    ("parameter", "old", "new", "effect"),
    [
        ("MaxNodeCount", "64", "128", Effect.RELOAD),
        ("MaxNodeCount", "128", "64", Effect.LOSES_JOBS),
        ("MaxJobCount", None, "20000", Effect.RELOAD),
        ("MaxJobCount", None, "5000", Effect.LOSES_JOBS),
        ("MaxJobCount", "50000", None, Effect.LOSES_JOBS),
        ("MaxJobCount", "5000", None, Effect.RELOAD),
    ],
)
def test_room_for_nodes_and_jobs_may_grow_but_not_shrink_under_jobs(
    parameter: str, old: str | None, new: str | None, effect: Effect
) -> None:
    def text(value: str | None) -> str:
        return "" if value is None else f"{parameter}={value}\n"

    (change,) = in_conf(text(old), text(new))
    assert (change.what, change.effect) == (parameter, effect)


@pytest.mark.parametrize("parameter", PARAMETER_EFFECTS)
def test_what_takes_more_than_a_reconfigure_says_why(parameter: str) -> None:
    assert parameter in PARAMETERS
    (change,) = in_conf(f"{parameter}=a", f"{parameter}=b")
    assert change.effect > Effect.RELOAD
    assert change.reason


def test_what_a_user_may_set_never_ends_the_cluster() -> None:
    impossible = {name.lower() for name, (effect, _) in PARAMETER_EFFECTS.items() if effect is Effect.IMPOSSIBLE}
    assert impossible <= set(OWNED_PARAMETERS)


def test_constraining_jobs_otherwise_reloads() -> None:
    found = between({}, {"slurm": {"constrain": "none"}})
    assert {change.what for change in found} == {"JobAcctGatherType", "ProctrackType", "TaskPlugin", "cgroup.conf"}
    assert {change.effect for change in found} == {Effect.RELOAD}


def test_another_type_of_gpus_reloads() -> None:
    def of_type(kind: str) -> Data:
        return {"node_sets": [{"name": "gpu", "cpus": 8, "memory_gib": 8, "gpus": {"count": 8, "type": kind}}]}

    found = between(of_type("a100"), of_type("h100"))
    assert "AccountingStorageTRES" in {change.what for change in found}
    assert {change.effect for change in found} == {Effect.RELOAD}


def test_a_confirmed_id_restarts_slurmctld_which_takes_it_as_it_starts_and_its_removal_does_not() -> None:
    without: dict[str, Any] = {"accounting": {}}
    confirmed: dict[str, Any] = {"accounting": {"cluster_id": 7}}
    assert [(change.what, change.effect) for change in between(without, confirmed)] == [
        ("accounting-cluster-id", Effect.RESTART)
    ]
    assert [change.effect for change in between(confirmed, without)] == [Effect.RELOAD]


def test_the_hardest_change_comes_first() -> None:
    found = in_conf("KillWait=1\nClusterName=a\nAuthType=a", "KillWait=2\nClusterName=b\nAuthType=b")
    assert [change.effect for change in found] == [Effect.IMPOSSIBLE, Effect.LOSES_JOBS, Effect.RELOAD]


@given(cluster_specs(), cluster_specs())
def test_two_specs_differ_in_the_same_places_both_ways(one: ClusterSpec, other: ClusterSpec) -> None:
    there = {change.what for change in changes(slurm_files(one), slurm_files(other))}
    back = {change.what for change in changes(slurm_files(other), slurm_files(one))}
    assert there == back


def test_parameters_are_found_whatever_their_case_and_blanks() -> None:
    conf = parse_conf('KILLWAIT=30\n  mailprog = "/usr/bin/my mail" # a comment\n\n# Another=1\n')
    assert conf.parameters == {"KillWait": "30", "MailProg": "/usr/bin/my mail"}


def test_lines_of_a_kind_are_found_by_name() -> None:
    conf = parse_conf("NodeSet=a Feature=a\nPartitionName=p Nodes=a,b MaxTime=1-00\nPartitionName=q Nodes=b\n")
    assert conf.rows("NodeSet") == {"a": {"Feature": "a"}}
    assert conf.rows("PartitionName") == {"p": {"Nodes": "a,b", "MaxTime": "1-00"}, "q": {"Nodes": "b"}}
    assert conf.rows("NodeName") == {}


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_conf("SchedulerParameters=bf_window=60,defer").parameters == {
        "SchedulerParameters": "bf_window=60,defer"
    }


@pytest.mark.parametrize("text", ["KillWait", "KillWait=1 nonsense", "= 5"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not key=value"):
        parse_conf(text)
