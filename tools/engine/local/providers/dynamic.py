"""Dynamic resources: the SDK's own server in a child process."""

from asyncio.subprocess import Process
from collections.abc import Iterable

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.proto import provider_pb2

from tools.engine.local import child_process
from tools.engine.local.providers.served_provider import ServedProvider
from tools.engine.values import to_struct


class DynamicProvider(ServedProvider):
    """Starts the server with the providers to load, as the SDK has serialized them."""

    async def launch(self, known: Iterable[str]) -> Process:
        """Start the server."""
        return await child_process.start("dynamic", self._project, self._target, lines=known)

    def configuration(self) -> provider_pb2.ConfigureRequest:
        """Return the stack's configuration."""
        config = {key: PropertyValue(value) for key, value in self._project.config.items()}
        return provider_pb2.ConfigureRequest(args=to_struct(config), acceptSecrets=False, acceptResources=False)
