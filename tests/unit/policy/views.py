"""Resources for policies to judge, and the run in which they do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from soperator_pulumi.policy import AnyPolicy, Circumstances, Environment, ResourcePolicy, ResourceView, StackPolicy
from soperator_pulumi.policy.value_tree import written

RUN = Circumstances(environment=Environment.PROD, project="project", stack="prod")


def an_object(type_: str, props: Mapping[str, Any] | None = None, name: str = "it", **others: Any) -> ResourceView:
    return ResourceView(type=f"kubernetes:{type_}", name=name, urn=f"urn:{name}", props=props or {}, **others)


def below(part: str, resource: ResourceView) -> ResourceView:
    """Return a resource as a part of a cluster registers it."""
    above = "soperator-pulumi:index:SlurmCluster" + (
        "" if part == "SlurmCluster" else f"$soperator-pulumi:index:{part}"
    )
    urn = f"urn:pulumi:prod::project::{above}${resource.type}::{resource.name}"
    parent = f"urn:pulumi:prod::project::{above}::{resource.name.partition('-network')[0]}"
    return replace(resource, urn=urn, parent=parent)


def as_stateful_set(pod: ResourceView) -> ResourceView:
    """Return the same pods as a StatefulSet has them."""
    template = {"metadata": pod.props["metadata"], "spec": pod.props["spec"]}
    return an_object("apps/v1:StatefulSet", {"metadata": pod.props["metadata"], "spec": {"template": template}})


def a_resource_of_ours(kind: str, **props: Any) -> ResourceView:
    return ResourceView(type=f"pulumi-python:dynamic/soperator:{kind}", name="it", urn="urn:it", props=props)


def a_pod(*containers: Mapping[str, Any], labels: Any = None, **spec: Any) -> ResourceView:
    metadata = {"namespace": "shop", "labels": {} if labels is None else labels}
    return an_object("core/v1:Pod", {"metadata": metadata, "spec": {"containers": [*containers], **spec}}, "pod")


def paths(policy: AnyPolicy, *resources: ResourceView, unknown: bool = False, **settings: Any) -> list[str]:
    """Return the paths of what violates a policy or, with `unknown`, of what a preview does not know."""
    given = policy.settings.model_validate(settings)
    if isinstance(policy, StackPolicy):
        found = [*policy.check(resources, RUN, given)]
    else:
        assert isinstance(policy, ResourcePolicy)
        found = [finding for resource in resources for finding in policy.check(resource, RUN, given)]
    return [written(finding.path) for finding in found if finding.unknown is unknown]
