"""Policies on a recorded deployment: the violations that a preview would report, without an engine.

Example::

    import pulumi_kubernetes as kubernetes

    from soperator_pulumi.policy.recorded import judge
    from soperator_pulumi.testing import deploy

    def program() -> None:
        kubernetes.core.v1.ConfigMap("web", metadata={"name": "web", "namespace": "web"}, data={"token": "t0p"})

    (leak, label) = judge(deploy(program), environment="prod").failures
    assert leak.startswith("secrets-in-secrets: ConfigMap web, data.token: ")
    assert label.startswith("labels: ConfigMap web, metadata.labels")
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml
from pulumi.output import Unknown

from soperator_pulumi.lifecycle.keys_in_use import with_keys_before
from soperator_pulumi.lifecycle.node_drain import with_replicas_before
from soperator_pulumi.lifecycle.removed_node_sets import with_removed
from soperator_pulumi.policy.definition import AnyPolicy, Circumstances, Edit, ResourcePolicy, StackPolicy, edited
from soperator_pulumi.policy.judge import Judge, Violation
from soperator_pulumi.policy.levels import PolicyLevel
from soperator_pulumi.policy.registry import POLICIES
from soperator_pulumi.policy.stack_rules import stack_rules
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look
from soperator_pulumi.policy.view import STACK_TYPE, ResourceView
from soperator_pulumi.simulation.deployment import PROJECT, STACK, Deployment, Recorded, Secret

__all__ = ["Judgement", "Violation", "judge"]

_GROUP = "kubernetes:yaml/v2:ConfigGroup"


@dataclass(frozen=True)
class Judgement:
    """Result of all policies on a deployment."""

    violations: tuple[Violation, ...]
    """All violations, including advisory ones."""
    remediations: tuple[str, ...]
    """Corrections that the pack would make, as policy and resource."""

    @property
    def failures(self) -> tuple[str, ...]:
        """Messages of the violations that fail a preview, preceded by the name of the policy."""
        return tuple(
            f"{violation.policy}: {violation.message}" for violation in self.violations if violation.level.fails
        )


def judge(
    deployment: Deployment,
    *,
    environment: str | None = None,
    policy: Mapping[str, Any] | None = None,
    before: Deployment | None = None,
    policies: Sequence[AnyPolicy] = POLICIES,
    variables: Mapping[str, str] | None = None,
    stack: str = STACK,
) -> Judgement:
    """Return the result of all policies on a recorded deployment.

    Args:
        deployment: The deployment.
        environment: The stack's environment, unless `policy` names one. Default: by the stack's name.
        policy: `soperator:policy` of the stack's file.
        before: The previous deployment, for policies on changes.
        policies: The policies.
        variables: Environment variables of the run. Default: those of this process.
        stack: Name of the stack.
    """
    given = {**({} if environment is None else {"environment": environment}), **(policy or {})}
    rules = stack_rules(given, stack, policies)
    run = Circumstances(
        environment=rules.environment,
        project=PROJECT,
        stack=stack,
        variables=os.environ if variables is None else variables,
    )
    judge_of_run = Judge(policies, rules, run)
    resources = views(deployment, before)
    violations: list[Violation] = []
    remediations: list[str] = []
    for judged in judge_of_run.policies:
        level = judge_of_run.level(judged)
        if level is PolicyLevel.DISABLED:
            continue
        if isinstance(judged, StackPolicy):
            violations += judge_of_run.stack(judged, resources)
        elif isinstance(judged, ResourcePolicy):
            if level is PolicyLevel.REMEDIATE:
                resources = [_remediated(judge_of_run, judged, resource, remediations) for resource in resources]
            for resource in resources:
                violations += judge_of_run.resource(judged, resource)
    return Judgement(tuple(violation for violation in violations if not violation.unknown), tuple(remediations))


def _remediated(judge_of_run: Judge, policy: ResourcePolicy, resource: ResourceView, done: list[str]) -> ResourceView:
    edits: list[Edit] = judge_of_run.edits(policy, resource)
    if edits:
        done.append(f"{policy.name}: {resource.kind} {resource.name}")
    return edited(resource, edits)


def views(deployment: Deployment, before: Deployment | None = None) -> list[ResourceView]:
    """Return the resources of a deployment as policies see them, starting with the stack."""
    former = (
        {(registration.type, registration.name): registration for registration in before.recorded} if before else {}
    )
    name = f"{PROJECT}-{STACK}"
    stack = ResourceView(type=STACK_TYPE, name=name, urn=_urn("", STACK_TYPE, name), props={}, secrets=frozenset())
    urns = {(STACK_TYPE, name): stack.urn}
    found = [stack]
    for registration in deployment.recorded:
        types, _, parent = registration.request.parent.partition("::")[2].partition("::")[2].partition("::")
        view = _view(
            registration,
            former.get((registration.type, registration.name)),
            urns.get((types.rpartition("$")[2], parent), ""),
        )
        urns[registration.type, registration.name] = view.urn
        found += opened(view)
    return found


def _urn(parent: str, type_: str, name: str) -> str:
    """Return the URN that an engine would give. The SDK's mocks shorten the types of ancestors.

    Source: https://www.pulumi.com/docs/iac/concepts/resources/names/#urns
    """
    above = parent.split("::")[2] if parent else STACK_TYPE
    return f"urn:pulumi:{STACK}::{PROJECT}::{'' if above == STACK_TYPE else f'{above}$'}{type_}::{name}"


def _view(recorded: Recorded, former: Recorded | None, parent: str) -> ResourceView:
    request = recorded.request
    marked: set[Path] = set()
    props = _plain(recorded.inputs, (), marked)
    view = ResourceView(
        type=recorded.type,
        name=recorded.name,
        urn=_urn(parent, recorded.type, recorded.name),
        props=props,
        parent=parent,
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        dependencies=tuple(request.dependencies),
        property_dependencies={key: tuple(found.urns) for key, found in request.propertyDependencies.items()},
        secrets=frozenset(marked),
    )
    return view if former is None else replace(view, props=_checked(view, _plain(former.inputs, (), set())))


def _checked(view: ResourceView, olds: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the inputs, with the values that a provider's check keeps from the previous state."""
    for kind, check in (
        ("KeysInUse", with_keys_before),
        ("NodeDrain", with_replicas_before),
        ("RemovedNodeSets", with_removed),
    ):
        if view.acts_as(kind):
            return check(olds, {**view.props})
    return view.props


