"""What all providers of the local engine share: the SDK's public provider interface, and two ways to fail."""

from collections.abc import Callable, Sequence

from pulumi.provider.experimental.provider import (
    CheckRequest, CheckResponse, CreateRequest, CreateResponse, DiffRequest, DiffResponse, Provider, ReadRequest,
    ReadResponse, UpdateRequest, UpdateResponse,
)  # fmt: skip

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


class LocalProvider(Provider):
    """A provider in the engine's own process.

    Attributes:
        previews: Whether create and update know in a preview more than the inputs.
    """

    previews = False

    async def adopt(self, request: CreateRequest) -> CreateResponse | None:
        """Look whether a create that was cut off has made its resource; answer as create would have, None if it has not."""
        return None

    async def close(self) -> None:
        """Let go of connections and processes."""


class UnconfiguredProvider(LocalProvider):
    """Stands in, in a preview, for a provider whose configuration will be known only later."""

    async def check(self, request: CheckRequest) -> CheckResponse:
        """Take the inputs as they are."""
        return CheckResponse(inputs=request.new_inputs)

    async def diff(self, request: DiffRequest) -> DiffResponse:
        """Say that there may be changes."""
        return DiffResponse(changes=True)

    async def create(self, request: CreateRequest) -> CreateResponse:
        """Know nothing but the inputs."""
        return CreateResponse(properties=request.properties)

    async def update(self, request: UpdateRequest) -> UpdateResponse:
        """Know nothing but the inputs."""
        return UpdateResponse(properties=request.news)

    async def read(self, request: ReadRequest) -> ReadResponse:
        """Know nothing but the state."""
        return ReadResponse(
            resource_id=request.resource_id, properties=request.properties, inputs=request.inputs
        )
