"""Policy on variables that change what a run may do: they are set for one run, with a reason."""

from collections.abc import Iterator

from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST
from soperator_pulumi.operations.nodes.drain_override import SOPERATOR_DRAIN
from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import STACK_TYPE, ResourceView

SOPERATOR_EXCEPTION = "SOPERATOR_EXCEPTION"
"""Environment variable that names one run, with the reason: `controller-lost: INC-4711, the zone is gone`."""

_WORDS = {CONTROLLER_LOST: "controller-lost", SOPERATOR_DRAIN: "drain"}


def _unnamed(resource: ResourceView, run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.type != STACK_TYPE:
        return  # once in a run, whatever parts of a cluster the program has
    reasons = _reasons(run.variables.get(SOPERATOR_EXCEPTION, ""))
    for variable, word in _WORDS.items():
        if run.variables.get(variable, "").strip() and not reasons.get(word):
            text = f'{variable} is set, {SOPERATOR_EXCEPTION} has no reason: give "{word}: <reason>" in this run'
            yield Finding(resource, (), text)
    for word in reasons:
        if word not in _WORDS.values():
            yield Finding(resource, (), f"{SOPERATOR_EXCEPTION} needs one of: {', '.join(_WORDS.values())}")


def _reasons(text: str) -> dict[str, str]:
    """Return the reasons by keyword, from `controller-lost: why; drain: why`."""
    parts = (part.partition(":") for part in text.split(";") if part.strip())
    return {word.strip(): reason.strip() for word, _, reason in parts}


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
