"""Messages for a person who made a mistake."""

import asyncio

import pulumi
import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import ED25519_KEY, IMAGES, Data, a_cluster


def the_message_of(data: object) -> str:
    with pytest.raises(SpecError) as caught:
        parse_cluster(data)
    return str(caught.value)


def test_all_problems_stand_in_one_message_under_the_name_of_the_configuration() -> None:
    node_sets: list[Data] = [
        {"name": "gpu", "cpus": 8, "memory_gib": "2G"},
        {"name": "gpu", "cpus": 8, "memory_gib": 4},
    ]
    assert the_message_of(a_cluster(node_sets=node_sets)) == (
        "soperator:cluster has 2 problems:\n"
        '  node_sets[0].memory_gib: got "2G", needs a number of GiB without a unit, such as 2 or 0.5,'
        " from 0.125 to 1000000.\n"
        '  node_sets[1].name: "gpu" is also the name of node_sets[0]. Node sets need distinct names.'
    )


def with_drain(**drain: object) -> Data:
    return {"node_sets": [{"name": "x", "cpus": 1, "memory_gib": 1, "drain": drain}]}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"node_sets": [{"name": "login", "cpus": 1, "memory_gib": 1}]}, 'got "login", which is reserved'),
        ({"node_sets": [{"name": "admin", "cpus": 1, "memory_gib": 1}]}, 'got "admin", which is reserved'),
        (
            {"node_sets": [{"name": "rest-0", "cpus": 1, "memory_gib": 1}]},
            '"rest-0", which is the name of a rest pod.',
        ),
        ({"node_sets": [{"name": "x" * 53, "cpus": 1, "memory_gib": 1}]}, "53 characters long; at most 52"),
        ({"node_sets": [{"name": "x", "cpus": 1, "memory_gib": 1, "replicas": -1}]}, "whole number of at least 0"),
        ({"node_sets": [{"name": "x", "cpus": 1, "memory_gib": 1, "replicas": 1.5}]}, "got 1.5, needs a whole number"),
        ({"node_sets": [{"name": "x", "cpu": 1, "memory_gib": 1}]}, 'unknown key. Did you mean "cpus"?'),
        ({"node_sets": [{"name": "x", "cpus": 1, "memory_gib": 1, "replicas": 5000}]}, "slurm.max_nodes is 4096"),
        (with_drain(timeout="2 hours"), 'drain.timeout: got "2 hours", needs a length of time with its unit'),
        (with_drain(timeout=600), "drain.timeout: got 600, needs a length of time with its unit"),
        (with_drain(grace="5s"), 'got "5s", needs a length of time from 30s to 365d. slurmd needs time'),
        (with_drain(on_timeout="kill"), 'got "kill", needs "abort", "requeue", "cancel" or "wait".'),
        (with_drain(time_out="2h"), 'drain.time_out: unknown key. Did you mean "timeout"?'),
        (
            with_drain(timeout="8d", on_timeout="wait"),
            'node_sets[0].drain.max_wait: "7d" is shorter than node_sets[0].drain.timeout = "8d"',
        ),
        (
            {"node_sets": [{"name": "x", "cpus": 1, "memory_gib": 1, "rolling_update": {"max_unavailable": "0%"}}]},
            'max_unavailable: got "0%", needs at least 1 node or 1%',
        ),
        ({"node_sets": []}, "node_sets: empty: a cluster needs at least one node set."),
        ({"node_sets": {}}, "node_sets: got a mapping, needs a list."),
        ({"partitions": [{"name": "big"}]}, 'got "big", but no node set names it. Add it'),
        ({"users": [{"name": "a", "uid": 2001}, {"name": "b", "uid": 2001}]}, "2001 is also the uid of users[0]"),
        ({"users": [{"name": "a", "uid": 2001, "ssh_keys": [""]}]}, "users[0].ssh_keys[0]: empty."),
        ({"users": [{"name": "a", "uid": 2001, "ssh_keys": ED25519_KEY}]}, "users[0].ssh_keys: got a value"),
        ({"users": [{"name": "a"}]}, "users[0].uid: missing. It has no default: give a value."),
        ({"login": {"service": "LoadBalancer"}}, "login.service is LoadBalancer: no one could connect"),
        ({"login": {"allowed_sources": ["10.0.0.1"], "service": "NodePort"}}, 'Did you mean "10.0.0.1/32"?'),
        ({"slurm": {"extra": {"PlugStackConfig": "/etc/x"}}}, "silently ignore plugstack.conf"),
        ({"slurm": {"extra": {"KillWiat": 5}}}, 'Slurm has no such setting. Did you mean "KillWait"?'),
        ({"slurm": {"constrain": "cgroups"}}, 'got "cgroups", needs "cgroup" or "none".'),
        ({"slurm": {"version": 24.11}}, 'got 24.11, needs "24.11" or "26.05".'),
        (
            {"slurm": {"extra": {"MetricsType": "metrics/openmetrics"}}},
            "slurm.extra.MetricsType: Slurm 24.11 has no such setting, but 26.05 has. Remove it, or set slurm.version",
        ),
        (
            {"partitions": [{"name": "main", "options": {"Exclusive": "USER"}}]},
            "partitions[0].options.Exclusive: Slurm 24.11 has no such setting, but 26.05 has.",
        ),
        ({"name": "default"}, 'namespace: got "default", which belongs to Kubernetes'),
        ({"images": {**IMAGES, "jail": None}}, "images.jail: missing, and jail.source is not given"),
        ({"images": {name: "a" for name in IMAGES if name != "munge"}}, "images.munge: missing."),
    ],
)
def test_a_mistake_that_people_make_is_reported_with_what_is_allowed(overrides: Data, words: str) -> None:
    message = the_message_of(a_cluster(**overrides))
    assert message.startswith("soperator:cluster has 1 problem:\n")
    assert words in message


