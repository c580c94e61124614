"""Run a program against mocks that create nothing, and record what it registers."""

import asyncio
import base64
import contextvars
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pulumi
from google.protobuf import empty_pb2
from pulumi.runtime import config as stack_config
from pulumi.runtime import mocks, rpc, settings, stack
from pulumi.runtime.proto import resource_pb2

PROJECT = "project"
"""Name of the project of every deployment."""
STACK = "test"
"""Name of the stack of every deployment."""

_STACK_TYPE = "pulumi:pulumi:Stack"
_REFERENCE_TYPE = "pulumi:pulumi:StackReference"

Outputs = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
"""Function from a resource's type, name and inputs to the outputs that its provider adds."""


@dataclass(frozen=True)
class Secret:
    """A value that Pulumi encrypts in its state."""

    value: Any = field(repr=False)
    """The value in plain text, for an assertion."""


@dataclass(frozen=True)
class Recorded:
    """A registered resource."""

    type: str
    """Type token, such as `kubernetes:apps/v1:StatefulSet`."""
    name: str
    """Logical name."""
    parent: str
    """Logical name of the parent; empty for the stack."""
    inputs: Mapping[str, Any]
    """Inputs by the provider's keys, camelCase for Kubernetes. A secret value is a `Secret`."""
    request: resource_pb2.RegisterResourceRequest
    """The registration as sent, with its options."""

    @property
    def identity(self) -> tuple[str, str]:
        """Type token and logical name, which no other resource of the program has."""
        return self.type, self.name

    @property
    def dependencies(self) -> list[tuple[str, str]]:
        """Identities of the resources that Pulumi creates before this one, without those that they depend on."""
        return [identity_in(urn) for urn in self.request.dependencies]


@dataclass(frozen=True)
class Deployment:
    """Registrations of a program."""

    recorded: tuple[Recorded, ...]
    """All resources, including components but not the stack, in the order in which the program creates them. Pulumi
    itself registers them in any order."""
    exports: Mapping[str, Any]
    """Exports of the program. A secret value is a `Secret`."""

    def resources(self, type_: str = "") -> tuple[Recorded, ...]:
        """Return all resources, or those whose type ends with `type_`."""
        return tuple(resource for resource in self.recorded if resource.type.endswith(type_))

    def one(self, name: str, type_: str = "") -> Recorded:
        """Return the resource with a logical name, and with a type if one is given.

        Raises:
            LookupError: None, or more than one. The message lists the names.
        """
        found = [resource for resource in self.resources(type_) if resource.name == name]
        if len(found) != 1:
            names = ", ".join(sorted({resource.name for resource in self.resources(type_)}))
            raise LookupError(f"{len(found)} resources are named {name!r}. There are: {names}.")
        return found[0]

    def request(self, name: str, type_: str = "") -> resource_pb2.RegisterResourceRequest:
        """Return a resource's registration with its options: protect, dependencies, aliases and so on."""
        return self.one(name, type_).request

    def waits_for(self, resource: Recorded) -> tuple[Recorded, ...]:
        """Return the resources created before `resource` and deleted after it, directly or through others."""
        known = {resource.identity: resource for resource in self.recorded}
        found: set[tuple[str, str]] = set()
        looked_at = [resource]
        while looked_at:
            new = {*looked_at.pop().dependencies} & known.keys() - found
            found |= new
            looked_at += [known[identity] for identity in new]
        return tuple(resource for resource in self.recorded if resource.identity in found)


def identity_in(urn: str) -> tuple[str, str]:
    """Return the type token and the logical name of a resource."""
    types, name = urn.split("::", 3)[2:]
    return types.rpartition("$")[2], name


