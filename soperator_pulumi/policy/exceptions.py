"""Policies on exceptions: they are valid, needed, and have reasons, in the stack's file and in variables of a run."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST
from soperator_pulumi.operations.nodes.drain_override import SOPERATOR_DRAIN
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


SOPERATOR_EXCEPTION = "SOPERATOR_EXCEPTION"
"""Environment variable that names one run, with the reason: `controller-lost: INC-4711, the zone is gone`."""

_WORDS = {CONTROLLER_LOST: "controller-lost", SOPERATOR_DRAIN: "drain"}


def _unnamed(resource: ResourceView, run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.type != STACK_TYPE:
        return  # once in a run, whatever parts of a cluster the program has
    parts = (part.partition(":") for part in run.variables.get(SOPERATOR_EXCEPTION, "").split(";") if part.strip())
    reasons = {word.strip(): reason.strip() for word, _, reason in parts}
    for variable, word in _WORDS.items():
        if run.variables.get(variable, "").strip() and not reasons.get(word):
            text = f'{variable} is set, {SOPERATOR_EXCEPTION} has no reason: give "{word}: <reason>" in this run'
            yield Finding(resource, (), text)
    for word in reasons:
        if word not in _WORDS.values():
            yield Finding(resource, (), f"{SOPERATOR_EXCEPTION} needs one of: {', '.join(_WORDS.values())}")


NAMED_RUNS = ResourcePolicy(
    name="named-runs",
    description=f"{CONTROLLER_LOST} and {SOPERATOR_DRAIN} are set for one run only, and the run states a reason.",
    violated_by=f"`{CONTROLLER_LOST}` or `{SOPERATOR_DRAIN}` without `{SOPERATOR_EXCEPTION}` in the same run",
    cure=f"Remove the variable, or give the reason for this run: {SOPERATOR_EXCEPTION}='controller-lost: <ticket, and "
    "the reason>'.",
    levels=levels("advisory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("jobs", "runs"),
    exceptable=False,
    check=_unnamed,
)
