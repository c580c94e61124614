"""Kubernetes objects: created, applied, awaited and deleted as pulumi-kubernetes does."""

import asyncio
import hashlib
from collections.abc import Mapping

from pulumi.provider.experimental import provider as api

from tools.console import UserError
from tools.engine import property_paths
from tools.engine.kubernetes import objects, ownership, provider_settings
from tools.engine.kubernetes.api_client import APPLY, JSON_PATCH, ApiConnection, ApiError, Object, UnreachableError
from tools.engine.kubernetes.provider_settings import KubernetesSettings, other_cluster, settings_of
from tools.engine.local.providers import diff, replacement_rules, waiting
from tools.engine.local.providers.local_provider import InitError, LocalProvider, Progress, type_of
from tools.engine.values import Properties, has_unknown, properties_of

_CREATE_RETRIES_SECONDS = (1, 2, 4, 8, 16)
"""Pauses before retries to create an object whose namespace or definition does not exist yet."""
_TAKE_OVER_TRIES = 5
_REPLACING = {
    api.PropertyDiffKind.ADD_REPLACE,
    api.PropertyDiffKind.DELETE_REPLACE,
    api.PropertyDiffKind.UPDATE_REPLACE,
}


class KubernetesProvider(LocalProvider):
    """Manages objects in one cluster."""

    previews = True

    def __init__(
        self, options: KubernetesSettings, environment: Mapping[str, str], identity: str, progress: Progress
    ) -> None:
        """Create the provider; the first use connects to the cluster.

        Args:
            options: Inputs of the provider.
            environment: Variables that override the caller's, such as KUBECONFIG.
            identity: Identity of this stack's state, for the names of field managers.
            progress: Prints lines under a resource.
        """
        self.settings = options
        self.environment = environment
        self._identity = identity
        self._progress = progress
        self._connection: ApiConnection | None = None

    @property
    def cluster(self) -> ApiConnection:
        """Connection to the cluster."""
        if self._connection is None:
            self._connection = ApiConnection(provider_settings.load(self.settings, self.environment))
        return self._connection

    @property
    def default_namespace(self) -> str:
        """Namespace of objects that name none."""
        return self.settings.namespace or self.cluster.kubeconfig.namespace

    async def check(self, request: api.CheckRequest) -> api.CheckResponse:
        """Fill in name and namespace, and refuse unsupported features."""
        new, old = objects.to_object(request.new_inputs), objects.to_object(request.old_inputs)
        if failures := [api.CheckFailure(path, reason) for path, reason in objects.problems(type_of(request.urn), new)]:
            return api.CheckResponse(inputs=request.new_inputs, failures=failures)
        metadata = new.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            return api.CheckResponse(inputs=request.new_inputs)  # unknown as a whole
        if "name" not in metadata:
            old_name = old.get("metadata", {}).get("name") if objects.annotation(old, objects.AUTONAMED) else None
            metadata["name"] = old_name or objects.autoname(request.name, request.random_seed)
            metadata["annotations"] = {**(metadata.get("annotations") or {}), objects.AUTONAMED: "true"}
        if "namespace" not in metadata and await self._is_namespaced(new["apiVersion"], new["kind"]):
            metadata["namespace"] = self.default_namespace
        return api.CheckResponse(inputs=objects.seal(properties_of(new), request.new_inputs))

    async def _is_namespaced(self, api_version: str, kind: str) -> bool:
        known = objects.built_in_scope(api_version, kind)
        if known is not None:
            return known
        try:
            return (await self.cluster.api_resource(api_version, kind)).namespaced
        except (ApiError, UnreachableError):
            return True  # the definition may come with this very run

    async def diff(self, request: api.DiffRequest) -> api.DiffResponse:
        """Compare old inputs with new ones, by pulumi-kubernetes' rules."""
        wanted = objects.to_object(request.new_inputs)
        before = objects.inputs_in(request.old_state)
        forced = replacement_rules.force_new(
            wanted, config_map_mutable=self.settings.config_map_mutable, secret_mutable=self.settings.secret_mutable
        )
        found = diff.compare(diff.normal(before), diff.normal(wanted), forced)
        ignored = [property_paths.parse(text) for text in request.ignore_changes]
        found = {
            p: d
            for p, d in found.items()
            if not any(property_paths.contains(i, property_paths.parse(p)) for i in ignored)
        }
        replaces = [path for path, change in found.items() if change.kind in _REPLACING]
        return api.DiffResponse(
            changes=bool(found),
            replaces=replaces,
            delete_before_replace=bool(replaces) and replacement_rules.keeps_its_name(before, wanted),
            detailed_diff=found,
        )

    async def create(self, request: api.CreateRequest) -> api.CreateResponse:
        """Create an object and wait until it is ready. An existing one is not touched."""
        wanted = objects.to_object(request.properties)
        if request.preview:
            return api.CreateResponse(properties=await self._preview_create(wanted, request.properties))
        live = await self._create(wanted, request.urn)
        live = await self._await(request, request.properties, wanted, live)
        return api.CreateResponse(objects.id_of(live), objects.checkpoint(live, request.properties))

    async def _preview_create(self, wanted: Object, inputs: Properties) -> Properties:
        if has_unknown(wanted):
            return inputs
        try:
            live = await self._post(wanted, "pulumi-preview", dry_run=True)
        except UnreachableError:
            return inputs
        except ApiError as error:
            # A missing object may come with this very run, and an existing one may be deleted first.
            if error.status in {403, 404, 409}:
                return inputs
            raise
        live.pop("status", None)
        return objects.checkpoint(live, inputs)

    async def _create(self, wanted: Object, urn: str) -> Object:
        manager = self._manager(wanted, urn)
        for pause in (*_CREATE_RETRIES_SECONDS, None):
            try:
                return await self._post(wanted, manager)
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    raise UserError(_already_exists(wanted)) from None
                if error.status != 404 or pause is None:
                    raise
                self._progress(urn, f"trying again in {pause} s: {error}")
                await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    async def _post(self, wanted: Object, manager: str, *, dry_run: bool = False) -> Object:
        kind = await self.cluster.api_resource(wanted["apiVersion"], wanted["kind"])
        query = {"fieldManager": manager, **({"dryRun": "All"} if dry_run else {})}
        path = kind.path(wanted["metadata"].get("namespace", ""))
        return await self.cluster.request("POST", path, wanted, query=query)

    async def adopt(self, request: api.CreateRequest) -> api.CreateResponse | None:
        """Return the object of an interrupted create, if this resource's field manager made it."""
        wanted = objects.to_object(request.properties)
        live = await self._get(wanted)
        if live is None or not ownership.made_by(live, self._manager(wanted, request.urn)):
            return None
        return api.CreateResponse(objects.id_of(live), objects.checkpoint(live, request.properties))

    async def update(self, request: api.UpdateRequest) -> api.UpdateResponse:
        """Apply an object and wait until it is ready."""
        wanted = objects.to_object(request.news)
        if request.preview and has_unknown(wanted):
            return api.UpdateResponse(properties=request.news)
        try:
            before, live = await self._apply(wanted, request)
        except (ApiError, UnreachableError) as error:
            if request.preview and (isinstance(error, UnreachableError) or error.status in {403, 404}):
                return api.UpdateResponse(properties=request.news)
            raise
        if not request.preview:
            live = await self._await(request, request.news, wanted, live, before)
        return api.UpdateResponse(objects.checkpoint(live, request.news))

    async def _apply(self, wanted: Object, request: api.UpdateRequest) -> tuple[Object, Object]:
        before = await self._get(wanted)
        if before is None:
            raise UserError(
                f"{wanted['kind']} {objects.id_of(wanted)} is in the state, but no longer in the cluster. "
                "Run a refresh; the next up creates it again."
            )
        kind = await self.cluster.api_resource(wanted["apiVersion"], wanted["kind"])
        path = kind.path(wanted["metadata"].get("namespace", ""), wanted["metadata"]["name"])
        manager = ownership.local_manager(before, self._manager(wanted, request.urn))
        dry_run = {"dryRun": "All"} if request.preview else {}
        if wanted["kind"] == "CustomResourceDefinition":
            wanted["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
            query = {"fieldManager": manager, **dry_run}
            return before, await self.cluster.request("PUT", path, wanted, query=query)
        force = self.settings.patch_force or objects.annotation(wanted, objects.PATCH_FORCE) == "true"
        if request.preview:
            force = force or bool(ownership.adoption_patch(before, manager))
        else:
            before = await self._take_over(wanted, before, path, manager)
        wanted = ownership.without_ignored(wanted, before, manager, request.ignore_changes)
        query = {"fieldManager": manager, "force": str(force).lower(), **dry_run}
        try:
            return before, await self.cluster.request("PATCH", path, wanted, content_type=APPLY, query=query)
        except ApiError as error:
            if error.status == 409:
                raise UserError(
                    f"{error}. Leave those fields out (ignore_changes), or take them over with the annotation "
                    f"{objects.PATCH_FORCE}: 'true'."
                ) from None
            raise

    async def _take_over(self, wanted: Object, before: Object, path: str, manager: str) -> Object:
        """Make apply manage the fields that create has set. Controllers may change the object at the same time."""
        for tries_left in reversed(range(_TAKE_OVER_TRIES)):
            patch = ownership.adoption_patch(before, manager)
            try:
                return await self.cluster.request("PATCH", path, patch, content_type=JSON_PATCH) if patch else before
            except ApiError as error:
                if error.reason != "Conflict" or not tries_left:
                    raise
            before = await self._get(wanted) or before
        raise AssertionError("the last try returns or raises")

    async def _await(
        self,
        request: api.CreateRequest | api.UpdateRequest,
        inputs: Properties,
        wanted: Object,
        live: Object,
        before: Object | None = None,
    ) -> Object:
        if objects.skips_await(wanted):
            return live
        seconds = request.timeout or _annotated_timeout(wanted)
        try:
            return await waiting.until_ready(
                self.cluster, live, before, seconds, lambda line: self._progress(request.urn, line)
            )
        except waiting.AwaitError as error:
            outputs = objects.checkpoint(error.live, inputs)
            raise InitError(objects.id_of(live), outputs, str(error).splitlines()) from None

    async def read(self, request: api.ReadRequest) -> api.ReadResponse:
        """Read an object. Inputs take their live values."""
        namespace, _, name = request.resource_id.rpartition("/")
        asked = objects.to_object(request.inputs)
        try:
            live = await self.cluster.get(asked["apiVersion"], asked["kind"], namespace, name)
        except ApiError as error:
            if error.reason != "NoMatch":
                raise
            live = None
        if live is None:
            return api.ReadResponse(resource_id="")
        inputs = objects.seal(properties_of(diff.read_inputs(live, request.inputs)), request.inputs)
        outputs = objects.checkpoint(live, inputs)
        if not objects.skips_await(asked):
            state = await waiting.check_now(self.cluster, live)
            if not state.ready:
                raise InitError(request.resource_id, outputs, [state.message], inputs)
        return api.ReadResponse(request.resource_id, outputs, inputs)

    async def delete(self, request: api.DeleteRequest) -> None:
        """Delete an object and wait for its end."""
        asked = objects.inputs_in(request.properties)
        namespace, _, name = request.resource_id.rpartition("/")
        try:
            live = await self.cluster.get(asked["apiVersion"], asked["kind"], namespace, name)
            if live is None:
                return
            path = (await self.cluster.api_resource(asked["apiVersion"], asked["kind"])).path(namespace, name)
            options = {"propagationPolicy": objects.propagation(asked)}
            await self.cluster.request("DELETE", path, options)
        except ApiError as error:
            if error.status == 404:
                return
            raise
        if not objects.skips_await_of_deletion(asked):
            seconds = request.timeout or _annotated_timeout(asked)
            await waiting.until_gone(self.cluster, live, seconds, lambda line: self._progress(request.urn, line))

    async def _get(self, wanted: Object) -> Object | None:
        metadata = wanted["metadata"]
        return await self.cluster.get(
            wanted["apiVersion"], wanted["kind"], metadata.get("namespace", ""), metadata["name"]
        )

    def _manager(self, wanted: Object, urn: str) -> str:
        """Return the field manager of a resource, known before the create, so that a run after a kill finds it."""
        own = hashlib.sha256(f"{self._identity} {urn}".encode()).hexdigest()[:8]
        return objects.annotation(wanted, objects.FIELD_MANAGER) or f"{ownership.LOCAL_MANAGER}{own}"

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            self._connection.close()


def _annotated_timeout(obj: Object) -> float:
    text = objects.annotation(obj, objects.TIMEOUT)
    return float(text) if text.isdigit() else waiting.DEFAULT_TIMEOUT_SECONDS


def _already_exists(wanted: Object) -> str:
    return (
        f"{wanted['kind']} {objects.id_of(wanted)} already exists, and was not made by this stack. "
        "Choose another name, delete the object or, for a resource renamed in the program, add an alias."
    )


__all__ = ["KubernetesProvider", "KubernetesSettings", "other_cluster", "settings_of"]
