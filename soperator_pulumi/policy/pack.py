"""Pack of policies for Pulumi: adapter to the policy SDK. Needs `pip install soperator-pulumi[policy]`.

A pack of your own is a call of `serve` in its `__main__.py`: `examples/own-policy`.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
    proxy,
)
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY, serialize_properties

from soperator_pulumi.policy.definition import MARK_AS_SECRET, AnyPolicy, Circumstances, ResourcePolicy, StackPolicy
from soperator_pulumi.policy.edits import edited
from soperator_pulumi.policy.judge import Judge, Violation, in_order
from soperator_pulumi.policy.levels import PolicyLevel
from soperator_pulumi.policy.registry import POLICIES
from soperator_pulumi.policy.stack_rules import KEY, stack_rules
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, written
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.descriptions import field_descriptions

_UNKNOWNS = {
    proxy.UNKNOWN_ARCHIVE_VALUE,
    proxy.UNKNOWN_ARRAY_VALUE,
    proxy.UNKNOWN_ASSET_VALUE,
    proxy.UNKNOWN_BOOLEAN_VALUE,
    proxy.UNKNOWN_NUMBER_VALUE,
    proxy.UNKNOWN_OBJECT_VALUE,
    proxy.UNKNOWN_STRING_VALUE,
}

__all__ = ["pack_policies", "serve"]


def serve(name: str, policies: Sequence[AnyPolicy | Policy] = POLICIES) -> None:
    """Serve policies to Pulumi until it ends this process.

    Args:
        name: Name of the pack.
        policies: Policies of this package, of your own, and those of the policy SDK.
    """
    PolicyPack(name, pack_policies(policies))


def pack_policies(policies: Sequence[AnyPolicy | Policy] = POLICIES) -> list[Policy]:
    """Return policies for a `PolicyPack`, with the levels of the stack that Pulumi has started this process for."""
    ours = in_order([each for each in policies if not isinstance(each, Policy)])
    adapter = _Adapter(_judge(ours))
    return [*map(adapter.policy, ours), *(each for each in policies if isinstance(each, Policy))]


def _judge(policies: Sequence[AnyPolicy]) -> Judge:
    stack = os.environ.get("PULUMI_STACK", "").rpartition("/")[2]
    text = pulumi.runtime.get_config_env().get(KEY)
    try:
        data = None if text is None else json.loads(text)
    except ValueError:
        data = text  # no mapping, which the policy on the configuration reports
    rules = stack_rules(data, stack, policies)
    run = Circumstances(
        environment=rules.environment,
        project=os.environ.get("PULUMI_PROJECT", ""),
        stack=stack,
        variables=os.environ,
    )
    return Judge(policies, rules, run)


@dataclass(frozen=True)
class _Adapter:
    """Policies of this package as those of the SDK."""

    judge: Judge
    seen: dict[str, frozenset[Path]] = field(default_factory=dict)
    """Paths of secrets by URN. The SDK shows marks to remediations, which run first, and to no validation."""

    def policy(self, policy: AnyPolicy) -> Policy:
        """Return a policy of the SDK.

        Raises:
            TypeError: the policy is of neither kind.
        """
        level = self.judge.level(policy)
        common: dict[str, Any] = {
            "name": policy.name,
            "description": policy.description,
            "enforcement_level": EnforcementLevel(level.value),
            "config_schema": _schema(policy),
            "severity": Severity(policy.severity.value),
            "tags": [*policy.tags],
            "remediation_steps": policy.cure,
        }
        if isinstance(policy, StackPolicy):
            return StackValidationPolicy(**common, validate=self._of_stack(policy))
        if not isinstance(policy, ResourcePolicy):
            raise TypeError(f"{policy.name} is neither a ResourcePolicy nor a StackPolicy")
        if policy.needs_marks and level is PolicyLevel.MANDATORY:
            # What is left after a remediation is a violation at the level `mandatory`.
            common["enforcement_level"] = EnforcementLevel.REMEDIATE
        if policy.remediate is not None:
            common["remediate"] = self._remedy(policy, level)
        return ResourceValidationPolicy(**common, validate=self._of_resource(policy))

    def _of_resource(self, policy: ResourcePolicy) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
        def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
            resource = replace(_view(args), secrets=self.seen.get(args.urn))
            if policy.needs_marks and resource.secrets is None:
                args.not_applicable("marks of secrets are known at the level remediate alone")
            _report(self.judge.resource(policy, resource, args.get_config()), report)

        return validate

    def _of_stack(self, policy: StackPolicy) -> Callable[[StackValidationArgs, ReportViolation], None]:
        def validate(args: StackValidationArgs, report: ReportViolation) -> None:
            resources = [_view_in_stack(each) for each in args.resources]
            _report(self.judge.stack(policy, resources, args.get_config()), report)

        return validate

    def _remedy(
        self, policy: ResourcePolicy, level: PolicyLevel
    ) -> Callable[[ResourceValidationArgs], Mapping[str, Any] | None]:
        def remediate(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
            resource = _view(args)
            edits = self.judge.edits(policy, resource, args.get_config()) if level is PolicyLevel.REMEDIATE else []
            self.seen[args.urn] = edited(resource, edits).secrets or frozenset()
            changed = properties = serialize_properties(args.props)
            for edit in edits:
                changed = _with_value(changed, edit.path, edit.value)
            return None if changed is properties else changed

        return remediate


def _report(violations: Sequence[Violation], report: ReportViolation) -> None:
    """Report violations; then have the SDK report what a preview does not know, as a warning."""
    for each in violations:
        if not each.unknown:
            report(each.message, each.resource.urn if each.resource else None)
    unknown = [
        f"{each.resource.name if each.resource else ''} {written(each.path)}" for each in violations if each.unknown
    ]
    if unknown:
        raise proxy.UnknownValueError(proxy.UNKNOWN_STRING_VALUE, [", ".join(unknown).strip()])


def _schema(policy: AnyPolicy) -> PolicyConfigSchema | None:
    """Return the JSON schema of the settings, without defaults: an engine would give these, over the stack's own."""
    fields = policy.settings.model_json_schema()["properties"]
    meanings = field_descriptions(policy.settings)
    properties = {
        name: {**{key: each for key, each in schema.items() if key not in {"default", "title"}},
               "description": meanings[name]}
        for name, schema in fields.items()
        if name != "level"
    }  # fmt: skip
    return PolicyConfigSchema(properties) if properties else None


