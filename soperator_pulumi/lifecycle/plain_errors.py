"""Errors of this package as Pulumi prints them: only the message, without traceback and cause."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from soperator_pulumi.errors import SoperatorError

P = ParamSpec("P")
R = TypeVar("R")


def without_traceback(operation: Callable[P, R]) -> Callable[P, R]:
    """Raise errors of this package without traceback and cause; Pulumi prints the tracebacks of all other errors."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return operation(*args, **kwargs)
        except SoperatorError as error:
            raise error.with_traceback(None) from None

    return run
