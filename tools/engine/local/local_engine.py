"""Local engine: deploys a program without the Pulumi CLI, for trials and tests only."""

import asyncio
import json
import signal
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from soperator_pulumi.cli.stack_changes import StackChanges, StepOp
from tools import locks
from tools.console import UserError
from tools.engine import encryption, project
from tools.engine.display import Display, Say, failed
from tools.engine.local import crud, deletion, steps
from tools.engine.local.deployment import ProgramRun
from tools.engine.local.providers import Providers
from tools.engine.local.run_context import Run, is_managed
from tools.engine.local.state import Pending, Resource, State, state_file
from tools.engine.project import Project
from tools.engine.protocol import HIDDEN, STACK_TYPE, DeployError, ResourceState, Result, Target, protected_error
from tools.engine.values import plain_map

_THREADS = 32
_CUT_OFF_CREATE = "its creation was cut off"
_CUT_OFF_UPDATE = "its update was cut off"


class LocalDeployer:
    """Deploys with the local engine."""

    def __init__(self, target: Target, say: Say) -> None:
        self._target = target
        self._say = say

    def preview(self, *, refresh: bool = False) -> StackChanges:
        """Return the changes that `up` would make, after reading the live resources if `refresh` is set."""

        async def foresee(run: Run) -> None:
            if refresh:
                await _refresh(run)
            if not run.failed:
                await self._deploy(run)

        result = self._run("preview", foresee)
        return StackChanges(changes=result.changes, messages=result.messages)

    def up(self) -> Result:
        """Deploy the program."""
        return self._run("up", self._deploy)

    def refresh(self) -> Result:
        """Record the resources as they are in the state."""
        return self._run("refresh", _refresh)

    def destroy(self, *, exclude_protected: bool = False) -> Result:
        """Delete everything in the state, or everything that is not protected."""

        def refuse(state: State) -> None:
            protected = [r.name for r in state.resources if r.protect and not r.delete]
            if protected and not exclude_protected:
                raise protected_error(protected)

        async def destroy(run: Run) -> None:
            resources = run.state.resources
            kept = steps.kept_with(resources, lambda r: r.protect and not r.delete)
            await deletion.delete(run, [r for r in resources if r.delete or r.urn not in kept])

        return self._run("destroy", destroy, refuse)

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs."""
        stack = next((r for r in self._load(self._project()).resources if r.type == STACK_TYPE), None)
        return dict(plain_map(stack.outputs)) if stack else {}

    def state(self) -> list[ResourceState]:
        """Return the resources in the state."""

        def hidden(_: object) -> str:
            return HIDDEN

        return [
            ResourceState(
                urn=r.urn, type=r.type, name=r.name, id=r.id, protect=r.protect,
                inputs=plain_map(r.inputs, hidden), outputs=plain_map(r.outputs, hidden),
            )
            for r in self._load(self._project()).resources
        ]  # fmt: skip

    async def _deploy(self, run: Run) -> None:
        await ProgramRun(run, self._project(), self._target).run_program()

    def _project(self) -> Project:
        return project.load(self._target)

    def _load(self, loaded: Project) -> State:
        file = state_file(self._target, loaded.name, self._target.stack)
        return State.load(file, encryption.passphrase(self._target.state))

    def _run(
        self,
        command: str,
        work: Callable[[Run], Awaitable[None]],
        before: Callable[[State], None] = lambda _: None,
    ) -> Result:
        loaded = self._project()
        lock = state_file(self._target, loaded.name, self._target.stack).with_suffix(".lock")
        seconds = self._target.lock_timeout_seconds
        with locks.held(lock, f"{command} of {self._target.stack}", wait_seconds=seconds, say=self._say):
            state = self._load(loaded)
            before(state)
            preview = command == "preview"
            display = Display(self._say, preview=preview)
            if command == "up":
                state.record(loaded.config)
            elif not preview and state.config is not None:
                loaded = replace(loaded, config=state.config)
            providers = Providers(loaded, self._target, state.identity, display.say)
            asyncio.run(_work(Run(state=state, display=display, providers=providers, preview=preview), work))
        display.summary()
        result = Result(changes=display.changes(), messages=display.messages(), seconds=display.seconds)
        if display.failures:
            raise DeployError(failed(command, display.failures), failures=display.failures, result=result)
        return result


async def _work(run: Run, work: Callable[[Run], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS))

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        run.display.fail(
            "", "interrupted: steps under way end first. Another Ctrl-C abandons them; the next up resumes."
        )

    if threading.current_thread() is threading.main_thread():  # no other may handle signals
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        await _recover(run)
        await work(run)
    except UserError as error:
        run.display.fail("", str(error))
    finally:
        await run.providers.close()


async def _recover(run: Run) -> None:
    """Resolve the operations that a killed run has left pending.

    A resource whose creation was interrupted is added to the state if it can be found, so that it is not created twice.
    Updates of objects are repeated; later steps repeat everything else.
    """
    for pending in list(run.state.pending):
        await _recover_one(run, pending)
        run.state.end(pending)
        if not run.preview:
            run.state.save()


async def _recover_one(run: Run, pending: Pending) -> None:
    known = run.state.find(pending.resource.urn)
    if pending.operation == "creating":
        await _recover_create(run, pending.resource, known)
    elif pending.operation == "updating" and known and known.type.startswith("kubernetes:"):
        run.state.swap(known, replace(known, init_errors=(_CUT_OFF_UPDATE,)))
        if not run.preview:
            await run.provider_of(known).resume(known.outputs)


async def _recover_create(run: Run, resource: Resource, before: Resource | None) -> None:
    provider = run.provider_of(resource)
    made = await run.crud.adopt(provider, resource)
    if made is None:
        run.display.say(resource.urn, f"{_CUT_OFF_CREATE}, and has left no known resource")
        return
    run.display.say(resource.urn, f"{_CUT_OFF_CREATE}, and is resumed")
    if not run.preview:
        await provider.resume(made.outputs)
    made = replace(made, init_errors=(_CUT_OFF_CREATE,))
    if before is None:
        run.state.append(made)
    elif before.pending_replacement:
        run.state.swap(before, made)
    else:
        replaced = replace(before, delete=True)
        run.state.swap(before, replaced)
        run.state.append(made, replaced)


async def _refresh(run: Run) -> None:
    """Read every resource into the state."""
    managed = [r for r in run.state.resources if is_managed(r) and not r.pending_replacement]
    await asyncio.gather(*(_refresh_one(run, resource) for resource in managed))


async def _refresh_one(run: Run, resource: Resource) -> None:
    try:
        found = await run.crud.refresh(run.provider_of(resource), resource, save=not run.preview)
    except UserError as error:
        run.display.fail(resource.urn, str(error))
        return
    if run.preview:
        return  # the program decides which differences matter
    changed = crud.changed_keys(resource.outputs, found.outputs) if found else []
    operation = StepOp.UPDATE if changed else StepOp.SAME if found else StepOp.DELETE
    run.display.step(resource.urn, operation, changed)


def has_state(target: Target) -> bool:
    """Return True if the local engine's state has resources of a stack."""
    file = state_file(target, project.name_of(target), target.stack)
    return file.exists() and bool(json.loads(file.read_text())["resources"])
