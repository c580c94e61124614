"""Pulumi on a machine whose threads overtake each other: it registers the resources of a program in another order."""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

import pytest

_Given = TypeVarTuple("_Given")
_Made = TypeVar("_Made")
_MOST_TURNS = 40


class ShuffledLoop(asyncio.SelectorEventLoop):
    """Event loop that lets other work overtake whatever it gives to a thread, by a number of turns."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._turns = random.Random(seed)  # noqa: S311 - an order, no secret

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Given], _Made], *args: *_Given
    ) -> asyncio.Future[_Made]:
        async def later(turns: int) -> _Made:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await asyncio.SelectorEventLoop.run_in_executor(self, executor, func, *args)

        return self.create_task(later(self._turns.randrange(_MOST_TURNS)))


def shuffle_registrations(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Have `soperator_pulumi.testing.deploy` register resources in an order that follows from the seed."""
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: ShuffledLoop(seed))
