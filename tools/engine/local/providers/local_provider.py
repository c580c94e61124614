"""Base of the local engine's providers: the SDK's provider interface, and an error for half-made resources."""

from collections.abc import Callable, Sequence

from pulumi.provider.experimental import provider as api

from tools.console import UserError
from tools.engine.values import Properties


def type_of(urn: str) -> str:
    """Return the type in a URN, without the types of its parents."""
    return urn.split("::")[2].rpartition("$")[2]


Progress = Callable[[str, str], None]
"""Function that prints a line below the resource of a URN."""


class InitError(UserError):
    """An existing resource did not become ready. The next `up` resumes the wait."""

    def __init__(
        self, resource_id: str, outputs: Properties, reasons: Sequence[str], inputs: Properties | None = None
    ) -> None:
        super().__init__("\n".join(reasons))
        self.inputs = inputs
        self.resource_id = resource_id
        self.outputs = outputs
        self.reasons = tuple(reasons)


class LocalProvider(api.Provider):
    """Provider in the engine's own process.

    Attributes:
        previews: True if create and update return more than the inputs in a preview.
    """

    previews = False

    async def adopt(self, request: api.CreateRequest) -> api.CreateResponse | None:  # noqa: ARG002 - for others
        """Return the resource of an interrupted create.

        The answer is that of create, or None if no resource can be found.
        """
        return None

    async def resume(self, properties: Properties) -> None:
        """Prepare a resource, whose last operation was cut off, for the next one."""

    async def close(self) -> None:
        """Close connections and end processes."""


class UnconfiguredProvider(LocalProvider):
    """Replacement, in a preview, for a provider whose configuration is unknown."""

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Return the inputs unchanged."""
        return api.CheckResponse(inputs=request.new_inputs)

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:  # noqa: ARG002 - whatever it is
        """Report possible changes."""
        return api.DiffResponse(changes=True)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Return the inputs."""
        return api.CreateResponse(properties=request.properties)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Return the inputs."""
        return api.UpdateResponse(properties=request.news)

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Return the state."""
        return api.ReadResponse(resource_id=request.resource_id, properties=request.properties, inputs=request.inputs)
