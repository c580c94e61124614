"""Helm releases: created, compared, upgraded and removed by the helm binary, as pulumi-kubernetes does."""

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

import yaml
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine.kubernetes import objects
from tools.engine.local.helm import release_diff, release_inputs, release_store
from tools.engine.local.helm.chart_place import chart_place
from tools.engine.local.helm.helm_commands import Helm, HelmError
from tools.engine.local.helm.redaction import redacted, secret_texts
from tools.engine.local.helm.release_inputs import VALUE_FILES
from tools.engine.local.helm.release_store import StoredRelease
from tools.engine.local.helm.value_files import read_value_files
from tools.engine.local.helm.wait_report import WaitReport
from tools.engine.local.providers.kubernetes_provider import KubernetesProvider
from tools.engine.local.providers.local_provider import InitError, LocalProvider, Progress
from tools.engine.values import UNKNOWN, PlainMap, Properties, has_unknown, mark_secrets, plain_map, properties_of

_OUTPUTS_ALONE = ("resourceNames", "status")
_HIDDEN = "__"


class HelmReleaseProvider(LocalProvider):
    """Manages releases in one cluster.

    Args:
        kubernetes: Provider of objects in that cluster.
        folder: Folder of the program, where relative paths of charts start.
        identity: Identity of this stack's state, for the owner's label of releases.
        progress: Prints lines under a resource.
    """

    previews = True

    def __init__(self, kubernetes: KubernetesProvider, folder: Path, identity: str, progress: Progress) -> None:
        self._kubernetes = kubernetes
        self._helm = Helm(kubernetes.settings, kubernetes.environment, folder)
        self._identity = identity
        self._progress = progress

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Fill in defaults and the version of the chart, and refuse unsupported inputs."""
        asked = {key: value for key, value in request.new_inputs.items() if key != VALUE_FILES}
        given = _visible(asked)
        if failures := [api.CheckFailure(path, reason) for path, reason in release_inputs.problems(given)]:
            return api.CheckResponse(inputs=request.new_inputs, failures=failures)
        if not given.get("name"):
            old = plain_map(request.old_inputs).get("name")
            given["name"] = old or objects.autoname(request.name, request.random_seed)
        inputs = release_inputs.complete(
            given, self._kubernetes.default_namespace if not given.get("namespace") else ""
        )
        below = read_value_files(request.new_inputs.get(VALUE_FILES), self._helm.folder)
        if below and isinstance(values := inputs["values"], Mapping):
            inputs["values"] = release_store.merged(below, values)
        if not has_unknown(inputs):
            try:
                described = await self._helm.show_chart(chart_place(inputs))
            except HelmError as error:
                reason = f"{redacted(str(error), secret_texts(asked))}; check the chart's name, version and repository"
                return api.CheckResponse(inputs=request.new_inputs, failures=[api.CheckFailure("chart", reason)])
            inputs["version"] = str(yaml.safe_load(described)["version"])
        return api.CheckResponse(inputs=mark_secrets(properties_of(inputs), asked))

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Compare the release with new inputs."""
        live, new = plain_map(request.old_state), plain_map(request.new_inputs)
        if "version" in request.ignore_changes:
            new["version"] = live.get("version")
        found = release_diff.compare(live, _inputs_in(request.old_state), new)
        replaces = [path for path, property_diff in found.items() if property_diff.kind.name.endswith("_REPLACE")]
        return api.DiffResponse(changes=bool(found), replaces=replaces, detailed_diff=found)

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Install the chart. An existing release of that name is not touched."""
        if request.preview:
            return api.CreateResponse(properties=_foreseen(request.properties))
        inputs, owner = plain_map(request.properties), self._owner(request.urn)
        flags = [*release_inputs.install_flags(inputs), f"--labels={release_store.OWNER_LABEL}={owner}"]
        report = self._report(request.urn, inputs)
        try:
            await self._helm.install(_id(inputs), chart_place(inputs), flags, inputs["values"], report.read)
        except HelmError as error:
            stored = await self._stored(inputs)
            if stored is None or stored.owner != owner:
                raise _error(request.properties, [str(error)]) from None
            raise await _failed(request.properties, stored, error, report) from None
        return api.CreateResponse(_id(inputs), _checkpoint(request.properties, inputs, await self._there(inputs)))

    async def adopt(self, request: api.CreateRequest) -> api.CreateResponse | None:
        """Return the release of an interrupted create, if it has this resource's label."""
        inputs = plain_map(request.properties)
        stored = await self._stored(inputs)
        if stored is None or stored.owner != self._owner(request.urn):
            return None
        return api.CreateResponse(_id(inputs), _checkpoint(request.properties, inputs, stored))

    async def resume(self, properties: Properties) -> None:
        """Record that a killed operation has failed, as helm would take it for a running one, and refuse others."""
        stored = await self._stored(plain_map(properties))
        if stored is not None and stored.pending:
            await release_store.mark_failed(self._kubernetes.cluster, stored)

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Upgrade the release."""
        if request.preview:
            return api.UpdateResponse(properties=_foreseen(request.news))
        inputs = plain_map(request.news)
        before, report = await self._stored(inputs), self._report(request.urn, inputs)
        flags = release_inputs.upgrade_flags(inputs)
        try:
            await self._helm.upgrade(_id(inputs), chart_place(inputs), flags, inputs["values"], report.read)
        except HelmError as error:
            stored = await self._stored(inputs)
            if stored is None or (before is not None and stored.revision == before.revision):
                raise _error(request.news, [str(error)]) from None
            raise await _failed(request.news, stored, error, report) from None
        return api.UpdateResponse(_checkpoint(request.news, inputs, await self._there(inputs)))

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Read the release. Values changed by hand are in the outputs, so that the next diff finds them."""
        before = _visible(request.properties)
        stored = await self._stored(before)
        if stored is None:
            return api.ReadResponse(resource_id="")
        return api.ReadResponse(request.resource_id, _checkpoint(request.inputs, before, stored), request.inputs)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Uninstall the release."""
        inputs = plain_map(request.properties)
        report = self._report(request.urn, inputs)
        flags = release_inputs.uninstall_flags(inputs)
        try:
            remarks = await self._helm.uninstall(_id(inputs), flags, report.read)
        except HelmError as error:
            raise _error(request.properties, [str(error)]) from None
        for line in filter(None, remarks.splitlines()[:-1]):  # the last one repeats that the release has gone
            self._progress(request.urn, line)

    async def _stored(self, inputs: PlainMap) -> StoredRelease | None:
        return await release_store.newest(self._kubernetes.cluster, str(inputs["namespace"]), str(inputs["name"]))

    async def _there(self, inputs: PlainMap) -> StoredRelease:
        stored = await self._stored(inputs)
        if stored is None:
            raise UserError(f"helm release {_id(inputs)} has gone at once: someone else uninstalled it. Rerun.")
        return stored

    def _report(self, urn: str, inputs: PlainMap) -> WaitReport:
        return WaitReport(self._kubernetes.cluster, str(inputs["namespace"]), lambda line: self._progress(urn, line))

    def _owner(self, urn: str) -> str:
        return hashlib.sha256(f"{self._identity} {urn}".encode()).hexdigest()[:16]


def _visible(properties: Properties) -> PlainMap:
    return {key: value for key, value in plain_map(properties).items() if not key.startswith(_HIDDEN)}


def _id(inputs: PlainMap) -> str:
    return f"{inputs['namespace']}/{inputs['name']}"


def _inputs_in(outputs: Properties) -> PlainMap:
    kept = outputs.get(objects.INPUTS)
    return plain_map(kept.value) if kept is not None and isinstance(kept.value, Mapping) else {}


def _foreseen(inputs: Properties) -> Properties:
    unknown = properties_of(dict.fromkeys(_OUTPUTS_ALONE, UNKNOWN))
    return {**inputs, **unknown, objects.INPUTS: _sealed(inputs)}


def _checkpoint(properties: Properties, inputs: PlainMap, stored: StoredRelease) -> Properties:
    """Return the outputs, with the inputs that made them as a secret, as in pulumi-kubernetes."""
    found = mark_secrets(properties_of(release_store.outputs(inputs, stored)), properties)
    return {**found, objects.INPUTS: _sealed(properties)}


def _sealed(inputs: Properties) -> PropertyValue:
    """Return inputs as one secret, without marks inside, as a state has no nested secrets."""
    return PropertyValue(properties_of(plain_map(inputs))).with_secret(True)


async def _failed(properties: Properties, stored: StoredRelease, error: HelmError, report: WaitReport) -> InitError:
    """Return the error for an existing release that has failed."""
    inputs = plain_map(properties)
    title = f"helm release {_id(inputs)}, revision {stored.revision}, has status {stored.status}: {error}"
    lines = _redacted(properties, [title, *await report.problems()])
    return InitError(_id(inputs), _checkpoint(properties, inputs, stored), lines)


def _error(properties: Properties, lines: Collection[str]) -> UserError:
    return UserError("\n".join(_redacted(properties, lines)))


def _redacted(properties: Properties, lines: Collection[str]) -> list[str]:
    secrets = secret_texts(properties)
    return [part for line in lines for part in redacted(line, secrets).splitlines()]
