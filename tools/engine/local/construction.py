"""Request to a plugin to make a component, from the program's request to register it."""

from pulumi.runtime.proto import provider_pb2, resource_pb2

from tools.engine.project import Project

_ORGANIZATION = "organization"  # of every stack in a backend without accounts


def construct_request(
    request: resource_pb2.RegisterResourceRequest, project: Project, stack: str, address: str, *, preview: bool
) -> provider_pb2.ConstructRequest:
    """Return the request to the plugin.

    Args:
        request: Request of the program.
        project: Project of the program.
        stack: Name of the stack.
        address: Address of the engine's services, at which the plugin registers the component and its children.
        preview: True if resources are only planned.
    """
    dependencies = {
        key: provider_pb2.ConstructRequest.PropertyDependencies(urns=propertydependency.urns)
        for key, propertydependency in request.propertyDependencies.items()
    }
    return provider_pb2.ConstructRequest(
        project=project.name,
        stack=stack,
        organization=_ORGANIZATION,
        config=project.config,
        configSecretKeys=project.secret_keys,
        dryRun=preview,
        monitorEndpoint=address,
        type=request.type,
        name=request.name,
        parent=request.parent,
        inputs=request.object,
        inputDependencies=dependencies,
        providers=request.providers,
        dependencies=request.dependencies,
        aliases=request.aliases,
        protect=request.protect,
        retainOnDelete=request.retainOnDelete,
    )
