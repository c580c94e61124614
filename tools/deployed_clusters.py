"""Clusters of a deployed stack, and the choice of one of them: `CLUSTER=...` after `make`."""

from collections.abc import Collection, Mapping
from typing import Any

from tools.console import UserError


def outputs_by_cluster(outputs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the outputs of all clusters by name. A cluster under `soperator:cluster` is named by its namespace."""
    if "clusters" in outputs:
        return dict(outputs["clusters"])
    return {outputs["namespace"]: outputs} if isinstance(outputs.get("namespace"), str) else {}


def chosen(names: Collection[str], given: str | None, command: str) -> str:
    """Return the cluster that a command is for.

    Args:
        names: At least one name.
        given: Name from the command line; without one, the only cluster.
        command: Command in the error: `make ssh`.

    Raises:
        UserError: There is no such cluster, or there are several and none is named.

    """
    known = ", ".join(sorted(names))
    if given is None and len(names) > 1:
        raise UserError(f"The stack has several clusters: {known}. Choose one: {command} CLUSTER=NAME")
    if given is not None and given not in names:
        raise UserError(f'There is no cluster "{given}". Choose one of: {known}.')
    return given or next(iter(names))