def test_problems_come_in_the_order_of_their_paths_with_numbers_by_their_value() -> None:
    node_sets = [{"name": f"set{number}x", "cpus": 0, "memory_gib": 1} for number in range(11)]
    message = the_message_of(a_cluster(node_sets=node_sets))
    assert message.index("node_sets[2]") < message.index("node_sets[10]")


@pytest.mark.parametrize("data", [None, "name: hpc", [], 5])
def test_a_description_that_is_no_mapping_is_a_problem(data: object) -> None:
    assert "needs a mapping that describes a cluster" in the_message_of(data)


def test_an_output_where_a_plain_value_is_needed_is_told_apart() -> None:
    async def run() -> str:  # an Output needs an event loop
        return the_message_of(a_cluster(name=pulumi.Output.from_input("hpc"), namespace="slurm"))

    assert "name: got an Output, needs a plain value" in asyncio.run(run())


SECRET = "s3cr3t-value"


@pytest.mark.parametrize(
    "overrides",
    [
        {"users": [{"name": "a", "uid": 2001, "ssh_keys": [SECRET]}]},
        {"users": [{"name": "a", "uid": 2001, "ssh_keys": [f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n"]}]},
        {"users": [{"name": "a", "uid": 2001, "ssh_keys": SECRET}]},
        {"users": [{"name": "a", "uid": 2001, "password": SECRET}]},
        {"secrets": SECRET},
        {"secrets": {"munge_key": SECRET}},
        {"secrets": {"munge_key": {"secret": f"{SECRET}!"}}},
        {"secrets": {"munge_key": {"secret": "a", "key": f"{SECRET} "}}},
        {"slurm": {"extra": {"AccountingStoragePass": SECRET}}},
        {"slurm": {"extra": {"JobCompPass": SECRET}}},
        {"slurm": {"extra": {"KillWait": SECRET}}},
        {"slurm": {"extra": SECRET}},
        {"kubeconfig": f"token: {SECRET}"},
        {"kubeconfig": {"token": SECRET}},
        {"annotations": {"a": [SECRET]}},
        {"annotations": [SECRET]},
        {"name": f"-----BEGIN PRIVATE KEY-----\n{SECRET}"},
        {
            "images": {
                "controller": f"user:{SECRET}@registry.example/a",
                "worker": "a",
                "login": "a",
                "munge": "a",
                "pull_secrets": [f"{SECRET}="],
            }
        },
    ],
)
def test_what_may_be_a_secret_is_never_shown(overrides: Data) -> None:
    assert SECRET not in the_message_of(a_cluster(**overrides))