def random_bytes(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer for RandomBytes and RandomPassword of pulumi-random, the same for a name. Other types get nothing."""
    if type_ not in {"random:index/randomBytes:RandomBytes", "random:index/randomPassword:RandomPassword"}:
        return {}
    value = hashlib.shake_256(name.encode()).digest(int(inputs["length"]))
    if type_.endswith(":RandomPassword"):
        return {"result": value.hex()[: int(inputs["length"])]}
    return {"base64": base64.b64encode(value).decode(), "hex": value.hex()}


def deploy(
    program: Callable[[], object],
    *,
    project: str = PROJECT,
    stack_name: str = STACK,
    outputs: Outputs = random_bytes,
    preview: bool = False,
    config: Mapping[str, str] | None = None,
    stacks: Mapping[str, Mapping[str, Any]] | None = None,
) -> Deployment:
    """Run `program` as Pulumi would, against mocks that create nothing, and return its registrations.

    Args:
        program: Creates resources. Its return value is ignored.
        project: Name of the project, as the program sees it.
        stack_name: Name of the stack, as the program sees it.
        outputs: Outputs that providers add to the inputs. Default: generated keys.
        preview: Run as in a preview.
        config: The stack's configuration, keys with their namespace.
        stacks: Outputs of other stacks, by the names with which the program refers to these: `org/project/stack`. A
            secret one is a `Secret`.

    Raises:
        Exception: Any exception of the program.
    """
    monitor = _Monitor(_Mocks(outputs, stacks or {}))

    def run() -> None:
        with _loop_of_thread() as loop:
            stack_config.set_all_config(dict(config or {}))
            settings.configure(_settings(monitor, project, stack_name, preview=preview))
            # Outputs from outside of any deployment wait for loops that are closed.
            settings.SETTINGS.outputs = set()
            loop.run_until_complete(stack.run_in_stack(lambda: monitor.watch(program)))

    contextvars.copy_context().run(run)  # Pulumi's settings live in the context, which ends here
    return Deployment(tuple(sorted(monitor.recorded, key=monitor.place)), monitor.exports)


def _settings(monitor: "_Monitor", project: str, stack_name: str, *, preview: bool) -> settings.Settings:
    """Return the settings of `pulumi.runtime.set_mocks`, without its stack, as exports need a separate one."""
    features = set(mocks.MockMonitor.GetDeploymentInfo(monitor, empty_pb2.Empty()).supportedFeatures)
    return mocks.MockSettings(
        monitor=monitor,
        monitor_features=features,
        engine=mocks.MockEngine(None),
        project=project,
        stack=stack_name,
        dry_run=preview,
        organization="organization",
        callbacks=None,
    )


class _Mocks(mocks.Mocks):
    """Provider that returns its inputs."""

    def __init__(self, outputs: Outputs, stacks: Mapping[str, Mapping[str, Any]]) -> None:
        self._outputs = outputs
        self._stacks = stacks

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        """Refuse provider calls, which the package does not make."""
        raise LookupError(f"no answer is known for the call {args.token}")

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Return the inputs as outputs, with the test's additions."""
        if args.typ == _REFERENCE_TYPE:
            return str(args.resource_id), self._stack(str(args.resource_id))
        return f"{args.name}-id", {**args.inputs, **self._outputs(args.typ, args.name, args.inputs)}

    def _stack(self, name: str) -> dict[str, Any]:
        """Return the outputs of a StackReference."""
        if name not in self._stacks:
            there = ", ".join(sorted(self._stacks)) or "none"
            raise LookupError(f"no outputs are given for the stack {name!r}. Given to `stacks`: {there}.")
        outputs = self._stacks[name]
        return {
            "name": name,
            "outputs": {key: output.value if isinstance(output, Secret) else output for key, output in outputs.items()},
            "secretOutputNames": [key for key, output in outputs.items() if isinstance(output, Secret)],
        }


class _Monitor(mocks.MockMonitor):
    """Monitor that keeps the raw requests, as mocks do not see a resource's options."""

    def __init__(self, answers: mocks.Mocks) -> None:
        super().__init__(answers)
        self.recorded: list[Recorded] = []
        self.exports: dict[str, Any] = {}
        self._places: dict[tuple[str, str], int] = {}

    def watch(self, program: Callable[[], object]) -> None:
        """Run a program, and record the order in which it creates resources, as threads register them in any order.

        Its return value is discarded: Pulumi would take an awaitable for the program's continuation.
        """
        stack.register_stack_transformation(self._note)
        program()

    def _note(self, created: pulumi.ResourceTransformationArgs) -> None:
        """Record the position of a resource, as a transformation that changes nothing."""
        self._places.setdefault((created.type_, created.name), len(self._places))

    def place(self, resource: Recorded) -> int:
        """Return the position of a resource in the order of creation; the last one for another program's child."""
        return self._places.get(resource.identity, len(self._places))

    def RegisterResource(  # noqa: N802 the protocol's name
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        if request.type != _STACK_TYPE:
            _, _, parent_type, parent = request.parent.rsplit("::", 3) if request.parent else ("", "", "", "")
            inputs = _plain(rpc.deserialize_properties(request.object))
            self.recorded.append(
                Recorded(request.type, request.name, "" if parent_type == _STACK_TYPE else parent, inputs, request)
            )
        with _loop_of_thread():
            response: resource_pb2.RegisterResourceResponse = mocks.MockMonitor.RegisterResource(self, request)
        return response

    def ReadResource(  # noqa: N802 the protocol's name
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        with _loop_of_thread():
            response: resource_pb2.ReadResourceResponse = mocks.MockMonitor.ReadResource(self, request)
        return response

    def RegisterResourceOutputs(  # noqa: N802 the protocol's name
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        if request.urn.split("::")[-2] == _STACK_TYPE:
            self.exports |= _plain(rpc.deserialize_properties(request.outputs))
        return empty_pb2.Empty()


@contextmanager
def _loop_of_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Give this thread an event loop, and close it: Pulumi's mocks would leave one open in every thread."""
    loop = asyncio.new_event_loop()
    # A failed program leaves futures that no one awaits. `deploy` raises the failure itself.
    loop.set_exception_handler(lambda *_: None)
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _plain(value: Any) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values with `Secret` in place of Pulumi's secret marks."""
    if rpc.is_rpc_secret(value):
        return Secret(_plain(rpc.unwrap_rpc_secret(value)))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