def _view(args: ResourceValidationArgs) -> ResourceView:
    marks: set[Path] = set()
    return ResourceView(
        type=args.resource_type,
        name=args.name,
        urn=args.urn,
        props=_plain(serialize_properties(args.props), (), marks),
        parent=args.opts.parent or "",
        protect=args.opts.protect,
        secrets=frozenset(marks),
    )


def _view_in_stack(resource: PolicyResource) -> ResourceView:
    return ResourceView(
        type=resource.resource_type,
        name=resource.name,
        urn=resource.urn,
        props=_plain(serialize_properties(resource.props), (), set()),
        parent=resource.parent.urn if resource.parent else "",
        protect=resource.opts.protect,
        dependencies=tuple(each.urn for each in resource.dependencies),
        property_dependencies={
            key: tuple(each.urn for each in found) for key, found in resource.property_dependencies.items()
        },
    )


def _plain(value: Any, path: Path, marks: set[Path]) -> Any:  # noqa: ANN401 any tree of values
    """Return properties in plain, and note the paths of secrets."""
    if isinstance(value, Mapping):
        if value.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
            marks.add(path)
            return _plain(value["value"], path, marks)
        return {key: _plain(each, (*path, key), marks) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, (*path, index), marks) for index, each in enumerate(value)]
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWNS else value


def _with_value(tree: Any, path: Path, value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return properties with another value at a path, and with all other marks of secrets as they are."""
    if isinstance(tree, Mapping) and tree.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
        return {**tree, "value": _with_value(tree["value"], path, value)}
    if not path:
        return {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": tree} if value is MARK_AS_SECRET else value
    key, rest = path[0], path[1:]
    if isinstance(tree, list):
        return [_with_value(each, rest, value) if index == key else each for index, each in enumerate(tree)]
    given = tree if isinstance(tree, Mapping) else {}
    return {**given, key: _with_value(given.get(key), rest, value)}
