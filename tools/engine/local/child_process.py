"""Starts children (program, server for dynamic resources, plugins, policy packs) and reads their output."""

import asyncio
import contextlib
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tools.engine.project import Project
from tools.engine.protocol import Target

_CHILD = Path(__file__).with_name("child.py")
_LINE_LIMIT_BYTES = 2**20


async def start(
    role: str,
    project: Project,
    target: Target,
    *,
    settings: Mapping[str, object] | None = None,
    lines: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start a child.

    Args:
        role: `program` runs the program, `dynamic` serves its dynamic resources, `plugin` is a plugin, `policy` a pack.
        project: Project of the program.
        target: Stack to deploy.
        settings: Further settings, which every user of the machine can read.
        lines: Lines for standard input, which no other user can read.
        environment: Further variables.
    """
    everything = {
        "parent": os.getpid(),
        "project": project.name,
        "stack": target.stack,
        "root": str(project.root.resolve()),
        "program": str(project.program.resolve()),
        **(settings or {}),
    }
    variables = {
        **os.environ,
        **target.environment,
        "PULUMI_CONFIG": json.dumps(dict(project.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(project.secret_keys),
        "PULUMI_PROJECT": project.name,
        "PULUMI_STACK": target.stack,
        "PYTHONUNBUFFERED": "1",
        "GRPC_VERBOSITY": "ERROR",  # the end of a connection is no news
        **(environment or {}),
    }
    process = await asyncio.create_subprocess_exec(
        str(project.python), "-u", str(_CHILD), role, json.dumps(everything),
        stdin=PIPE, stdout=PIPE, stderr=PIPE,
        env=variables, limit=_LINE_LIMIT_BYTES, start_new_session=True,
    )  # fmt: skip
    if process.stdin is not None:
        process.stdin.write("\n".join(lines).encode())
        process.stdin.close()
    return process


async def pump(stream: asyncio.StreamReader | None, line: Callable[[str], None]) -> None:
    """Pass every line that a child prints to `line`."""
    if stream is None:
        return
    async for raw in stream:
        line(raw.decode(errors="replace").rstrip("\n"))


async def stop(process: Process) -> None:
    """Kill a child and wait for its end."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
