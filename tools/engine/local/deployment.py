"""Run of the program: every registration becomes a step, and unregistered resources are deleted at the end."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pulumi.runtime.proto import resource_pb2

from soperator_pulumi.cli.stack_changes import StepOp
from tools.console import UserError
from tools.engine import property_paths
from tools.engine.local import analyzers, child_process, construction, crud, deletion, other_stacks, reading, steps
from tools.engine.local.aliases import former_urns, make_urn
from tools.engine.local.analyzers import Packs, PolicyReport
from tools.engine.local.monitor import Registered, Servicer, serve
from tools.engine.local.providers import PROVIDER_TYPE
from tools.engine.local.providers.kubernetes_provider import other_cluster
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.local.resource_registration import ResourceRegistration
from tools.engine.local.run_context import Run
from tools.engine.local.state import Resource
from tools.engine.project import Project
from tools.engine.protocol import Target
from tools.engine.values import UNKNOWN, Properties, from_struct, has_unknown, plain_map

_ERROR = 3  # LogSeverity of the protocol
_DEBUG = 0
_UNKNOWN_ID = "unknown"


class ProgramRun:
    """Answers the program's registrations by making their resources."""

    def __init__(self, run: Run, project: Project, target: Target) -> None:
        self._run = run
        self._project = project
        self._target = target
        self._seen: set[str] = set()
        """URNs that this run has reached."""
        self._renamed: dict[str, str] = {}
        """Former URNs by present ones, for the resources that this run has found under a former one."""
        self._address = ""
        """Address of the services for the program, and for plugins that make components."""
        self._gone: set[str] = set()
        """URNs deleted before the replacement of a dependency. They are created again when they are registered."""
        self._packs = Packs([])
        self._reports: list[PolicyReport] = []
        """Reports of policies, shown at the end: in a preview, all violations are found."""

    async def run_program(self) -> None:
        """Run the program, then delete unregistered resources. Failures are in the display."""
        run = self._run
        packs = analyzers.running(self._project, self._target, self._print, preview=run.preview)
        async with packs as self._packs:
            await self._run_program()
            if self._packs and not run.failed:
                self._reports += await self._packs.of_stack(run.live.values())
        for report in self._reports:
            self._show(report)

    async def _run_program(self) -> None:
        run = self._run
        run.providers.warm_up(run.state.resources)
        server, self._address = await serve(Servicer(self, self.urn_of))
        settings = {"address": self._address, "dry_run": run.preview}
        child = await child_process.start("program", self._project, self._target, settings=settings)
        try:
            pumps = [child_process.pump(stream, self._print) for stream in (child.stdout, child.stderr)]
            await asyncio.gather(child.wait(), *pumps)
        finally:
            await child_process.stop(child)
            await server.stop(None)
        if child.returncode != 0 and not run.failed:
            run.display.fail("", f"exit code {child.returncode}; the program's output is above")
        if not run.failed:
            await deletion.delete(run, [r for r in run.state.resources if r.delete or r.urn not in self._seen])

    def _print(self, line: str) -> None:
        self._run.display.say("", line)

    def _show(self, report: PolicyReport) -> None:
        if report.fails:
            self._run.display.fail(report.urn, report.message)
            return
        for line in report.message.splitlines():
            self._run.display.say(report.urn, line)

    async def _judged(self, new: Resource) -> Resource:
        """Return a resource as policies correct it. A violation stops an update before the resource is touched."""
        if not self._packs or self._run.failed:
            return new
        new, corrections = await self._packs.remediated(new)
        found = [*corrections, *await self._packs.of_resource(new)]
        if self._run.preview:
            self._reports += found
        else:
            for report in found:
                self._show(report)
        return new

    def log(self, severity: int, message: str, urn: str) -> None:
        """Print a message of the program; an error fails the run."""
        if severity == _ERROR:
            self.refuse(urn, message)
        elif severity != _DEBUG:
            for line in message.rstrip().splitlines():
                self._run.display.say(urn, line)

    def refuse(self, urn: str, message: str) -> None:
        """Record a failure of the program, once, as the SDK repeats the engine's errors."""
        if not any(failure.message in message for failure in self._run.display.failures):
            self._run.display.fail(urn, message.rstrip())

    def urn_of(self, parent: str, resource_type: str, name: str) -> str:
        """Return the URN of a resource."""
        return make_urn(self._target.stack, self._project.name, parent, resource_type, name)

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        """Record a component's outputs, unless the run has failed: some would be unknown."""
        run = self._run
        resource = run.live.get(urn)
        if resource is None or run.failed:
            return
        run.live[urn] = replace(resource, outputs=outputs)
        if not run.preview and outputs != resource.outputs:
            run.state.swap(resource, run.live[urn])
            run.state.save()

    async def read(self, urn: str, request: resource_pb2.ReadResourceRequest) -> Properties:
        """Return the properties of another stack, or of an existing object. The state stores neither."""
        self._see(urn)
        if request.type == other_stacks.REFERENCE_TYPE:
            properties = other_stacks.read(self._target, self._project.name, request.id)
        else:
            properties = await reading.read(self._run, urn, request)
        self._run.display.step(urn, StepOp.READ)
        return properties

    async def register(self, asked: ResourceRegistration) -> Registered:
        """Make the resource of a registration."""
        run = self._run
        urn = self.urn_of(asked.parent, asked.type, asked.name)
        self._see(urn)
        former = former_urns(urn, asked.parent, asked.aliases, self._renamed)
        old = next((r for u in (urn, *former) if (r := run.state.find(u))), None)
        if old is not None:
            self._seen.add(old.urn)
            if old.urn != urn:
                self._renamed[urn] = old.urn
        new = asked.resource(urn, run.live.get(asked.parent))
        try:
            if not asked.custom:
                made = self._component(await self._judged(new), old)
            elif asked.type.startswith(PROVIDER_TYPE):
                made = self._provider(await self._judged(new), old)
            else:
                made = await self._managed(new, old, asked)
        except UserError as error:
            run.display.fail(urn, str(error))
            made = None
        if made is None:
            return Registered(urn=urn, ok=False)
        run.live[urn] = made
        return Registered(urn=urn, id=made.id, outputs=made.outputs if asked.custom else {})

    def _see(self, urn: str) -> None:
        if urn in self._seen:
            raise UserError(f"two resources have this URN: {urn}. Rename one of them.")
        self._seen.add(urn)

    async def construct(self, request: resource_pb2.RegisterResourceRequest) -> Registered:
        """Make a plugin create a component, which registers itself and its children."""
        urn = self.urn_of(request.parent, request.type, request.name)
        asked = construction.construct_request(
            request, self._project, self._target.stack, self._address, preview=self._run.preview
        )
        try:
            answer = await self._run.providers.plugin_of(request.type).make_component(urn, asked)
        except UserError as error:
            self.refuse(urn, str(error))
            return Registered(urn=urn, ok=False)
        return Registered(urn=answer.urn, outputs=from_struct(answer.state))

    def _component(self, new: Resource, old: Resource | None) -> Resource | None:
        if self._run.failed:
            return None
        made = replace(new, outputs=old.outputs if old else {})
        changed = crud.changed_keys(old.inputs, new.inputs) if old else []
        operation = StepOp.UPDATE if changed else StepOp.SAME if old else StepOp.CREATE
        self._take(made, old)
        self._run.display.step(new.urn, operation, changed)
        return made

    def _provider(self, new: Resource, old: Resource | None) -> Resource | None:
        run = self._run
        run.providers.check(new.type, new.inputs)
        if run.failed:
            return None
        changed = crud.changed_keys(old.inputs, new.inputs) if old else []
        if old is not None and not (changed and _is_other(old, new)):
            operation = StepOp.UPDATE if changed else StepOp.SAME
            made = replace(new, id=old.id, outputs=new.inputs)
            self._take(made, old)
        else:
            operation = StepOp.REPLACE if old else StepOp.CREATE
            made = replace(new, id=_UNKNOWN_ID if run.preview else str(uuid.uuid4()), outputs=new.inputs)
            if old is not None and not run.preview:
                run.state.swap(old, replace(old, delete=True))
            self._take(made, None)
        run.providers.configure(f"{made.urn}::{made.id}", made.inputs)
        run.display.step(new.urn, operation, changed)
        return made

    def _take(self, made: Resource, old: Resource | None) -> None:
        """Put a resource that needs no provider into the state."""
        if not self._run.preview:
            self._run.state.put(made, old)
            if made != old:
                self._run.state.save()

    async def _managed(self, new: Resource, old: Resource | None, asked: ResourceRegistration) -> Resource | None:
        run = self._run
        provider = run.provider_of(new)
        recreating = old is not None and old.urn in self._gone
        kept = None if recreating else old
        inputs = property_paths.keep_old(new.inputs, kept.inputs, new.ignore_changes) if kept else new.inputs
        new = await self._judged(replace(new, inputs=await crud.check(provider, new.urn, kept, inputs)))
        if run.failed:
            return None  # checked, so that all problems are reported at once; but no further step begins
        if not run.preview and has_unknown(plain_map(new.inputs)):
            raise UserError("an input is unknown: it comes from a resource that failed")
        if old is None:
            return await self._step(new, StepOp.CREATE, (), lambda: run.crud.create(provider, new))
        if recreating:
            self._gone.discard(old.urn)
            gone = run.state.find(old.urn)
            return await self._step(new, StepOp.REPLACE, (), lambda: run.crud.create(provider, new, gone))
        return await self._existing(provider, new, old, asked)

    async def _existing(
        self, provider: LocalProvider, new: Resource, old: Resource, asked: ResourceRegistration
    ) -> Resource:
        run = self._run
        if old.provider != new.provider and _is_other(*map(run.explicit_provider, (old.provider, new.provider))):
            difference = steps.Diff(changes=True, changed=("provider",), replaces=("provider",))
        else:
            difference = await crud.diff(provider, old, new)
        decision = steps.decide(difference, old, new, delete_before_replace=asked.delete_before_replace)
        shown = decision.paths or crud.changed_keys(old.inputs, new.inputs)
        if decision.operation is StepOp.SAME:
            made = crud.with_secret_outputs(replace(new, id=old.id, outputs=old.outputs))
            self._take(made, old)
            run.display.step(new.urn, StepOp.SAME)
            return made
        if decision.operation is StepOp.UPDATE:
            return await self._step(new, StepOp.UPDATE, shown, lambda: run.crud.update(provider, old, new), old)
        return await self._replace(provider, new, old, asked, decision)

    async def _replace(
        self,
        provider: LocalProvider,
        new: Resource,
        old: Resource,
        asked: ResourceRegistration,
        decision: steps.Decision,
    ) -> Resource:
        run = self._run
        shown = decision.paths or crud.changed_keys(old.inputs, new.inputs)
        if old.protect and new.protect:
            raise UserError(
                f"the resource is protected, and a change of {', '.join(shown)} would replace it. "
                "Undo the change, or set protect to false first."
            )
        # A replacement does not inherit the name and other values that the provider had filled in.
        fresh = replace(new, inputs=await crud.check(provider, new.urn, None, asked.inputs))
        if decision.delete_before_replace and not old.pending_replacement:
            self._gone |= await deletion.before_replacement(run, old, self._seen)
        there = run.state.find(old.urn)
        return await self._step(fresh, StepOp.REPLACE, shown, lambda: run.crud.create(provider, fresh, there))

    async def _step(
        self,
        new: Resource,
        operation: StepOp,
        shown: Sequence[str],
        action: Callable[[], Awaitable[Resource]],
        old: Resource | None = None,
    ) -> Resource:
        run = self._run
        run.display.begin(new.urn)
        made = await (run.crud.foresee(run.provider_of(new), new, old) if run.preview else action())
        run.display.step(new.urn, operation, shown)
        return made


def _is_other(old: Resource | None, new: Resource | None) -> bool:
    """Return True if two explicit providers, or the default one (None), point to different clusters."""
    before = plain_map(old.inputs) if old else {}
    after = plain_map(new.inputs) if new else {}
    return other_cluster(before, after) or any(after.get(key) is UNKNOWN for key in ("kubeconfig", "context"))
