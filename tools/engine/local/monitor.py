# ruff: noqa: N802, ARG002 - names and signatures are gRPC's
"""Engine's side of the protocol of a Pulumi program: ResourceMonitor and Engine of `pulumi.runtime.proto`.

Unsupported features of a request are refused by name, so that nothing is ignored in silence.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import (
    alias_pb2,
    callback_pb2,
    engine_pb2,
    engine_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
)  # fmt: skip

from tools.console import UserError
from tools.engine.local.aliases import Alias
from tools.engine.local.other_stacks import REFERENCE_TYPE
from tools.engine.local.state import Timeouts
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
"""Features that the SDK sends. All but the first two are listed to be refused by name, here and not in the SDK."""
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
_UNSUPPORTED = {
    "importId": "import_",
    "deletedWith": "deleted_with",
    "replace_with": "replace_with",
    "transforms": "transforms",
    "hooks": "hooks",
    "hideDiffs": "hide_diffs",
    "replacement_trigger": "replacement_trigger",
    "state_migrations": "state_migrations",
    "envVarMappings": "env_var_mappings",
    "pluginDownloadURL": "plugin_download_url",
    "pluginChecksums": "plugin_checksums",
}
"""Unsupported resource options: the field of the request, and the name for a user."""
_DURATION = re.compile(r"([\d.]+)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, kw_only=True)
class ResourceRegistration:
    """Resource that the program registers."""

    type: str
    name: str
    custom: bool
    parent: str
    provider: str
    inputs: Properties
    dependencies: tuple[str, ...]
    property_dependencies: dict[str, tuple[str, ...]]
    protect: bool | None
    retain_on_delete: bool | None
    delete_before_replace: bool | None
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    additional_secret_outputs: tuple[str, ...]
    aliases: tuple[Alias, ...]
    timeouts: Timeouts


@dataclass(frozen=True, kw_only=True)
class Registered:
    """Answer to a registration. Without `ok`, outputs stay unknown to the program."""

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
        """Have a plugin make a component of its package."""
        ...

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        """Record a component's outputs."""
        ...

    def read_stack(self, urn: str, name: str) -> Properties:
        """Return the properties of a reference to another stack."""
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
            asked = registration(request)
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
        """Let the program end: the engine needs none of its services."""
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
        """Read the outputs of another stack. Refuse every other `.get()`."""
        if request.type != REFERENCE_TYPE:
            what = f"{request.type}.get({request.name!r})"
            await self._refuse(context, f"{what}: reading resources that are not managed here is not supported")
        urn = self._urn_of(request.parent, request.type, request.name)
        try:
            properties = self._engine.read_stack(urn, request.id)
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
        """Accept any version: this engine has none of Pulumi's, and refuses unsupported features by name."""
        return engine_pb2.RequirePulumiVersionResponse()

    async def _refuse(self, context: Context, message: str) -> NoReturn:
        text = unsupported(message)
        self._engine.refuse("", text)
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        raise AssertionError("abort raises")


def registration(request: resource_pb2.RegisterResourceRequest) -> ResourceRegistration:
    """Read a request.

    Raises:
        UserError: The request uses an unsupported feature.
    """
    asked = {descriptor.name for descriptor, _ in request.ListFields()}
    names = [name for key, name in _UNSUPPORTED.items() if key in asked and not _is_empty_hooks(key, request)]
    if names:
        raise UserError(unsupported(f"{', '.join(names)} on {request.type} {request.name!r}: not supported"))
    timeouts = request.customTimeouts
    if timeouts.read:
        raise UserError(unsupported(f"custom_timeouts.read on {request.type} {request.name!r}: not supported"))
    return ResourceRegistration(
        type=request.type,
        name=request.name,
        custom=request.custom,
        parent=request.parent,
        provider=request.provider,
        inputs=_inputs(request.object, f"{request.type} {request.name!r}"),
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={k: tuple(sorted(v.urns)) for k, v in sorted(request.propertyDependencies.items())},
        protect=request.protect if request.HasField("protect") else None,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        aliases=tuple(read_alias(alias) for alias in request.aliases),
        timeouts=Timeouts(
            create=_seconds(timeouts.create), update=_seconds(timeouts.update), delete=_seconds(timeouts.delete)
        ),
    )


def read_alias(alias: alias_pb2.Alias) -> Alias:
    """Return an alias of a registration."""
    spec = alias.spec
    return Alias(
        urn=alias.urn,
        name=spec.name,
        type=spec.type,
        stack=spec.stack,
        project=spec.project,
        parent=spec.parentUrn,
        no_parent=spec.noParent,
    )


def _is_empty_hooks(key: str, request: resource_pb2.RegisterResourceRequest) -> bool:
    return key == "hooks" and not request.hooks.ListFields()


def _inputs(struct: struct_pb2.Struct, where: str) -> Properties:
    try:
        return from_struct(struct)
    except UserError as error:
        raise UserError(unsupported(f"{where}: {error}")) from None


def _seconds(duration: str) -> float:
    """Read a duration as Go writes it: `1h30m`, `90s`."""
    parts = _DURATION.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise UserError(f"custom_timeouts: {duration!r} is not a duration such as 90s or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


async def serve(servicer: Servicer) -> tuple[grpc.aio.Server, str]:
    """Serve on a free port of the loopback interface; return the server and its address."""
    options: Sequence[tuple[str, int]] = [
        ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES), ("grpc.max_send_message_length", -1),
    ]  # fmt: skip
    server = grpc.aio.server(options=options)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(servicer, server)
    engine_pb2_grpc.add_EngineServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, f"127.0.0.1:{port}"
