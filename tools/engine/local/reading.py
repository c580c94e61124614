"""Existing Kubernetes objects that the program reads."""

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import resource_pb2

from tools.console import UserError
from tools.engine.local.providers.kubernetes_provider import KubernetesProvider
from tools.engine.local.providers.local_provider import UnconfiguredProvider
from tools.engine.local.run_context import Run
from tools.engine.local.state import Resource
from tools.engine.protocol import unsupported
from tools.engine.values import Properties


async def read(run: Run, urn: str, request: resource_pb2.ReadResourceRequest) -> Properties:
    """Return the properties of a live object, or unknown ones if a preview does not know its cluster yet.

    Raises:
        UserError: The object is not there, or is of a package whose resources cannot be read.
    """
    what = f"{request.type}.get({request.name!r})"
    package, module, kind = request.type.split(":")
    asked = Resource(urn=urn, type=request.type, custom=True, id=request.id, provider=request.provider)
    provider = run.provider_of(asked)
    if isinstance(provider, UnconfiguredProvider):
        return {key: PropertyValue.computed() for key in request.properties}
    if not isinstance(provider, KubernetesProvider):
        raise UserError(unsupported(f"{what}: reading resources of {package} is not supported"))
    inputs = {"apiVersion": PropertyValue(module.removeprefix("core/")), "kind": PropertyValue(kind)}
    answer = await provider.read(api.ReadRequest(urn, request.id, {}, inputs))
    if not answer.resource_id:
        raise UserError(f"{what}: there is no {kind} {request.id!r}. Create it, or correct the name, and run again.")
    return answer.properties
