"""The end of the SDK's server of dynamic resources, for which the engine waits in every run."""

import gc
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from soperator_pulumi.lifecycle import sdk_server


def test_the_server_ends_without_a_last_collection_of_all_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    server = SimpleNamespace(__spec__=SimpleNamespace(name="pulumi.dynamic.__main__"))
    register = Mock()
    monkeypatch.setitem(sys.modules, "__main__", server)
    monkeypatch.setattr("soperator_pulumi.lifecycle.sdk_server.atexit.register", register)

    sdk_server.adapt_sdk_server()
    (at_exit,) = register.call_args.args
    at_exit()

    try:
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
