# ruff: noqa: N802, ARG002 - names and signatures are gRPC's
"""The engine's side of a Pulumi program's protocol: ResourceMonitor and Engine of `pulumi.runtime.proto`.

Unsupported features of a request are refused by name, and never ignored silently.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import grpc
import grpc.aio
from google.protobuf import empty_pb2
from pulumi.runtime.proto import callback_pb2, engine_pb2, engine_pb2_grpc, resource_pb2, resource_pb2_grpc

from tools.console import UserError
from tools.engine.local.resource_registration import ResourceRegistration, read_registration
from tools.engine.protocol import unsupported
from tools.engine.values import Properties, from_struct, to_struct

MESSAGE_LIMIT_BYTES = 400 * 2**20  # the SDK's own limit
_FEATURES = (
    "secrets",
    "aliasSpecs",
    "deletedWith",
    "replaceWith",
    "transforms",
    "invokeTransforms",
    "resourceHooks",
    "errorHooks",
)
"""Features that the SDK asks for. All but the first two are announced only to be refused by name here."""
_FEATURE_IDS = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_STATE_MIGRATIONS,
)


@dataclass(frozen=True, kw_only=True)
class Registered:
    """Answer to a registration. Without `ok`, the program sees unknown outputs."""

    urn: str
    id: str = ""
    outputs: Properties = field(default_factory=dict)
    ok: bool = True


class Engine(Protocol):
    """Engine behind the servicer."""

    async def register(self, registration: ResourceRegistration) -> Registered:
        """Make a resource."""
        ...

    async def construct(self, request: resource_pb2.RegisterResourceRequest) -> Registered:
        """Make a plugin create a component of its package."""
        ...

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        """Record a component's outputs."""
        ...

    async def read(self, urn: str, request: resource_pb2.ReadResourceRequest) -> Properties:
        """Return the properties of a reference to another stack, or of an existing object."""
        ...

    def log(self, severity: int, message: str, urn: str) -> None:
        """Print a message of the program."""
        ...

    def refuse(self, urn: str, message: str) -> None:
        """Record the refusal of an unsupported feature."""
        ...


Context = grpc.aio.ServicerContext[object, object]


