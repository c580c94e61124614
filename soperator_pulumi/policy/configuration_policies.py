"""Policies on the configuration of policies: it must be valid, and every exception must be needed."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, StackPolicy
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.stack_rules import KEY
from soperator_pulumi.policy.view import STACK_TYPE, ResourceView


def _problems(resource: ResourceView, run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.type == STACK_TYPE:
        for problem in run.problems:
            yield Finding(resource, (), f"{KEY}: {problem.removesuffix('.')}")


POLICY_CONFIGURATION = ResourcePolicy(
    name="policy-configuration",
    description=f"{KEY} names existing policies, with valid settings and a reason for every exception.",
    violated_by="an exception without a reason; a misspelt policy, setting or environment; a weaker `level`",
    cure=f"Correct {KEY} in the stack's file. Until then, invalid parts count as not given.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("policies",),
    exceptable=False,
    check=_problems,
)


def _idle(_resources: Sequence[ResourceView], run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for name in run.idle_exceptions():
        yield Finding(None, (), f"{KEY}: exceptions.{name} has excused nothing in this run")


UNUSED_EXCEPTIONS = StackPolicy(
    name="unused-exceptions",
    description="Every exception of a stack is needed.",
    violated_by="an exception that excuses nothing, because the violation is gone or a pattern of `resources` matches "
    "nothing",
    cure="Remove it from the stack's file: it would also excuse the next violation.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("policies",),
    exceptable=False,
    counts_exceptions=True,
    check=_idle,
)
