"""Judgement of a run: exceptions, their upkeep, and policies of one's own."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.errors import SpecError
from soperator_pulumi.policy import (
    POLICIES,
    UNKNOWN,
    Circumstances,
    Finding,
    PolicySettings,
    PolicySeverity,
    ResourcePolicy,
    ResourceView,
    StackPolicy,
    levels,
    not_known,
    without,
)
from soperator_pulumi.policy.judge import Judge, in_order
from soperator_pulumi.policy.stack_rules import stack_rules
from tests.unit.policy.views import RUN, an_object


def check(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.props.get("bad") is UNKNOWN:
        yield not_known(resource, ("bad",))
    elif resource.props.get("bad"):
        yield Finding(resource, ("bad",), "got true, needs false")


OWN = ResourcePolicy(
    name="own",
    description="Nothing is bad.",
    violated_by="`bad`",
    cure="Make it good.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.LOW,
    check=check,
)
MINE = (*POLICIES, OWN)
UPKEEP = next(policy for policy in POLICIES if policy.name == "unused-exceptions")


def thing(name: str, bad: object) -> ResourceView:
    return ResourceView(type="my:index:Thing", name=name, urn=f"urn:{name}", props={"bad": bad}, secrets=frozenset())


def court(exceptions: Mapping[str, Any] | None = None, stack: str = "prod") -> Judge:
    return Judge(MINE, stack_rules({"exceptions": exceptions or {}}, stack, MINE), RUN)


def idle(judge: Judge) -> list[str]:
    assert isinstance(UPKEEP, StackPolicy)
    return [violation.message.partition("exceptions.")[2].partition(" ")[0] for violation in judge.stack(UPKEEP, [])]


def test_a_message_has_place_value_cure_and_the_exception_to_write() -> None:
    (found,) = court().resource(OWN, thing("a", True))
    assert found.message == (
        "Thing a, bad: got true, needs false.\nMake it good. Or give the reason in the stack's file: "
        "soperator:policy: {exceptions: {own: {reason: ..., resources: [Thing/a]}}}"
    )


def test_an_exception_excuses_what_it_names_and_is_needed_by_that() -> None:
    judge = court({"own": {"reason": "why", "resources": ["a", "b*", "c"]}})
    for name in ("a", "b1"):
        assert judge.resource(OWN, thing(name, True)) == []
    assert [violation.resource.name for violation in judge.resource(OWN, thing("d", True)) if violation.resource] == [
        "d"
    ]
    assert idle(judge) == ["own.resources[2]"]


def test_an_exception_is_not_idle_while_its_policy_knows_not_all() -> None:
    judge = court({"own": {"reason": "why", "resources": ["a"]}, "names": {"reason": "why"}})
    (found,) = judge.resource(OWN, thing("b", UNKNOWN))
    assert found.unknown
    assert idle(judge) == ["names"]


def test_policies_about_exceptions_run_when_all_others_have() -> None:
    last = in_order([UPKEEP, OWN, *POLICIES])[-1]
    assert last.name == "unused-exceptions"
    assert [isinstance(any_policy, StackPolicy) for any_policy in in_order(MINE)] == sorted(
        isinstance(any_policy, StackPolicy) for any_policy in MINE
    )


def test_settings_of_the_engine_go_before_those_of_the_stack() -> None:
    images = next(policy for policy in POLICIES if policy.name == "pinned-images")
    assert isinstance(images, ResourcePolicy)
    data = {"settings": {"pinned-images": {"registries": ["a.example"]}}}
    judge = Judge(POLICIES, stack_rules(data, "prod", POLICIES), RUN)
    pod = an_object("core/v1:Pod", {"spec": {"containers": [{"image": "b.example/c:v1"}]}})
    assert len(judge.resource(images, pod)) == 1
    assert len(judge.resource(images, pod, {"registries": ["b.example"]})) == 0
    assert len(judge.resource(images, pod, {"moving_tags": ["v1"]})) == 2, "the registries are still the stack's"


def test_ours_are_switched_off_by_name_with_a_reason() -> None:
    left = without(POLICIES, {"names": "ours come from the inventory", "labels": "see names"})
    assert {policy.name for policy in POLICIES} - {policy.name for policy in left} == {"names", "labels"}


def test_a_policy_that_there_is_not_and_an_empty_reason_are_refused_together() -> None:
    with pytest.raises(SpecError) as caught:
        without(POLICIES, {"lables": "why", "names": " "})
    assert [str(problem) for problem in caught.value.problems] == [
        'lables: there is no such policy. Did you mean "labels"?',
        "names: needs a reason, for the next reader of the pack.",
    ]


KINDS = [
    *("core/v1:Pod", "core/v1:ConfigMap", "core/v1:Secret", "core/v1:Service", "core/v1:Namespace"),
    *("apps/v1:StatefulSet", "batch/v1:CronJob", "policy/v1:PodDisruptionBudget", "core/v1:PersistentVolume"),
    "networking.k8s.io/v1:NetworkPolicy",
]
OURS = ["NodeDrain", "RemovedNodeSets", "ConfigFiles", "ActiveTree"]
TYPES = [
    *(f"kubernetes:{kind}" for kind in KINDS),
    *(f"pulumi-python:dynamic/soperator:{kind}" for kind in OURS),
    "soperator-pulumi:index:SlurmCluster",
    "pulumi:pulumi:Stack",
]
WORDS = """
metadata spec template containers initContainers securityContext capabilities add volumes hostPath path env name value
args image labels annotations namespace podSelector matchLabels matchExpressions ingress egress from to ipBlock cidr
except ports port type loadBalancerSourceRanges replicas policy data files removed resources limits nvidia.com/gpu
app.kubernetes.io/part-of app.kubernetes.io/component policyTypes selector replicas_before stringData
"""
KEYS = st.sampled_from(WORDS.split())
LEAVES = st.one_of(
    st.sampled_from(
        [UNKNOWN, None, True, False, "soperator-pulumi", "login", "worker", "0.0.0.0/0", "LoadBalancer", ""]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=30
)


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.dictionaries(KEYS, TREES, max_size=5)), max_size=4))
def test_no_policy_stumbles_over_properties_of_any_form(declared: list[tuple[str, dict[str, Any]]]) -> None:
    resources = [
        ResourceView(type=type_, name="it", urn="urn:it", props=props, secrets=frozenset()) for type_, props in declared
    ]
    judge = Judge(POLICIES, stack_rules({"settings": {"gpu-quota": {"limit": 1}}}, "prod", POLICIES), RUN)
    for policy in judge.policies:
        if isinstance(policy, StackPolicy):
            judge.stack(policy, resources)
        elif isinstance(policy, ResourcePolicy):
            for resource in resources:
                judge.resource(policy, resource)
                judge.edits(policy, resource)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_is_written_for_its_readers(policy: Any) -> None:
    assert policy.name == policy.name.lower().replace(" ", "-").replace("_", "-")
    assert policy.description.endswith(".")
    assert not policy.violated_by.endswith(".")
    assert policy.cure.endswith((".", "'.")), policy.cure
    assert policy.tags
    assert dataclasses.is_dataclass(policy)


def test_the_objects_of_a_list_are_judged_one_by_one() -> None:
    item = {"metadata": {"name": "a", "namespace": "shop"}, "data": {"munge.key": "bXVuZ2U="}}
    listed = an_object("core/v1:ConfigMapList", {"items": [{"metadata": UNKNOWN}, item, UNKNOWN]}, "settings")
    by_name = {policy.name: policy for policy in POLICIES}
    leaks, labels = by_name["secrets-in-secrets"], by_name["labels"]
    assert isinstance(leaks, ResourcePolicy)
    assert isinstance(labels, ResourcePolicy)

    (leak,) = court().resource(leaks, listed)
    assert leak.message.startswith('ConfigMap settings, items[1].data["munge.key"]: ')
    assert [violation.unknown for violation in court().resource(labels, listed)] == [True, False, True]
    adding = Judge(MINE, stack_rules({"settings": {"labels": {"values": {"team": "hpc"}}}}, "prod", MINE), RUN)
    edits = adding.edits(labels, an_object("core/v1:ConfigMapList", {"items": [item]}))
    assert [edit.path for edit in edits] == [("items", 0, "metadata", "labels", "team")]