class Servicer(resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer):
    """Both services of the engine, on one port."""

    def __init__(self, engine: Engine, urn_of: Callable[[str, str, str], str]) -> None:
        self._engine = engine
        self._urn_of = urn_of
        self._root = ""

    async def GetDeploymentInfo(self, request: empty_pb2.Empty, context: Context) -> resource_pb2.DeploymentInfo:
        """Announce the features that the SDK sends."""
        return resource_pb2.DeploymentInfo(supportedFeatures=_FEATURE_IDS)

    async def SupportsFeature(
        self, request: resource_pb2.SupportsFeatureRequest, context: Context
    ) -> resource_pb2.SupportsFeatureResponse:
        """Announce the features that an older SDK sends."""
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in _FEATURES)

    async def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest, context: Context
    ) -> resource_pb2.RegisterResourceResponse:
        """Make a resource."""
        try:
            asked = read_registration(request)
            registered = await (self._engine.construct(request) if request.remote else self._engine.register(asked))
        except UserError as error:
            urn = self._urn_of(request.parent, request.type, request.name)
            self._engine.refuse(urn, str(error))
            registered = Registered(urn=urn, ok=False)
        return resource_pb2.RegisterResourceResponse(
            urn=registered.urn,
            id=registered.id,
            object=to_struct(registered.outputs),
            result=resource_pb2.SUCCESS if registered.ok else resource_pb2.FAIL,
        )

    async def RegisterResourceOutputs(
        self, request: resource_pb2.RegisterResourceOutputsRequest, context: Context
    ) -> empty_pb2.Empty:
        """Record a component's outputs."""
        self._engine.register_outputs(request.urn, from_struct(request.outputs))
        return empty_pb2.Empty()

    async def SignalAndWaitForShutdown(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """Let the program end, as the engine needs none of its services."""
        return empty_pb2.Empty()

    async def RegisterPackage(self, request: resource_pb2.RegisterPackageRequest, context: Context) -> NoReturn:
        """Refuse parameterized packages."""
        await self._refuse(context, f"package {request.name}: parameterized packages are not supported")

    async def Invoke(self, request: resource_pb2.ResourceInvokeRequest, context: Context) -> NoReturn:
        """Refuse provider functions."""
        await self._refuse(context, f"function {request.tok}: provider functions are not supported")

    async def Call(self, request: resource_pb2.ResourceCallRequest, context: Context) -> NoReturn:
        """Refuse methods of resources."""
        await self._refuse(context, f"method {request.tok}: methods of resources are not supported")

    async def ReadResource(
        self, request: resource_pb2.ReadResourceRequest, context: Context
    ) -> resource_pb2.ReadResourceResponse:
        """Read the outputs of another stack, or an existing object."""
        urn = self._urn_of(request.parent, request.type, request.name)
        try:
            properties = await self._engine.read(urn, request)
        except UserError as error:
            self._engine.refuse(urn, str(error))
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        return resource_pb2.ReadResourceResponse(urn=urn, properties=to_struct(properties))

    async def RegisterStackTransform(self, request: callback_pb2.Callback, context: Context) -> NoReturn:
        """Refuse stack transforms."""
        await self._refuse(context, "stack transforms are not supported")

    async def RegisterStackInvokeTransform(self, request: callback_pb2.Callback, context: Context) -> NoReturn:
        """Refuse invoke transforms."""
        await self._refuse(context, "invoke transforms are not supported")

    async def RegisterResourceHook(
        self, request: resource_pb2.RegisterResourceHookRequest, context: Context
    ) -> NoReturn:
        """Refuse resource hooks."""
        await self._refuse(context, f"resource hook {request.name!r}: hooks are not supported")

    async def RegisterErrorHook(self, request: resource_pb2.RegisterErrorHookRequest, context: Context) -> NoReturn:
        """Refuse error hooks."""
        await self._refuse(context, f"error hook {request.name!r}: hooks are not supported")

    async def Log(self, request: engine_pb2.LogRequest, context: Context) -> empty_pb2.Empty:
        """Print a message of the program."""
        self._engine.log(request.severity, request.message, request.urn)
        return empty_pb2.Empty()

    async def GetRootResource(
        self, request: engine_pb2.GetRootResourceRequest, context: Context
    ) -> engine_pb2.GetRootResourceResponse:
        """Return the URN of the stack."""
        return engine_pb2.GetRootResourceResponse(urn=self._root)

    async def SetRootResource(
        self, request: engine_pb2.SetRootResourceRequest, context: Context
    ) -> engine_pb2.SetRootResourceResponse:
        """Record the URN of the stack."""
        self._root = request.urn
        return engine_pb2.SetRootResourceResponse()

    async def RequirePulumiVersion(
        self, request: engine_pb2.RequirePulumiVersionRequest, context: Context
    ) -> engine_pb2.RequirePulumiVersionResponse:
        """Accept any version, as this engine has no Pulumi version, and refuses unsupported features by name."""
        return engine_pb2.RequirePulumiVersionResponse()

    async def _refuse(self, context: Context, message: str) -> NoReturn:
        text = unsupported(message)
        self._engine.refuse("", text)
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        raise AssertionError("abort raises")


async def serve(servicer: Servicer) -> tuple[grpc.aio.Server, str]:
    """Start the server on a free port of the loopback interface; return the server and its address."""
    options: Sequence[tuple[str, int]] = [
        ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES), ("grpc.max_send_message_length", -1),
    ]  # fmt: skip
    server = grpc.aio.server(options=options)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(servicer, server)
    engine_pb2_grpc.add_EngineServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, f"127.0.0.1:{port}"
