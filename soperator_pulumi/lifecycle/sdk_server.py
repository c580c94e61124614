"""Adaptations of the SDK's server of dynamic resources, `pulumi.dynamic.__main__` (3.260), in its own process.

A server of another form is left alone: then answers include tracebacks, and Ctrl-C ends no wait.
"""

import atexit
import gc
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.progress import CANCELLED

_CANCEL = ThreadPoolExecutor(1, initializer=CANCELLED.set)
"""Thread for the engine's call `Cancel`: the server's own four threads may all be busy waiting."""


def adapt_sdk_server() -> None:
    """Adapt the server, if this process is one."""
    server: Any = sys.modules["__main__"]
    spec = getattr(server, "__spec__", None)
    if spec is not None and spec.name == "pulumi.dynamic.__main__":
        _answer_without_traceback(server)
        _handle_cancel(server)
        atexit.register(gc.freeze)  # the engine waits for the end, most of which is a last collection


def _answer_without_traceback(server: Any) -> None:  # noqa: ANN401 - a module
    """Make the server answer with only the message when an error of this package ends an operation.

    It would answer with `traceback.format_exc()`, which puts six lines of the SDK before the message.
    """
    if getattr(server, "traceback", None) is traceback:
        server.traceback = SimpleNamespace(format_exc=_message)


def _message() -> str:
    """Return the message about the exception that is being handled."""
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, SoperatorError) else traceback.format_exc()


def _handle_cancel(server: Any) -> None:  # noqa: ANN401 - a module
    """Make all operations end once the engine cancels the run. The SDK's `Cancel` does nothing.

    gRPC runs a method with this attribute in its own pool, whose first thread sets the event.
    """
    if (cancel := getattr(getattr(server, "DynamicResourceProviderServicer", None), "Cancel", None)) is not None:
        cancel.experimental_thread_pool = _CANCEL
