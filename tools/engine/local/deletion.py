"""Deletes resources in reverse order: removed ones, and those that a replacement also deletes."""

import asyncio
from dataclasses import replace

from soperator_pulumi.cli.stack_changes import StepOp
from tools.console import UserError
from tools.engine.local import crud, steps
from tools.engine.local.run_context import Run, is_managed, is_provider
from tools.engine.local.state import Resource, provider_urn
from tools.engine.values import UNKNOWN, properties_of


async def delete(run: Run, doomed: list[Resource]) -> None:
    """Delete resources, every one after all its dependents.

    After a failure, running deletions end, and no further one begins.
    """
    for wave in steps.deletion_order(doomed, run.state.resources):
        await asyncio.gather(*(_try(run, resource) for resource in wave))
        if run.failed:
            return


async def _try(run: Run, resource: Resource) -> None:
    if resource.protect and not resource.delete:
        run.display.fail(resource.urn, "protected. Set protect to false in the program and run up first.")
        return
    try:
        await _one(run, resource)
    except UserError as error:
        run.display.fail(resource.urn, str(error))


async def _one(run: Run, resource: Resource, *, to_replace: bool = False) -> None:
    run.display.begin(resource.urn)
    if not run.preview:
        provider = run.provider_of(resource) if is_managed(resource) else None
        await run.crud.delete(provider, resource, to_replace=to_replace)
    if not to_replace and not resource.delete and not resource.pending_replacement:
        run.display.step(resource.urn, StepOp.DELETE)


async def before_replacement(run: Run, old: Resource, done: set[str]) -> set[str]:
    """Delete a resource that cannot coexist with its replacement, after the dependents to be replaced with it.

    Args:
        run: Run of the operation.
        old: Resource to replace.
        done: URNs that the run has reached already.

    Returns:
        The URNs of the deleted dependents, which are created again once the program registers them.

    Raises:
        UserError: A dependent is protected, or could not be deleted.
    """
    doomed = await _replaced_with(run, old, done)
    if kept := [r for r in doomed if r.protect]:
        raise UserError(
            f"replacing it would delete {', '.join(r.name for r in kept)}, which depends on it and is protected. "
            "Undo the change, or set protect to false first."
        )
    for resource in reversed(doomed):
        await _one(run, resource, to_replace=True)
    await _one(run, old, to_replace=True)
    return {resource.urn for resource in doomed}


async def _replaced_with(run: Run, root: Resource, done: set[str]) -> list[Resource]:
    """Return the dependents that a replacement of a resource would replace, by their providers' diffs."""
    replaced = {root.urn}
    found = []
    for resource in steps.dependents(root, run.state.resources, done):
        if not resource.custom or resource.delete or resource.pending_replacement:
            continue
        if provider_urn(resource.provider) in replaced or await _would_be_replaced(run, resource, replaced):
            replaced.add(resource.urn)
            found.append(resource)
    return found


async def _would_be_replaced(run: Run, resource: Resource, replaced: set[str]) -> bool:
    touched = {key for key, urns in resource.property_dependencies.items() if replaced.intersection(urns)}
    touched &= resource.inputs.keys()
    if not touched or is_provider(resource):
        return bool(touched)
    inputs = {**resource.inputs, **properties_of(dict.fromkeys(touched, UNKNOWN))}
    difference = await crud.diff(run.provider_of(resource), resource, replace(resource, inputs=inputs))
    return bool(steps.with_replace_on_changes(difference, resource.replace_on_changes).replaces)
