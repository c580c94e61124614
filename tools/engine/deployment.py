"""A run of the program: each registration becomes a step, and what is no longer asked for is deleted at the end."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from tools.console import UserError
from tools.engine import crud, paths, program, steps
from tools.engine.crud import Crud
from tools.engine.display import Display
from tools.engine.monitor import Registered, Registration, Servicer, serve
from tools.engine.project import Project
from tools.engine.protocol import Operation, Target
from tools.engine.providers import PROVIDER_TYPE, Providers
from tools.engine.providers.base import LocalProvider
from tools.engine.providers.kubernetes import other_cluster
from tools.engine.state import STACK_TYPE, Resource, State, provider_urn
from tools.engine.values import UNKNOWN as UNKNOWN_VALUE
from tools.engine.values import Properties, has_unknown, plain_map, properties_of

_ERROR = 3  # LogSeverity of the protocol
_DEBUG = 0
_UNKNOWN_ID = "unknown"


class Deployment:
    """One run: its state, its providers, and what has been done so far."""

    def __init__(self, project: Project, target: Target, state: State, display: Display, *, preview: bool) -> None:
        self._project = project
        self._target = target
        self.state = state
        self._display = display
        self._preview = preview
        self._providers = Providers(project, target, state.identity, display.say)
        self._crud = Crud(state)
        self._seen: set[str] = set()
        self._gone: set[str] = set()
        """URNs deleted for the sake of something that they depend on: they come back when the program asks for them."""
        self._live: dict[str, Resource] = {}
        """What this run has come to: also in a preview, which leaves the state as it is."""

    # The program's side -------------------------------------------------------------------------------------------

    async def run_program(self) -> None:
        """Run the program, and then delete what it no longer asks for. Failures are in the display."""
        self._providers.warm_up(self.state.resources)
        server, address = await serve(Servicer(self, self.urn_of))
        settings = {"address": address, "dry_run": self._preview}
        child = await program.start("program", self._project, self._target, settings)
        try:
            pumps = [program.pump(stream, self._print) for stream in (child.stdout, child.stderr)]
            await asyncio.gather(child.wait(), *pumps)
        finally:
            await program.stop(child)
            await server.stop(None)
        if child.returncode != 0 and not self._display.failures:
            self._display.fail("", f"it ended with exit code {child.returncode}; what it printed is above")
        if not self._display.failures:
            old = [r for r in self.state.resources if r.delete or r.urn not in self._live]
            await self.delete([r for r in old if not self._is_replaced_later(r)])

    def _is_replaced_later(self, resource: Resource) -> bool:
        return self._preview and resource.urn in self._live

    def _print(self, line: str) -> None:
        self._display.say("", line)

    def log(self, severity: int, message: str, urn: str) -> None:
        """Show what the program says; an error fails the run."""
        if severity == _ERROR:
            self.refuse(urn, message)
        elif severity != _DEBUG:
            for line in message.rstrip().splitlines():
                self._display.say(urn, line)

    def refuse(self, urn: str, message: str) -> None:
        """Note a failure of the program, once: the SDK repeats what it was told."""
        known = any(failure.message in message for failure in self._display.failures)
        if not known:
            self._display.fail(urn, message.rstrip())

    def urn_of(self, parent: str, resource_type: str, name: str) -> str:
        """Return the URN of a resource."""
        parents = parent.split("::")[2] if parent else STACK_TYPE
        qualified = resource_type if parents == STACK_TYPE else f"{parents}${resource_type}"
        return f"urn:pulumi:{self._target.stack}::{self._project.name}::{qualified}::{name}"

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        """Take in a component's outputs, unless the run has failed: then some of them are not known."""
        resource = self._live.get(urn)
        if resource is None or self._display.failures:
            return
        new = replace(resource, outputs=outputs)
        self._live[urn] = new
        if not self._preview and new.outputs != resource.outputs:
            self.state.swap(resource, new)
            self.state.save()

    async def register(self, asked: Registration) -> Registered:
        """Do what a registration asks for."""
        urn = self.urn_of(asked.parent, asked.type, asked.name)
        if urn in self._seen:
            raise UserError(f"two resources have this URN: {urn}. Give one of them another name.")
        self._seen.add(urn)
        old = next((r for u in (urn, *asked.aliases) if (r := self.state.find(u))), None)
        if old is not None:
            self._seen.add(old.urn)
        new = _resource(urn, asked)
        try:
            if not asked.custom:
                made = await self._register_component(new, old)
            elif asked.type.startswith(PROVIDER_TYPE):
                made = await self._register_provider(new, old)
            else:
                made = await self._register_custom(new, old, asked)
        except UserError as error:
            self._display.fail(urn, str(error))
            return Registered(urn=urn, ok=False)
        if made is None:
            return Registered(urn=urn, ok=False)
        self._live[urn] = made
        return Registered(urn=urn, id=made.id, outputs=made.outputs if asked.custom else {})

    async def _register_component(self, new: Resource, old: Resource | None) -> Resource | None:
        if self._display.failures:
            return None
        made = replace(new, outputs=old.outputs if old else {})
        changed = crud.changed_keys(old.inputs, new.inputs) if old else []
        operation = Operation.UPDATE if changed else Operation.SAME if old else Operation.CREATE
        self._take(made, old)
        self._display.step(new.urn, operation, changed)
        return made

    async def _register_provider(self, new: Resource, old: Resource | None) -> Resource | None:
        self._providers.check(new.type, new.inputs)
        if self._display.failures:
            return None
        changed = crud.changed_keys(old.inputs, new.inputs) if old else []
        if old is None or (changed and _is_other(old, new)):
            fresh = _UNKNOWN_ID if self._preview else str(uuid.uuid4())
            made = replace(new, id=fresh, outputs=new.inputs)
            operation = Operation.REPLACE if old else Operation.CREATE
            if not self._preview and old is not None:
                self.state.swap(old, replace(old, delete=True))
            old = None
        else:
            made = replace(new, id=old.id, outputs=new.inputs)
            operation = Operation.UPDATE if changed else Operation.SAME
        self._providers.configure(f"{made.urn}::{made.id}", made.inputs)
        self._take(made, old)
        self._display.step(new.urn, operation, changed)
        return made

    def _take(self, made: Resource, old: Resource | None) -> None:
        if not self._preview:
            self.state.put(made, old)
            if made != old:
                self.state.save()

    async def _register_custom(self, new: Resource, old: Resource | None, asked: Registration) -> Resource | None:
        provider = self._provider_of(new)
        recreating = old is not None and old.urn in self._gone
        kept = None if recreating else old
        inputs = paths.keep_old(new.inputs, kept.inputs, new.ignore_changes) if kept else new.inputs
        new = replace(new, inputs=await crud.check(provider, new.urn, kept, inputs))
        if self._display.failures:
            return None  # checked, so that all that is wrong is said at once; but nothing is begun any more
        if not self._preview and has_unknown(plain_map(new.inputs)):
            raise UserError("an input is not known: it comes from a resource that failed")
        if old is None:
            return await self._step(new, Operation.CREATE, (), lambda: self._crud.create(provider, new))
        if recreating:
            self._gone.discard(old.urn)
            return await self._step(new, Operation.REPLACE, (), lambda: self._crud.create(provider, new, old))
        return await self._existing(provider, new, old, asked)

    async def _existing(
        self, provider: LocalProvider, new: Resource, old: Resource, asked: Registration
    ) -> Resource | None:
        if self._provider_is_other(old, new):
            difference = steps.Diff(changes=True, changed=("provider",), replaces=("provider",))
        else:
            difference = await crud.diff(provider, old, new.inputs, new.ignore_changes)
        decision = steps.decide(difference, old, new, delete_before_replace=asked.delete_before_replace)
        shown = decision.paths or crud.changed_keys(old.inputs, new.inputs)
        match decision.operation:
            case Operation.SAME:
                made = crud.with_secret_outputs(replace(new, id=old.id, outputs=old.outputs))
                self._take(made, old)
                self._display.step(new.urn, Operation.SAME)
                return made
            case Operation.UPDATE:
                return await self._step(
                    new, Operation.UPDATE, shown, lambda: self._crud.update(provider, old, new), old
                )
        if old.protect and new.protect:
            raise UserError(
                f"it is protected, and a change of {', '.join(shown)} would replace it. "
                "Undo the change, or set protect to false first."
            )
        # The name and other values that the provider had filled in are not carried over to a replacement.
        new = replace(new, inputs=await crud.check(provider, new.urn, None, asked.inputs))
        if decision.delete_before_replace and not old.pending_replacement:
            old = await self._delete_with_dependents(old)
        return await self._step(new, Operation.REPLACE, shown, lambda: self._crud.create(provider, new, old))

    async def _step(
        self,
        new: Resource,
        operation: Operation,
        shown: tuple[str, ...] | list[str],
        action: Callable[[], Awaitable[Resource]],
        old: Resource | None = None,
    ) -> Resource:
        self._display.begin(new.urn)
        if self._preview:
            made = await self._foresee(new, old)
        else:
            made = await action()
        self._display.step(new.urn, operation, shown)
        return made

    async def _foresee(self, new: Resource, old: Resource | None) -> Resource:
        provider = self._provider_of(new)
        if not provider.previews:
            return replace(new, id=old.id if old else "", outputs=new.inputs)
        return await self._crud.foresee(provider, new, old)

    # Replacement ----------------------------------------------------------------------------------------------------

    def _provider_is_other(self, old: Resource, new: Resource) -> bool:
        if old.provider == new.provider:
            return False
        before = self._explicit().get(old.provider)
        after = self._live.get(provider_urn(new.provider))
        return _is_other(before, after)

    async def _delete_with_dependents(self, old: Resource) -> Resource:
        """Delete a resource before its replacement is made, and before it what would have to be replaced with it."""
        doomed = await self._replaced_with(old)
        if kept := [r for r in doomed if r.protect]:
            raise UserError(
                f"replacing it would delete {', '.join(r.name for r in kept)}, which depends on it and is protected. "
                "Undo the change, or set protect to false first."
            )
        for resource in reversed(doomed):
            self._gone.add(resource.urn)
            await self._delete_one(resource, to_replace=True)
        await self._delete_one(old, to_replace=True)
        return self.state.find(old.urn) or old

    async def _replaced_with(self, root: Resource) -> list[Resource]:
        """Return the dependents that a replacement of a resource would replace, by what their providers say."""
        replaced = {root.urn}
        found = []
        for resource in steps.dependents(root, self.state.resources, self._seen):
            if not resource.custom or resource.delete or resource.pending_replacement:
                continue
            if provider_urn(resource.provider) in replaced or await self._would_be_replaced(resource, replaced):
                replaced.add(resource.urn)
                found.append(resource)
        return found

    async def _would_be_replaced(self, resource: Resource, replaced: set[str]) -> bool:
        touched = {key for key, urns in resource.property_dependencies.items() if replaced.intersection(urns)}
        if not touched & resource.inputs.keys():
            return False
        if resource.type.startswith(PROVIDER_TYPE):
            return True
        unknown = properties_of(dict.fromkeys(touched & resource.inputs.keys(), UNKNOWN_VALUE))
        provider = self._provider_of(resource)
        difference = await crud.diff(provider, resource, {**resource.inputs, **unknown}, resource.ignore_changes)
        return bool(steps.with_replace_on_changes(difference, resource.replace_on_changes).replaces)

    def interrupt(self) -> None:
        """Begin nothing more; what is under way ends."""
        self._display.fail("", "interrupted: what is under way is ended, the next up goes on")

    # Deletion -------------------------------------------------------------------------------------------------------

    async def delete(self, doomed: list[Resource]) -> None:
        """Delete resources, each after all that needs it.

        After a failure what is under way ends, and no more is begun.
        """
        for wave in steps.deletion_order(doomed, self.state.resources):
            await asyncio.gather(*(self._try_to_delete(resource) for resource in wave))
            if self._display.failures:
                return

    async def _try_to_delete(self, resource: Resource) -> None:
        if resource.protect and not resource.delete:
            self._display.fail(resource.urn, "it is protected. Set protect to false in the program first, and run up.")
            return
        try:
            await self._delete_one(resource)
        except UserError as error:
            self._display.fail(resource.urn, str(error))

    async def _delete_one(self, resource: Resource, *, to_replace: bool = False) -> None:
        self._display.begin(resource.urn)
        if not self._preview:
            managed = resource.custom and not resource.type.startswith(PROVIDER_TYPE)
            provider = self._provider_of(resource) if managed else None
            await self._crud.delete(provider, resource, to_replace=to_replace)
        if not to_replace and not resource.delete and not resource.pending_replacement:
            self._display.step(resource.urn, Operation.DELETE)

    # State ----------------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Deal with the operations that a killed run has left under way."""
        for pending in list(self.state.pending):
            resource = pending.resource
            managed = resource.custom and not resource.type.startswith(PROVIDER_TYPE)
            if pending.operation == "creating" and managed:
                await self._recover_create(resource)
            known = self.state.find(resource.urn)
            if pending.operation == "updating" and known and known.type.startswith("kubernetes:"):
                self.state.swap(known, replace(known, init_errors=("its update was cut off",)))
            self.state.end(pending)
        if not self._preview:
            self.state.save()

    async def _recover_create(self, resource: Resource) -> None:
        made = await self._crud.adopt(self._provider_of(resource), resource)
        if made is None:
            self._display.say(resource.urn, "its creation was cut off, and has left nothing that is known")
            return
        self._display.say(resource.urn, "its creation was cut off, and is taken up again")
        before = self.state.find(resource.urn)
        if before is not None and before.pending_replacement:
            self.state.remove(before)
        elif before is not None:
            self.state.swap(before, replace(before, delete=True))
        self.state.put(replace(made, init_errors=("its creation was cut off",)))

    async def refresh(self) -> None:
        """Read every resource into the state."""
        managed = [
            r for r in self.state.resources
            if r.custom and not r.type.startswith(PROVIDER_TYPE) and not r.pending_replacement
        ]  # fmt: skip
        await asyncio.gather(*(self._refresh_one(resource) for resource in managed))

    async def _refresh_one(self, resource: Resource) -> None:
        try:
            found = await self._crud.refresh(self._provider_of(resource), resource)
        except UserError as error:
            self._display.fail(resource.urn, str(error))
            return
        changed = crud.changed_keys(resource.outputs, found.outputs) if found else []
        operation = Operation.UPDATE if changed else Operation.SAME if found else Operation.DELETE
        self._display.step(resource.urn, operation, changed)

    def _explicit(self) -> dict[str, Resource]:
        found = [*self.state.resources, *self._live.values()]
        return dict(crud.explicit_providers(found, PROVIDER_TYPE))

    def _provider_of(self, resource: Resource) -> LocalProvider:
        return self._providers.of(resource, self._explicit())

    async def close(self) -> None:
        """End what the run has started."""
        await self._providers.close()


def _resource(urn: str, asked: Registration) -> Resource:
    return Resource(
        urn=urn,
        type=asked.type,
        custom=asked.custom,
        parent=asked.parent,
        provider=asked.provider,
        inputs=asked.inputs,
        dependencies=asked.dependencies,
        property_dependencies=asked.property_dependencies,
        protect=asked.protect,
        retain_on_delete=asked.retain_on_delete,
        ignore_changes=asked.ignore_changes,
        replace_on_changes=asked.replace_on_changes,
        additional_secret_outputs=asked.additional_secret_outputs,
        timeouts=asked.timeouts,
    )


def _is_other(old: Resource | None, new: Resource | None) -> bool:
    """Say whether two explicit providers, or the default one (None), speak to different clusters."""
    before = plain_map(old.inputs) if old else {}
    after = plain_map(new.inputs) if new else {}
    return other_cluster(before, after) or any(after.get(k) is UNKNOWN_VALUE for k in ("kubeconfig", "context"))
