"""pytest plugin for a part of `make soak`: runs shares of files, the longest file first, and prints progress.

`-p tools.soak.pytest_plugin --share tests/unit/test_long.py=2/3` runs the second third of a file's tests.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

_Shares = dict[str, tuple[set[int], int]]
"""Numbers of the shares to run, and the total number of shares, by file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    words = "run a share of a file's tests and not all; several add up"
    parser.addoption("--share", action="append", default=[], metavar="FILE=SHARE/SHARES", help=words)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out other shares, and sort files as on the command line."""
    chosen = of_shares([item.nodeid for item in items], shares(config.getoption("share")))
    if left_out := [item for item in items if item.nodeid not in chosen]:
        config.hook.pytest_deselected(items=left_out)
    place = {file: number for number, file in enumerate(config.args)}
    items[:] = [item for item in items if item.nodeid in chosen]
    items.sort(key=lambda item: place.get(_file(item.nodeid), len(place)))


def pytest_configure(config: pytest.Config) -> None:
    """Print progress in the process that reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FileProgress(config))


class FileProgress:
    """Prints every file when its first test begins: its number, and the time so far."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._files = len({*config.args})
        self._begun: set[str] = set()
        self._started = time.monotonic()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Print the file of a starting test, unless another test of it has started."""
        file = _file(nodeid)
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if file not in self._begun and terminal is not None:
            self._begun.add(file)
            seconds = time.monotonic() - self._started
            terminal.write_line(f"\n{seconds:7.1f} s  file {len(self._begun)} of {self._files}: {file}")


def shares(options: Iterable[str]) -> _Shares:
    """Return the shares in options such as `tests/unit/test_long.py=2/3`."""
    found: _Shares = {}
    for option in options:
        file, _, words = option.rpartition("=")
        share, _, number = words.partition("/")
        found.setdefault(file, (set(), int(number)))[0].add(int(share))
    return found


def of_shares(nodeids: Sequence[str], chosen: _Shares) -> set[str]:
    """Return the tests to run: the second of three shares of a file has the tests 2, 5, 8 by name."""
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for nodeid in sorted(nodeids):
        by_file[_file(nodeid)].append(nodeid)
    run: set[str] = set()
    for file, tests in by_file.items():
        numbers, of = chosen.get(file, ({1}, 1))
        run.update(test for number, test in enumerate(tests) if number % of + 1 in numbers)
    return run


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
