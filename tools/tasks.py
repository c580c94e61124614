"""Tasks in parallel threads. The first failure ends the other tasks and the programs that they run."""

import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, AnyStr

from tools import console


class Ended(Exception):  # noqa: N818 - the task that receives it has not failed
    """Request to stop: another task has failed, or the user has interrupted all tasks."""


class _Group:
    """Tasks that run in parallel, and their programs."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._programs: set[subprocess.Popen[Any]] = set()
        self._over = False

    def check(self) -> None:
        if self._over:
            raise Ended

    def start(self, start: Callable[[], "subprocess.Popen[AnyStr]"]) -> "subprocess.Popen[AnyStr]":
        with self._guard:  # an end between the check and the start would miss the program
            self.check()
            program = start()
            self._programs.add(program)
            return program

    def forget(self, program: "subprocess.Popen[Any]") -> None:
        with self._guard:
            self._programs.discard(program)

    def end(self) -> None:
        with self._guard:
            self._over = True
            for program in self._programs:
                program.kill()


_group: ContextVar[_Group] = ContextVar("group", default=_Group())  # noqa: B039 - nothing ends the one that all have


def together(tasks: Mapping[str, Callable[[], object]]) -> None:
    """Run tasks in parallel to their end, and prefix every line that a task prints with its name.

    The first failure, or Ctrl-C, ends the other tasks and is raised after their end.
    """
    group = _Group()

    def run(name: str, task: Callable[[], object]) -> None:
        _group.set(group)
        with console.prefixed(name):
            task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        try:
            futures = [pool.submit(copy_context().run, run, name, task) for name, task in tasks.items()]
            for future in as_completed(futures):
                future.result()
        except BaseException:
            group.end()
            raise


def check() -> None:
    """Raise Ended if this thread's task must stop: for loops that run no program."""
    _group.get().check()


@contextmanager
def program(start: Callable[[], "subprocess.Popen[AnyStr]"]) -> Iterator["subprocess.Popen[AnyStr]"]:
    """Yield the program that `start` starts, and wait for its end. An exception in the block kills it first.

    Raises:
        Ended: This thread's task is to stop. The program was killed or did not start.
    """
    group = _group.get()
    started = group.start(start)
    try:
        with started:
            try:
                yield started
            except BaseException:
                started.kill()
                raise
        group.check()
    finally:
        group.forget(started)
