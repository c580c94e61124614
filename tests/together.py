"""Tests that share a cluster run in one process, one after the other: each process would make a cluster of its own."""

import json
import os
import tempfile
from functools import cached_property
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from soperator_pulumi.whole_files import write_whole

SHARED = ("slurm", "three_workers")
"""Fixtures of the session that make a cluster."""

_FILE = "TEST_GROUPS"
"""Variable with a file: processes that run tests write the groups for the one that schedules, which reads no test."""


def group_of(item: pytest.Item) -> str:
    """Return the shared cluster that a test uses, else its file."""
    assert isinstance(item, pytest.Function)
    of_session = (name for name in SHARED if name in item.fixturenames and not hasattr(item.module, name))
    return next(of_session, item.nodeid.partition("::")[0])


def sort(items: list[pytest.Item]) -> None:
    """Put groups one after the other, those that take long first, or one process works on alone in the end."""

    def given_seconds(item: pytest.Item) -> float:
        marker = item.get_closest_marker("timeout")
        return float(marker.args[0]) if marker and marker.args else 0.0

    places = {name: place for place, name in enumerate(dict.fromkeys(map(group_of, items)))}
    items.sort(key=lambda item: (group_of(item) not in SHARED, -given_seconds(item), places[group_of(item)]))


class Groups:
    """Plugin of pytest: a group runs in one process (`--dist loadfile`). xdist's own groups do not work in pytest 9."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Begin with what takes long, and write the groups."""
        sort(items)
        if hasattr(config, "workerinput"):
            groups = json.dumps({item.nodeid: group_of(item) for item in items})
            write_whole(Path(os.environ[_FILE]), groups)  # all processes write the same

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> LoadScopeScheduling | None:
        """Return the scheduler for `--dist loadfile`."""
        return _ByGroup(config, log) if config.getoption("dist") == "loadfile" else None


class _ByGroup(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Gives a process one group after the other."""

    @cached_property
    def _groups(self) -> dict[str, str]:
        return dict(json.loads(Path(os.environ[_FILE]).read_text()))

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


def register(config: pytest.Config) -> None:
    """Add the plugin."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="groups-")
        config.add_cleanup(folder.cleanup)
        os.environ[_FILE] = f"{folder.name}/groups.json"
    config.pluginmanager.register(Groups())
