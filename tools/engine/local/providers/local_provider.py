"""What all providers of the local engine share: the SDK's public provider interface, and two ways to fail."""

from collections.abc import Callable, Sequence

from pulumi.provider.experimental import provider as api

from tools.console import UserError
from tools.engine.values import Properties


def type_of(urn: str) -> str:
    """Return the type in a URN, without the types of its parents that the SDK's requests have before it."""
    return urn.split("::")[2].rpartition("$")[2]


Progress = Callable[[str, str], None]
"""Shows a line under the resource of a URN."""


class InitError(UserError):
    """The resource is there, but did not become what it should be. The next `up` goes on waiting for it."""

    def __init__(
        self, resource_id: str, outputs: Properties, reasons: Sequence[str], inputs: Properties | None = None
    ) -> None:
        super().__init__("\n".join(reasons))
        self.inputs = inputs
        self.resource_id = resource_id
        self.outputs = outputs
        self.reasons = tuple(reasons)


class LocalProvider(api.Provider):
    """A provider in the engine's own process.

    Attributes:
        previews: Whether create and update know in a preview more than the inputs.
    """

    previews = False

    async def adopt(self, request: api.CreateRequest) -> api.CreateResponse | None:  # noqa: ARG002 - for others
        """Look whether a create that was cut off has made its resource.

        The answer is what create would have answered, or None if there is nothing, or nothing that can be found.
        """
        return None

    async def close(self) -> None:
        """Let go of connections and processes."""


class UnconfiguredProvider(LocalProvider):
    """Stands in, in a preview, for a provider whose configuration will be known only later."""

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Take the inputs as they are."""
        return api.CheckResponse(inputs=request.new_inputs)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:  # noqa: ARG002 - whatever it is
        """Say that there may be changes."""
        return api.DiffResponse(changes=True)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Know nothing but the inputs."""
        return api.CreateResponse(properties=request.properties)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Know nothing but the inputs."""
        return api.UpdateResponse(properties=request.news)

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Know nothing but the state."""
        return api.ReadResponse(resource_id=request.resource_id, properties=request.properties, inputs=request.inputs)
