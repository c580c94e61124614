"""Policies judge what a user's program or a transformation makes of resources, whatever that is."""

from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.policy import (
    POLICIES,
    UNKNOWN,
    Circumstances,
    Environment,
    ResourcePolicy,
    ResourceView,
    StackPolicy,
)
from soperator_pulumi.policy.definition import with_value
from soperator_pulumi.policy.judge import Judge
from soperator_pulumi.policy.recorded import views
from soperator_pulumi.policy.stack_rules import stack_rules
from soperator_pulumi.policy.value_tree import Path
from tests.rendered.policy.violating import VIOLATING, deployed, with_node_set

ODD = [UNKNOWN, None, True, -1.5, "x", [], {}, [UNKNOWN], {"x": UNKNOWN}]
RULES = stack_rules({"settings": {"gpu-quota": {"limit": 1}}}, "prod", POLICIES)
RUN = Circumstances(environment=Environment.PROD, project="project", stack="prod")


@cache
def resources() -> tuple[ResourceView, ...]:
    before = deployed(with_node_set(replicas=8))
    others = [deployed(VIOLATING[name].program) for name in ("gpu-quota", "public-logins")]
    return (*views(deployed(with_node_set()), before), *(view for one in others for view in views(one)))


@cache
def paths(index: int) -> tuple[Path, ...]:
    return tuple(_paths(resources()[index].props, ()))


def _paths(value: Any, path: Path) -> list[Path]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = [*value.items()]
    elif isinstance(value, list):
        inner = [*enumerate(value)]
    return [path, *(found for key, value in inner for found in _paths(value, (*path, key)))]


@given(st.data())
def test_no_policy_stumbles_over_a_property_of_another_form(data: st.DataObject) -> None:
    judged = dict(enumerate(resources()))
    changed = data.draw(st.sets(st.sampled_from(sorted(judged)), min_size=5, max_size=20))
    for index in changed:
        path, value = data.draw(st.sampled_from(paths(index))), data.draw(st.sampled_from(ODD))
        if path:
            judged[index] = replace(judged[index], props=with_value(judged[index].props, path, value))
    court = Judge(POLICIES, RULES, RUN)
    for policy in court.policies:
        if isinstance(policy, StackPolicy):
            court.stack(policy, [*judged.values()])
        elif isinstance(policy, ResourcePolicy):
            for index in changed:
                court.resource(policy, judged[index])
                court.edits(policy, judged[index])
