"""An engine that is killed: no one hears its plugin any more, so the plugin ends."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

from tests.waiting import wait_until
from tools.paths import ROOT

ENGINE = "import subprocess, sys; subprocess.run(sys.argv[1:])"
"""Starts a plugin and waits for it, as an engine does."""


def test_a_plugin_ends_with_the_process_that_has_started_it() -> None:
    command = [sys.executable, "-c", ENGINE, sys.executable, str(ROOT / "components"), "127.0.0.1:1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as engine:
        try:
            output = engine.stdout
            assert output
            assert output.readline().strip().isdigit()
            engine.kill()
            # The plugin has its standard output from the engine: the stream ends with it.
            wait_until(lambda: bool(select.select([output], [], [], 0)[0]), "the plugin has ended")
            assert output.read() == ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(engine.pid, signal.SIGKILL)
