"""Keeps the state true: after a killed run, and when somebody else has changed things."""

import asyncio
from dataclasses import replace

from tools.console import UserError
from tools.engine.local import crud
from tools.engine.local.context import Run, is_managed
from tools.engine.local.state import Pending, Resource
from tools.engine.protocol import Operation

_CUT_OFF_CREATE = "its creation was cut off"
_CUT_OFF_UPDATE = "its update was cut off"


async def recover(run: Run) -> None:
    """Deal with the operations that a killed run has left under way.

    What was being created is taken in if it can be found, so that it is not made twice. Updates of objects are made
    again; all else is done again anyway by whoever comes to it.
    """
    for pending in list(run.state.pending):
        await _recover(run, pending)
        run.state.end(pending)
        if not run.preview:
            run.state.save()


async def _recover(run: Run, pending: Pending) -> None:
    known = run.state.find(pending.resource.urn)
    if pending.operation == "creating":
        await _recover_create(run, pending.resource, known)
    elif pending.operation == "updating" and known and known.type.startswith("kubernetes:"):
        run.state.swap(known, replace(known, init_errors=(_CUT_OFF_UPDATE,)))


async def _recover_create(run: Run, resource: Resource, before: Resource | None) -> None:
    made = await run.crud.adopt(run.provider_of(resource), resource)
    if made is None:
        run.display.say(resource.urn, f"{_CUT_OFF_CREATE}, and has left nothing that is known")
        return
    run.display.say(resource.urn, f"{_CUT_OFF_CREATE}, and is taken up again")
    if before is not None and before.pending_replacement:
        run.state.remove(before)
    elif before is not None:
        run.state.swap(before, replace(before, delete=True))
    run.state.put(replace(made, init_errors=(_CUT_OFF_CREATE,)))


async def refresh(run: Run) -> None:
    """Read every resource into the state."""
    managed = [r for r in run.state.resources if is_managed(r) and not r.pending_replacement]
    await asyncio.gather(*(_refresh(run, resource) for resource in managed))


async def _refresh(run: Run, resource: Resource) -> None:
    try:
        found = await run.crud.refresh(run.provider_of(resource), resource)
    except UserError as error:
        run.display.fail(resource.urn, str(error))
        return
    changed = crud.changed_keys(resource.outputs, found.outputs) if found else []
    operation = Operation.UPDATE if changed else Operation.SAME if found else Operation.DELETE
    run.display.step(resource.urn, operation, changed)
