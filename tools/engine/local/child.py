"""Child in the project's own interpreter: program, the SDK's server for dynamic resources, plugin or policy pack.

It is a script, as the project's environment may lack this package's tools. The child ends with its engine, even a
killed one: a server that outlived its engine would still change resources.
"""

import asyncio
import base64
import contextlib
import ctypes
import json
import logging
import os
import pickle
import runpy
import signal
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pulumi
import pulumi.runtime

_PR_SET_PDEATHSIG = 1  # prctl(2)


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the engine has ended")


def _program(settings: dict[str, object]) -> int:
    """Run the program as `pulumi up` does, and return the exit code."""
    root, folder = str(settings["root"]), str(settings["program"])
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            project=str(settings["project"]),
            stack=str(settings["stack"]),
            organization="organization",
            root_directory=root,
            dry_run=bool(settings["dry_run"]),
            parallel=16,
            monitor=str(settings["address"]),
            engine=str(settings["address"]),
        )
    )
    # Debug messages are printed nowhere, and the program would wait for an answer to each, four a resource.
    pulumi.log.debug = lambda *_, **__: None
    os.chdir(folder)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max_workers=256)  # a registration holds a thread until its resource is done
    loop.set_default_executor(executor)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # asyncio reports futures that a failed program has left
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _run(folder)))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return 1
    except Exception as error:  # noqa: BLE001 - every exception of the program is for its author
        pulumi.log.error(_users_part(error, folder))
        return 1
    finally:
        executor.shutdown(wait=True)
        loop.close()
    return 0


def _run(folder: str) -> None:
    runpy.run_path(folder, run_name="__main__")


def _users_part(error: Exception, folder: str) -> str:
    """Return a traceback that begins in the program, without the frames above it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if frame.filename.startswith(folder)), 0)
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    return "the program failed:\n" + "".join(lines).rstrip()


def _policy(folder: str) -> int:
    """Serve a policy pack in its own folder, as the CLI does."""
    sys.path[0] = folder
    sys.argv = ["pulumi.policy", "", folder]
    os.chdir(folder)
    runpy.run_module("pulumi.policy", run_name="__main__")
    return 0


def _import_early(providers: list[str]) -> None:
    """Import the modules of the state's providers while the program starts, as the server needs them at first use."""
    for provider in providers:
        with contextlib.suppress(Exception):  # a call of that provider will report the error
            pickle.loads(base64.b64decode(provider))  # noqa: S301 - our own, which the server will read, too


def main() -> int:
    """Run `child.py ROLE <settings as JSON>`; the role is `program`, `dynamic`, `plugin` or `policy`."""
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    _end_with_parent(settings["parent"])
    sys.path[0] = settings["program"]
    if role == "policy":
        return _policy(settings["pack"])
    if role == "program":
        sys.argv = [str(Path(settings["program"]) / "__main__.py")]
        return _program(settings)
    if role == "plugin":
        sys.argv = [settings["plugin"], settings["address"]]
        runpy.run_path(settings["plugin"], run_name="__main__")
        return 0
    sys.argv = ["pulumi.dynamic"]
    os.chdir(settings["program"])
    threading.Thread(target=_import_early, args=[sys.stdin.read().split()], daemon=True).start()
    runpy.run_module("pulumi.dynamic", run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
