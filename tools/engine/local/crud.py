"""Provider calls for the engine: resources in and out, secrets marked, pending operations recorded."""

import secrets
from dataclasses import replace

from pulumi.provider.experimental import provider as api

from tools.console import UserError
from tools.engine.local.providers.local_provider import InitError, LocalProvider
from tools.engine.local.state import Resource, State
from tools.engine.local.steps import Diff
from tools.engine.values import Properties, plain_map

_REPLACING = {
    api.PropertyDiffKind.ADD_REPLACE,
    api.PropertyDiffKind.DELETE_REPLACE,
    api.PropertyDiffKind.UPDATE_REPLACE,
}
_HIDDEN = "__"  # prefix of the SDK's own properties, such as __provider


async def check(provider: LocalProvider, urn: str, old: Resource | None, inputs: Properties) -> Properties:
    """Return the inputs as the provider completes them.

    Raises:
        UserError: The provider refuses the inputs; the message has all of its reasons.
    """
    olds = old.inputs if old else {}
    answer = await provider.check(api.CheckRequest(urn, olds, inputs, secrets.token_bytes(32)))
    if answer.failures:
        lines = [f"{f.property}: {f.reason}" if f.property else f.reason for f in answer.failures]
        raise UserError("\n".join(lines))
    return answer.inputs or {}


async def diff(provider: LocalProvider, old: Resource, new: Resource) -> Diff:
    """Return the difference between a resource and its new inputs, from its provider or, failing that, by value."""
    answer = await provider.diff(api.DiffRequest(new.urn, old.id, old.outputs, new.inputs, list(new.ignore_changes)))
    by_value = changed_keys(old.inputs, new.inputs)
    detailed = answer.detailed_diff
    changes = bool(by_value) if answer.changes is None else answer.changes
    changed = list(detailed) or answer.diffs or (by_value if answer.changes is None else [])
    replaces = answer.replaces + [path for path, found in detailed.items() if found.kind in _REPLACING]
    return Diff(
        changes=changes,
        changed=tuple(dict.fromkeys(changed)),
        replaces=tuple(dict.fromkeys(replaces)),
        delete_before_replace=answer.delete_before_replace,
    )


def changed_keys(old: Properties, new: Properties) -> list[str]:
    """Return the properties whose values differ."""
    olds, news = plain_map(old), plain_map(new)
    keys = dict.fromkeys([*news, *olds])
    return [k for k in keys if not k.startswith(_HIDDEN) and olds.get(k) != news.get(k)]


def with_secret_outputs(resource: Resource) -> Resource:
    """Return a resource with its additional secret outputs marked."""
    outputs = {
        key: value.with_secret(True) if key in resource.additional_secret_outputs else value
        for key, value in resource.outputs.items()
    }
    return replace(resource, outputs=outputs)


class Crud:
    """Creates, updates and deletes resources, and keeps the state up to date."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def create(self, provider: LocalProvider, new: Resource, replaced: Resource | None = None) -> Resource:
        """Create a resource, replacing `replaced` if given."""
        pending = self._state.begin("creating", new)
        try:
            answer = await provider.create(api.CreateRequest(new.urn, new.inputs, new.timeouts.create, preview=False))
        except InitError as error:
            self._state.end(pending)
            made = replace(new, id=error.resource_id, outputs=error.outputs, init_errors=error.reasons)
            self._took_place(with_secret_outputs(made), replaced)
            raise
        except UserError:
            self._state.end(pending)
            self._state.save()
            raise
        self._state.end(pending)
        made = with_secret_outputs(replace(new, id=answer.resource_id or "", outputs=answer.properties))
        self._took_place(made, replaced)
        return made

    def _took_place(self, made: Resource, replaced: Resource | None) -> None:
        if replaced is not None and replaced.pending_replacement:
            self._state.put(made, replaced)
        else:
            if replaced is not None:
                self._state.swap(replaced, replace(replaced, delete=True))
            self._state.put(made)
        self._state.save()

    async def update(self, provider: LocalProvider, old: Resource, new: Resource) -> Resource:
        """Update a resource in place."""
        pending = self._state.begin("updating", old)
        request = api.UpdateRequest(
            new.urn, old.id, old.outputs, new.inputs, new.timeouts.update, list(new.ignore_changes), preview=False
        )
        try:
            answer = await provider.update(request)
        except InitError as error:
            self._state.end(pending)
            self._put(
                with_secret_outputs(replace(new, id=old.id, outputs=error.outputs, init_errors=error.reasons)), old
            )
            raise
        except UserError:
            self._state.end(pending)
            self._state.save()
            raise
        self._state.end(pending)
        made = with_secret_outputs(replace(new, id=old.id, outputs=answer.properties))
        self._put(made, old)
        return made

    def _put(self, made: Resource, old: Resource) -> None:
        self._state.put(made, old)
        self._state.save()

    async def delete(self, provider: LocalProvider | None, old: Resource, *, to_replace: bool = False) -> None:
        """Delete a resource. One to be replaced stays in the state, marked as pending replacement."""
        if provider is not None and not old.retain_on_delete and not old.pending_replacement:
            pending = self._state.begin("deleting", old)
            try:
                await provider.delete(api.DeleteRequest(old.urn, old.id, old.outputs, old.timeouts.delete))
            except UserError:
                self._state.end(pending)
                self._state.save()
                raise
            self._state.end(pending)
        if to_replace:
            self._state.swap(old, replace(old, pending_replacement=True))
        else:
            self._state.remove(old)
        self._state.save()

    async def foresee(self, provider: LocalProvider, new: Resource, old: Resource | None) -> Resource:
        """Return the expected result of a create (or an update of `old`), as far as the provider can predict it."""
        if not provider.previews:
            outputs = new.inputs
        elif old is None:
            request = api.CreateRequest(new.urn, new.inputs, new.timeouts.create, preview=True)
            outputs = (await provider.create(request)).properties
        else:
            change = api.UpdateRequest(
                new.urn, old.id, old.outputs, new.inputs, new.timeouts.update, list(new.ignore_changes), preview=True
            )
            outputs = (await provider.update(change)).properties
        return with_secret_outputs(replace(new, id=old.id if old else "", outputs=outputs))

    async def adopt(self, provider: LocalProvider, new: Resource) -> Resource | None:
        """Return the resource of an interrupted create, if it can be found."""
        answer = await provider.adopt(api.CreateRequest(new.urn, new.inputs, new.timeouts.create, preview=False))
        if answer is None:
            return None
        return with_secret_outputs(replace(new, id=answer.resource_id or "", outputs=answer.properties))

    async def refresh(self, provider: LocalProvider, old: Resource, *, save: bool = True) -> Resource | None:
        """Read a resource into the state and return it; None if it no longer exists. Previews do not save the state."""
        try:
            answer = await provider.read(api.ReadRequest(old.urn, old.id, old.outputs, old.inputs))
        except InitError as error:
            inputs = old.inputs if error.inputs is None else error.inputs
            found: Resource | None = replace(old, inputs=inputs, outputs=error.outputs, init_errors=error.reasons)
        else:
            found = replace(old, inputs=answer.inputs or old.inputs, outputs=answer.properties, init_errors=())
            if not answer.resource_id:
                found = None
        if found is None:
            self._state.remove(old)
        else:
            found = with_secret_outputs(found)
            self._state.swap(old, found)
        if save:
            self._state.save()
        return found
