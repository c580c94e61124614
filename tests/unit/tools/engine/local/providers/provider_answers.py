"""Answers of a provider, in the form in which those of a real one are recorded."""

from collections.abc import Mapping
from typing import Any

from pulumi.provider.experimental import provider as api

from tools.console import UserError
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.values import Properties, properties_of

_SEED = bytes(32)


async def checked(provider: LocalProvider, urn: str, old: Properties, new: Mapping[str, object]) -> Properties:
    """Return the inputs of a resource as a provider completes them.

    Raises:
        UserError: The provider refuses them.
    """
    answer = await provider.check(api.CheckRequest(urn, old, properties_of(new), _SEED))
    if answer.failures:
        raise UserError("\n".join(f"{failure.property}: {failure.reason}" for failure in answer.failures))
    return answer.inputs or {}


def difference(answer: api.DiffResponse) -> dict[str, Any]:
    """Return what a provider answers about a change, as JSON."""
    return {
        "changes": answer.changes,
        "replaces": sorted(answer.replaces),
        "diffs": sorted(answer.diffs),
        "delete before replace": answer.delete_before_replace,
        "paths": {
            path: f"{found.kind.name}{', of inputs' if found.input_diff else ''}"
            for path, found in sorted(answer.detailed_diff.items())
        },
    }