def _plain(value: Any, path: Path, marked: set[Path]) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of recorded values in plain text, and note the paths of secrets."""
    if isinstance(value, Secret):
        marked.add(path)
        return _plain(value.value, path, marked)
    if isinstance(value, Unknown):
        return UNKNOWN
    if isinstance(value, Mapping):
        return {key: _plain(item, (*path, key), marked) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, (*path, index), marked) for index, item in enumerate(value)]
    return value


def opened(resource: ResourceView) -> Iterator[ResourceView]:
    """Yield the objects of a `ConfigGroup`, named as its provider names them, and any other resource unchanged.

    A provider registers them in an engine, but not in a recorded deployment. Source:
    https://www.pulumi.com/registry/packages/kubernetes/api-docs/yaml/v2/configgroup/
    """
    yield resource
    if resource.type != _GROUP:
        return
    prefix = resource.props.get("resourcePrefix") or resource.name
    for path, found in _objects(resource.props):
        version = str(found["apiVersion"])
        type_ = f"kubernetes:{version if '/' in version else f'core/{version}'}:{found['kind']}"
        place = "/".join(str(field) for key in ("namespace", "name") if (field := look(found, "metadata", key)))
        name = f"{prefix}:{place}"
        stack, _, _ = resource.urn.rpartition("::")
        yield replace(
            resource,
            type=type_,
            name=name,
            urn=f"{stack}${type_}::{name}",
            parent=resource.urn,
            props=found,
            protect=False,
            secrets=_marks_below(resource, path),
        )


class _Loader(yaml.SafeLoader):
    """Reader of YAML that leaves a date as text, as Kubernetes does."""


_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in found if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _objects(props: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for index, item in enumerate(listed(props.get("objs"))):
        yield from _unlisted(item, ("objs", index))
    text = props.get("yaml")
    try:
        documents = [*yaml.load_all(text, _Loader)] if isinstance(text, str) else []
        documents = json.loads(json.dumps(documents, default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return  # the provider refuses it
    for document in documents:
        yield from ((("yaml",), found) for _, found in _unlisted(document, ()))


def _unlisted(value: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield an object with its path, and the objects of a `List` one by one."""
    if isinstance(value, Mapping) and value.get("kind") == "List":
        for index, item in enumerate(listed(value.get("items"))):
            yield from _unlisted(item, (*path, "items", index))
    elif isinstance(value, Mapping) and {"apiVersion", "kind"} <= value.keys():
        yield path, value


def _marks_below(resource: ResourceView, path: Path) -> frozenset[Path] | None:
    if resource.secrets is None:
        return None
    if resource.is_secret(path):
        return frozenset({()})
    return frozenset(mark[len(path) :] for mark in resource.secrets if mark[: len(path)] == path)
