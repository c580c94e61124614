"""The SDK's server of dynamic resources, `pulumi.dynamic.__main__` (3.260), adapted in its own process.

The functions leave a server of another form alone: its answers are longer, and Ctrl-C ends no wait.
"""

import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.progress import CANCELLED

_CANCEL = ThreadPoolExecutor(1, initializer=CANCELLED.set)
"""Thread for the engine's call `Cancel`, to which the server's own four are closed while each of them waits."""


def adapt_sdk_server() -> None:
    """Adapt the server, where this process is one."""
    server: Any = sys.modules["__main__"]
    spec = getattr(server, "__spec__", None)
    if spec is not None and spec.name == "pulumi.dynamic.__main__":
        _answer_without_traceback(server)
        _hear_cancel(server)


def _answer_without_traceback(server: Any) -> None:  # noqa: ANN401 - a module
    """Have the server answer with the message alone when an error of ours ends an operation.

    It answers each exception with `traceback.format_exc()`: six lines of the SDK's own before our message.
    """
    if getattr(server, "traceback", None) is traceback:
        server.traceback = SimpleNamespace(format_exc=_message)


def _message() -> str:
    """Return the message about the exception that is being handled."""
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, SoperatorError) else traceback.format_exc()


def _hear_cancel(server: Any) -> None:  # noqa: ANN401 - a module
    """Have all operations end once the engine cancels the run. The SDK's `Cancel` does nothing.

    gRPC runs a method that has this attribute in a pool of its own, whose first thread sets the event.
    """
    if (cancel := getattr(getattr(server, "DynamicResourceProviderServicer", None), "Cancel", None)) is not None:
        cancel.experimental_thread_pool = _CANCEL
