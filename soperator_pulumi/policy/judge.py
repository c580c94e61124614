"""Judgement of resources by policies, under the levels, settings and exceptions of a stack."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from soperator_pulumi.errors import Problem
from soperator_pulumi.policy.definition import (
    AnyPolicy,
    Circumstances,
    Edit,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
)
from soperator_pulumi.policy.levels import PolicyLevel
from soperator_pulumi.policy.stack_rules import KEY, StackRules
from soperator_pulumi.policy.value_tree import written
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.parse import parse


@dataclass(frozen=True)
class Violation(Problem):
    """A finding that no exception excuses. Its path is the resource with the path of the value."""

    policy: str = field(kw_only=True)
    """Name of the policy."""
    level: PolicyLevel = field(kw_only=True)
    """Level of the policy in the stack's environment."""
    resource: ResourceView | None = field(kw_only=True)
    """The resource; None for the stack as a whole."""
    unknown: bool = field(default=False, kw_only=True)
    """True if a preview does not know the value, so it is not a violation yet."""

    @property
    def message(self) -> str:
        """Place, value given, values allowed, and next step, in lines."""
        return f"{self.path}: " + "\n".join(self.sentences())


def in_order(policies: Sequence[AnyPolicy]) -> list[AnyPolicy]:
    """Return policies in the order in which they run: those on single resources first."""

    def turn(policy: AnyPolicy) -> tuple[bool, bool]:
        return isinstance(policy, StackPolicy), isinstance(policy, StackPolicy) and policy.counts_exceptions

    return sorted(policies, key=turn)


class Judge:
    """Judges the resources of one run, and records which exceptions were needed."""

    def __init__(self, policies: Sequence[AnyPolicy], rules: StackRules, circumstances: Circumstances) -> None:
        self.policies = in_order(policies)
        """Policies in the order in which they run."""
        self._rules = rules
        self._circumstances = replace(circumstances, problems=rules.problems, idle_exceptions=self._idle_exceptions)
        self._needed: set[str] = set()
        self._undecided: set[str] = set()

    def level(self, policy: AnyPolicy) -> PolicyLevel:
        """Return the level of a policy in this run."""
        return self._rules.level(policy)

    def resource(
        self, policy: ResourcePolicy, resource: ResourceView, more: Mapping[str, Any] | None = None
    ) -> list[Violation]:
        """Return the violations of a policy by a resource.

        Args:
            policy: The policy.
            resource: The resource.
            more: Settings that override those of the stack's file.
        """
        settings = self._settings(policy, more)
        return [
            violation
            for kubernetes_object in resource.objects()
            for violation in self._judged(policy, policy.check(kubernetes_object, self._circumstances, settings))
        ]

    def stack(
        self, policy: StackPolicy, resources: Sequence[ResourceView], more: Mapping[str, Any] | None = None
    ) -> list[Violation]:
        """Return the violations of a policy by all resources of the stack together."""
        objects = [kubernetes_object for resource in resources for kubernetes_object in resource.objects()]
        return [*self._judged(policy, policy.check(objects, self._circumstances, self._settings(policy, more)))]

    def edits(
        self, policy: ResourcePolicy, resource: ResourceView, more: Mapping[str, Any] | None = None
    ) -> list[Edit]:
        """Return the changes that cure a resource's violations; none if an exception excuses it."""
        if policy.remediate is None or self._rules.excuse(policy, resource) is not None:
            return []
        settings = self._settings(policy, more)
        return [
            replace(edit, path=(*kubernetes_object.place, *edit.path))
            for kubernetes_object in resource.objects()
            for edit in policy.remediate(kubernetes_object, self._circumstances, settings)
        ]

    def _settings(self, policy: AnyPolicy, more: Mapping[str, Any] | None) -> PolicySettings:
        own = self._rules.settings_of(policy)
        if not more:
            return own
        given = {**own.model_dump(exclude_unset=True), **more}
        return parse(policy.settings, given, policy.name, "settings of a policy", lambda _: iter(()))

    def _judged(self, policy: AnyPolicy, findings: Iterable[Finding]) -> Iterator[Violation]:
        for finding in findings:
            excuse = self._rules.excuse(policy, finding.resource)
            if excuse is not None:
                self._needed.add(excuse[0])
            else:
                self._undecided |= {policy.name} if finding.unknown else set()
                yield Violation(
                    _place(finding),
                    finding.text,
                    cure=_cure(policy, finding.resource),
                    policy=policy.name,
                    level=self.level(policy),
                    resource=finding.resource,
                    unknown=finding.unknown,
                )

    def _idle_exceptions(self) -> list[str]:
        """Return the exceptions that have excused nothing. An exception to an undecided policy counts as needed."""
        return [
            exception
            for exception in self._rules.all_exceptions()
            if exception not in self._needed and exception.partition(".")[0] not in self._undecided
        ]


def _place(finding: Finding) -> str:
    """Return the resource with the path of the value: `ConfigMap web, data.token`."""
    resource = finding.resource
    if resource is None:
        return ", ".join(filter(None, ["the stack", written(finding.path)]))
    return ", ".join(filter(None, [f"{resource.last_word} {resource.name}", written((*resource.place, *finding.path))]))


def _cure(policy: AnyPolicy, resource: ResourceView | None) -> str:
    """Return the cure of the policy, and the exception that would excuse the resource if the policy has exceptions."""
    if not policy.exceptable:
        return policy.cure
    only = f", resources: [{resource.last_word}/{resource.name}]" if resource else ""
    excuse = f"{KEY}: {{exceptions: {{{policy.name}: {{reason: ...{only}}}}}}}"
    return f"{policy.cure} Or give the reason in the stack's file: {excuse}"
