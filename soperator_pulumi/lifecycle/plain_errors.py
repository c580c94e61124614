"""Errors of ours as Pulumi prints them: the message alone, without traceback and cause."""

import functools
import sys
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

from soperator_pulumi.errors import SoperatorError

P = ParamSpec("P")
R = TypeVar("R")


def without_traceback(operation: Callable[P, R]) -> Callable[P, R]:
    """Raise errors of ours without traceback and cause; Pulumi prints the tracebacks of all other errors."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return operation(*args, **kwargs)
        except SoperatorError as error:
            raise error.with_traceback(None) from None

    return run


def answer_without_traceback() -> None:
    """Have the SDK's server answer with the message alone when an error of ours ends an operation.

    `pulumi.dynamic.__main__` (3.260) answers each exception with `traceback.format_exc()`: six lines of the SDK's own
    before our message. A server that finds that function in another way is left alone: our message comes last there.
    """
    server: Any = sys.modules["__main__"]
    spec = getattr(server, "__spec__", None)
    if spec is not None and spec.name == "pulumi.dynamic.__main__" and getattr(server, "traceback", None) is traceback:
        server.traceback = SimpleNamespace(format_exc=_message)


def _message() -> str:
    """Return the message about the exception that is being handled."""
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, SoperatorError) else traceback.format_exc()
