"""Children as a larger program uses them: public attributes, in state before the component's outputs."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from soperator_pulumi import AdminShell, Controller, Jail, LoginNodes, NodeSet, SlurmCluster
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import a_spec, provided

KUBECONFIG = "apiVersion: v1\nkind: Config\n"


def created(**overrides: Any) -> tuple[SlurmCluster, Deployment]:
    clusters: list[SlurmCluster] = []
    deployment = deploy(lambda: clusters.append(SlurmCluster("hpc", a_spec(**overrides))), outputs=provided)
    return clusters[0], deployment


def resources_in(value: object) -> Iterator[pulumi.Resource]:
    """Yield the resources in a public attribute."""
    if isinstance(value, pulumi.Resource):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from resources_in(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from resources_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from resources_in(getattr(value, field.name))


def reached_from(component: pulumi.ComponentResource) -> Iterator[str]:
    """Yield the type of each resource that declared attributes of a component lead to."""
    for attribute in inspect.get_annotations(type(component)):
        for resource in resources_in(getattr(component, attribute)):
            yield resource.pulumi_resource_type
            if isinstance(resource, pulumi.ComponentResource):
                yield from reached_from(resource)


def test_every_child_is_reached_by_declared_attributes() -> None:
    cluster, deployment = created(kubeconfig=KUBECONFIG)
    # What holds the random text of a key holds a secret that nothing but the key's Secret needs.
    of_children = [
        resource.type
        for resource in deployment.recorded
        if resource.name != "hpc" and ":RandomPassword" not in resource.type
    ]
    assert sorted(reached_from(cluster)) == sorted(of_children)


@pytest.mark.parametrize("component", [SlurmCluster, AdminShell, Controller, Jail, LoginNodes, NodeSet])
def test_every_attribute_is_documented(component: type[pulumi.ComponentResource]) -> None:
    source = inspect.getsource(component)
    undocumented = [name for name in inspect.get_annotations(component) if '    """' not in after(source, name)]
    assert undocumented == []


def after(source: str, attribute: str) -> str:
    """Return the line below an attribute's declaration."""
    _, _, rest = source.partition(f"\n    {attribute}: ")
    return rest.split("\n")[1]


def test_the_namespace_is_the_resource_or_none_where_it_exists_and_its_name_is_there_always() -> None:
    def program(*, create: bool) -> None:
        cluster = SlurmCluster("hpc", a_spec(create_namespace=create))
        assert isinstance(cluster.namespace, kubernetes.core.v1.Namespace) is create
        pulumi.export("namespace", cluster.namespace_name)

    for create in (True, False):
        deployment = deploy(partial(program, create=create), outputs=provided)
        assert deployment.exports["namespace"] == "hpc"


def test_an_object_that_takes_the_namespaces_name_waits_for_the_namespace() -> None:
    def program() -> None:
        cluster = SlurmCluster("hpc", a_spec())
        kubernetes.core.v1.ConfigMap("own", metadata={"namespace": cluster.namespace_name})

    deployment = deploy(program, outputs=provided)
    assert any(urn.endswith("::hpc-namespace") for urn in deployment.request("own").dependencies)


def test_everything_is_registered_before_the_outputs_of_its_component(monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[pulumi.Resource] = []
    late: list[str] = []
    register, outputs = pulumi.Resource.__init__, pulumi.ComponentResource.register_outputs

    def noting(self: pulumi.Resource, t: str, name: str, *args: Any, **kwargs: Any) -> None:
        opts = kwargs.get("opts") or next((arg for arg in args if isinstance(arg, pulumi.ResourceOptions)), None)
        late.extend(name for resource in finished if opts is not None and opts.parent is resource)
        register(self, t, name, *args, **kwargs)

    def ended(self: pulumi.ComponentResource, values: Any) -> None:
        finished.append(self)
        outputs(self, values)

    monkeypatch.setattr(pulumi.Resource, "__init__", noting)
    monkeypatch.setattr(pulumi.ComponentResource, "register_outputs", ended)
    created()
    assert len(finished) >= 6
    assert late == []
