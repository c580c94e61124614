"""Recovery from a killed run of the CLI, with the commands that a user would run.

The lock of an ended process is cancelled. A resource whose creation was interrupted is added to the state if it exists,
so that the next `up` finds it; the CLI itself would forget the resource, and then fail because it exists.

In a user's own backend, the user must decide, as the run may be active on another machine.
"""

import asyncio
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine import project
from tools.engine.kubernetes import objects, ownership, provider_settings
from tools.engine.kubernetes.api_client import ApiConnection, Object
from tools.engine.protocol import Target
from tools.engine.values import SECRET, SIGNATURE, Plain, plain, value_of

_CREATOR = "pulumi-kubernetes"  # prefix of pulumi-kubernetes' field managers
_POLL_SECONDS = 0.5
_HOLDER = re.compile(r"created by (?P<who>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")

Report = Callable[[str, str], None]


def restore_checkpoint(target: Target, say: Callable[[str], None]) -> None:
    """Restore a state that a killed CLI has left half written in this tool's own backend.

    The CLI writes the attributes of a file in place, and can do without them; it keeps a backup of the state itself.
    """
    name = project.name_of(target)
    file = target.state / "pulumi" / ".pulumi" / "stacks" / name / f"{target.stack}.json"
    attributes = file.with_name(f"{file.name}.attrs")
    if attributes.exists() and not _read(attributes):
        attributes.unlink()
    backup = file.with_name(f"{file.name}.bak")
    if file.exists() and not _read(file) and _read(backup):
        say("a run was killed while it wrote the state: restoring the step before")
        shutil.copy2(backup, file)


def refuse_while_locked(stack: automation.Stack, target: Target, say: Callable[[str], None]) -> None:
    """Free the lock of a killed CLI in this tool's own backend, and wait for a CLI that is running.

    Raises:
        UserError: Another CLI is still at work; the message names its process.
    """
    folder = target.state / "pulumi" / ".pulumi" / "locks" / "organization" / project.name_of(target) / target.stack
    deadline = time.monotonic() + target.lock_timeout_seconds
    while locks := sorted(folder.glob("*.json")):
        holders = [_read(lock) for lock in locks]
        at_work = [h for h in holders if h.get("hostname") != socket.gethostname() or _is_alive(h.get("pid"))]
        if not at_work:
            say("a run was killed: freeing its lock")
            stack.cancel()
            return
        who = at_work[0]
        if time.monotonic() >= deadline:
            raise UserError(
                f"another run is at work: process {who.get('pid')} of {who.get('username')} on "
                f"{who.get('hostname')}, since {who.get('timestamp')}. Rerun when it has ended."
            )
        time.sleep(_POLL_SECONDS)


def lock_of_another(error: str, stack: str) -> str | None:
    """Return the refusal for a lock that the CLI found in the user's backend; None for any other error."""
    if "currently locked" not in error:
        return None
    holder = _HOLDER.search(error)
    who = f" process {holder['pid']} of {holder['who']}, since {holder['since']}." if holder else ""
    return (
        f"another run is at work on stack {stack}:{who} Rerun when it has ended. If it was killed, free its lock: "
        f"`pulumi cancel --stack {stack}`; then `make refresh STACK={stack}` resolves what it has left."
    )


def refuse_while_pending(stack: automation.Stack, target: Target) -> None:
    """Refuse to work on a state with pending operations.

    Raises:
        UserError: There are some, of a run at work or of a killed one.
    """
    pending = (stack.export_stack().deployment or {}).get("pending_operations") or []
    if pending:
        names = ", ".join(f"{item['type']} {item['resource']['urn'].rpartition('::')[2]}" for item in pending)
        raise UserError(
            f"stack {target.stack} has operations under way: {names}. If another run is at work, rerun when it has "
            f"ended. If that was killed: `pulumi cancel --stack {target.stack}`, then `make refresh "
            f"STACK={target.stack}`, which resolves them."
        )


def _read(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return {}


def _is_alive(pid: object) -> bool:
    try:
        os.kill(int(str(pid)), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def recover(stack: automation.Stack, target: Target, report: Report) -> None:
    """Resolve the operations that a killed run has left pending."""
    state = stack.export_stack()
    deployment = dict(state.deployment or {})
    pending = deployment.pop("pending_operations", None) or []
    if not pending:
        return
    resources = deployment.setdefault("resources", [])
    for operation in pending:
        resource = operation["resource"]
        if not resource["type"].startswith("kubernetes:"):
            continue
        if operation["type"] == "creating":
            made = asyncio.run(_find(resource, resources, target))
            if made is not None:
                report(resource["urn"], "its creation was cut off, and is resumed")
                _take_in(resources, made)
        elif operation["type"] == "updating":
            for known in resources:
                if known["urn"] == resource["urn"] and not known.get("delete"):
                    known["initErrors"] = ["its update was cut off"]
    stack.import_stack(automation.Deployment(version=state.version, deployment=deployment))


def _take_in(resources: list[dict[str, Any]], made: dict[str, Any]) -> None:
    for old in resources:
        if old["urn"] == made["urn"]:
            if old.get("pendingReplacement"):
                resources.remove(old)
            else:
                old["delete"] = True
            break
    resources.append(made)


async def _find(resource: dict[str, Any], resources: list[dict[str, Any]], target: Target) -> dict[str, Any] | None:
    """Return the resource with the object whose creation was interrupted; None if this stack has none."""
    inputs = {key: _unsealed(value) for key, value in resource["inputs"].items()}
    wanted = objects.to_object(inputs)
    provider = next((r for r in resources if f"{r['urn']}::{r.get('id')}" == resource.get("provider")), {})
    given = {key: plain(_unsealed(value)) for key, value in provider.get("inputs", {}).items()}
    options = provider_settings.settings_of({k: v for k, v in given.items() if not k.startswith("__")})
    cluster = ApiConnection(provider_settings.load(options, target.environment))
    try:
        metadata = wanted["metadata"]
        live = await cluster.get(wanted["apiVersion"], wanted["kind"], metadata.get("namespace", ""), metadata["name"])
    finally:
        cluster.close()
    if live is None or not _is_ours(live, wanted):
        return None
    outputs = {
        **objects.checkpoint(live, inputs),
        "__initialApiVersion": PropertyValue(live["apiVersion"]),
        "__fieldManager": PropertyValue(f"{_CREATOR}-{live['metadata']['uid'][:8]}"),
    }
    sealed = {key: plain(value, _sealed) for key, value in outputs.items()}
    reasons = ["its creation was cut off"]
    return {**resource, "id": objects.id_of(live), "outputs": sealed, "initErrors": reasons}


def _is_ours(live: Object, wanted: Object) -> bool:
    """Return True if an object is that of the interrupted creation: made by the CLI's provider, with these labels."""
    labels = live["metadata"].get("labels") or {}
    asked = wanted["metadata"].get("labels") or {}
    return ownership.made_by(live, _CREATOR) and all(labels.get(k) == v for k, v in asked.items())


def _unsealed(value: Any) -> PropertyValue:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return value_of(json.loads(value["plaintext"])).with_secret(True)
        return PropertyValue({key: _unsealed(item) for key, item in value.items()})
    if isinstance(value, list):
        return PropertyValue([_unsealed(item) for item in value])
    return value_of(value)


def _sealed(value: Plain) -> Plain:
    return {SIGNATURE: SECRET, "plaintext": json.dumps(value)}
