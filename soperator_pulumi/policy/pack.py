"""Policy pack for Pulumi: an adapter to the policy SDK. Needs `pip install soperator-pulumi[policy]`.

For your own pack, call `serve` in its `__main__.py`: `examples/own-policy`.
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

from soperator_pulumi.policy.definition import (
    MARK_AS_SECRET,
    AnyPolicy,
    Circumstances,
    ResourcePolicy,
    StackPolicy,
    edited,
)
from soperator_pulumi.policy.judge import Judge, Violation, in_order
from soperator_pulumi.policy.levels import PolicyLevel
from soperator_pulumi.policy.registry import POLICIES
from soperator_pulumi.policy.stack_rules import KEY, stack_rules
from soperator_pulumi.policy.value_tree import UNKNOWN, Path
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
        policies: Policies of this package, your own, and those of the policy SDK.
    """
    PolicyPack(name, pack_policies(policies))


def pack_policies(policies: Sequence[AnyPolicy | Policy] = POLICIES) -> list[Policy]:
    """Return policies for a `PolicyPack`, with the levels of the stack for which Pulumi has started this process."""
    ours = in_order([policy for policy in policies if not isinstance(policy, Policy)])
    adapter = _Adapter(_judge(ours))
    return [*map(adapter.policy, ours), *(policy for policy in policies if isinstance(policy, Policy))]


def _judge(policies: Sequence[AnyPolicy]) -> Judge:
    stack = os.environ.get("PULUMI_STACK", "").rpartition("/")[2]
    text = pulumi.runtime.get_config_env().get(KEY)
    try:
        data = None if text is None else json.loads(text)
    except ValueError:
        data = text  # not a mapping: the policy on the configuration reports it
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
    """Turns policies of this package into policies of the SDK."""

    judge: Judge
    seen: dict[str, frozenset[Path]] = field(default_factory=dict)
    """Paths of secrets by URN. The SDK shows marks only to remediations, which run first, and never to validations."""

    def policy(self, policy: AnyPolicy) -> Policy:
        """Return a policy as one of the SDK's.

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
            # A violation that remains after remediation counts at the level `mandatory`.
            common["enforcement_level"] = EnforcementLevel.REMEDIATE
        if policy.remediate is not None:
            common["remediate"] = self._remedy(policy, level)
        return ResourceValidationPolicy(**common, validate=self._of_resource(policy))

    def _of_resource(self, policy: ResourcePolicy) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
        def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
            resource = replace(_view(args), secrets=self.seen.get(args.urn))
            if policy.needs_marks and resource.secrets is None:
                args.not_applicable("marks of secrets are known only at the level remediate")
            _report(self.judge.resource(policy, resource, args.get_config()), report)

        return validate

    def _of_stack(self, policy: StackPolicy) -> Callable[[StackValidationArgs, ReportViolation], None]:
        def validate(args: StackValidationArgs, report: ReportViolation) -> None:
            resources = [_view_in_stack(resource) for resource in args.resources]
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
    """Report violations; then have the SDK warn about values that a preview does not know."""
    for violation in violations:
        if not violation.unknown:
            report(violation.message, violation.resource.urn if violation.resource else None)
    unknown = [violation.path for violation in violations if violation.unknown]
    if unknown:
        raise proxy.UnknownValueError(proxy.UNKNOWN_STRING_VALUE, [", ".join(unknown)])


def _schema(policy: AnyPolicy) -> PolicyConfigSchema | None:
    """Return the JSON schema of the settings, without defaults: an engine would pass these over the stack's values."""
    fields = policy.settings.model_json_schema()["properties"]
    meanings = field_descriptions(policy.settings)
    properties = {
        name: {**{key: value for key, value in schema.items() if key not in {"default", "title"}},
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
        dependencies=tuple(dependency.urn for dependency in resource.dependencies),
        property_dependencies={
            key: tuple(dependency.urn for dependency in found) for key, found in resource.property_dependencies.items()
        },
    )


def _plain(value: Any, path: Path, marks: set[Path]) -> Any:  # noqa: ANN401 any tree of values
    """Return properties in plain text, and note the paths of secrets."""
    if isinstance(value, Mapping):
        if value.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
            marks.add(path)
            return _plain(value["value"], path, marks)
        return {key: _plain(item, (*path, key), marks) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, (*path, index), marks) for index, item in enumerate(value)]
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWNS else value


def _with_value(tree: Any, path: Path, value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return properties with a new value at a path, and all other marks of secrets kept."""
    if isinstance(tree, Mapping) and tree.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
        return {**tree, "value": _with_value(tree["value"], path, value)}
    if not path:
        return {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": tree} if value is MARK_AS_SECRET else value
    key, rest = path[0], path[1:]
    if isinstance(tree, list):
        return [_with_value(item, rest, value) if index == key else item for index, item in enumerate(tree)]
    given = tree if isinstance(tree, Mapping) else {}
    return {**given, key: _with_value(given.get(key), rest, value)}
