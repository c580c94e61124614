"""Inputs of equal meaning have the same verdict, however they are split, merged, renamed, or ordered."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.policy.cluster_settings import SLURM_SETTINGS
from soperator_pulumi.policy.credentials import SECRETS_IN_SECRETS
from soperator_pulumi.policy.exposure import OPEN_EGRESS
from soperator_pulumi.policy.nodes_in_service import NODES_IN_SERVICE
from tests.unit.policy.views import a_pod, a_resource_of_ours, an_object, paths

VARIABLES = {"WANDB_API_KEY": "0123abcd", "HF_TOKEN": "abc", "PAD_TOKEN": "PAD", "MAX_TOKEN": "4096", "MODE": "train"}
NETWORKS = ("0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/8", "198.51.100.0/24", "2000::/3", "fc00::/7")
LINES = (
    "SlurmdTimeout=5",
    "SlurmdTimeout=300",
    "PartitionName=a State=DOWN",
    "PartitionName=b State=UP",
    "KillWait=30",
)


@given(st.integers(1, 200), st.integers(0, 100))
def test_a_percentage_is_the_number_of_nodes_that_it_stands_for(nodes: int, percent: int) -> None:
    def found(share: int | str) -> list[str]:
        update = {"max_unavailable": share}
        ready = {"replicas": float(nodes), "max_unready": share, "wait_until_ready": True, "rolling_update": update}
        return paths(NODES_IN_SERVICE, a_resource_of_ours("NodesReady", **ready))

    assert found(f"{percent}%") == found(percent * nodes // 100)


@given(st.lists(st.sampled_from(sorted(VARIABLES)), unique=True, min_size=1), st.data())
def test_a_credential_is_one_in_every_place_and_order_of_variables(names: list[str], data: st.DataObject) -> None:
    def refused(given_names: Sequence[str]) -> list[bool]:
        env = [{"name": name, "value": VARIABLES[name]} for name in given_names]
        pairs = [f"{name}={VARIABLES[name]}" for name in given_names]
        files = {"settings": "\n".join(pairs)}
        return [
            bool(paths(SECRETS_IN_SECRETS, resource))
            for resource in (
                a_pod({"name": "a", "env": env}),
                a_pod(*({"name": "a", "env": [variable]} for variable in env)),
                a_pod({"name": "a", "args": [f"environment={pair}" for pair in pairs]}),
                a_pod({"name": "a", "command": ["sh", "-c", " ".join([*pairs, "train"])]}),
                an_object("core/v1:ConfigMap", {"data": files}),
            )
        ]

    verdicts = [*refused(names), *refused(data.draw(st.permutations(names)))]
    assert set(verdicts) == {bool({"WANDB_API_KEY", "HF_TOKEN"} & {*names})}


@given(st.lists(st.sampled_from(NETWORKS), min_size=1, max_size=6), st.data())
def test_egress_is_as_open_in_one_rule_as_in_several_rules_and_policies(cidrs: list[str], data: st.DataObject) -> None:
    def policy(*rules: Sequence[str]) -> Any:
        egress = [{"to": [{"ipBlock": {"cidr": cidr}} for cidr in rule]} for rule in rules if rule]
        spec = {"podSelector": {"matchLabels": {"app": "a"}}, "egress": egress}
        return an_object("networking.k8s.io/v1:NetworkPolicy", {"metadata": {"namespace": "hpc"}, "spec": spec})

    order = data.draw(st.permutations(cidrs))
    cut = data.draw(st.integers(0, len(order)))
    first, second = order[:cut], order[cut:]
    whole = bool(paths(OPEN_EGRESS, policy(cidrs)))
    assert bool(paths(OPEN_EGRESS, policy(first, second))) is whole
    assert bool(paths(OPEN_EGRESS, policy(first), policy(second))) is whole


@given(st.sets(st.sampled_from(LINES)).map(sorted).flatmap(st.permutations))
def test_the_order_and_the_case_of_slurm_s_settings_change_no_verdict(lines: list[str]) -> None:
    def refused(text: str) -> bool:
        return bool(paths(SLURM_SETTINGS, a_resource_of_ours("ConfigFiles", files={"slurm.conf": text})))

    parameters = [line.replace("SlurmdTimeout", "slurmdtimeout").replace("State=", "state=") for line in lines]
    if not {"SlurmdTimeout=5", "SlurmdTimeout=300"} <= {*lines}:  # the last of two counts
        assert refused("\n".join(lines)) is refused("\n".join(reversed(parameters)))
