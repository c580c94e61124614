"""Registration of a resource, parsed from the program's request.

Unsupported options of a resource are refused by name, and never ignored silently.
"""

import re
from dataclasses import dataclass

from pulumi.runtime.proto import alias_pb2, resource_pb2

from tools.console import UserError
from tools.engine.local.aliases import Alias
from tools.engine.local.helm.release_inputs import RELEASE_TYPE, VALUE_FILES
from tools.engine.local.state import Resource, Timeouts
from tools.engine.protocol import unsupported
from tools.engine.values import Properties, from_struct

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
    """A resource that the program registers."""

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

    def resource(self, urn: str, parent: Resource | None) -> Resource:
        """Return the resource. If the registration does not set protection, it is the parent's."""
        protect, retain = self.protect, self.retain_on_delete
        return Resource(
            urn=urn,
            type=self.type,
            custom=self.custom,
            parent=self.parent,
            provider=self.provider,
            inputs=self.inputs,
            dependencies=self.dependencies,
            property_dependencies=self.property_dependencies,
            protect=bool(parent and parent.protect) if protect is None else protect,
            retain_on_delete=bool(parent and parent.retain_on_delete) if retain is None else retain,
            ignore_changes=self.ignore_changes,
            replace_on_changes=self.replace_on_changes,
            additional_secret_outputs=self.additional_secret_outputs,
            timeouts=self.timeouts,
        )


def read_registration(request: resource_pb2.RegisterResourceRequest) -> ResourceRegistration:
    """Read a request.

    Raises:
        UserError: The request uses an unsupported feature.
    """
    asked = {descriptor.name for descriptor, _ in request.ListFields()}
    if not request.hooks.ListFields():
        asked.discard("hooks")
    names = [name for key, name in _UNSUPPORTED.items() if key in asked]
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
        inputs=_inputs(request),
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


def _inputs(request: resource_pb2.RegisterResourceRequest) -> Properties:
    assets = {VALUE_FILES} if request.type == RELEASE_TYPE else set[str]()
    try:
        return from_struct(request.object, assets=assets)
    except UserError as error:
        raise UserError(unsupported(f"{request.type} {request.name!r}: {error}")) from None


def _seconds(duration: str) -> float:
    """Read a duration as Go writes it: `1h30m`, `90s`."""
    parts = _DURATION.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise UserError(f"custom_timeouts: {duration!r} is not a duration such as 90s or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
