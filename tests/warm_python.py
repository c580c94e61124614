"""An interpreter that has already imported what Pulumi programs import: it forks where another one would start.

A deployment starts two Python processes, and most of the processor's time in one goes into their imports. Tests make
hundreds of them. `executable()` stands in for `python -u SCRIPT ARGUMENT...`; tests that kill what they have started,
or that are about the start itself, use the real one.
"""

import atexit
import contextlib
import functools
import gc
import io
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TextIO

from tools import paths

_IMPORTED = (
    "pulumi.dynamic",
    "pulumi_kubernetes.apps.v1",
    "pulumi_kubernetes.batch.v1",
    "pulumi_kubernetes.core.v1",
    "pulumi_kubernetes.networking.v1",
    "pulumi_kubernetes.policy.v1",
    "pulumi_random",
    "soperator_pulumi.cluster",
    "soperator_pulumi.kube.kube_api",
    "soperator_pulumi.policy.pack",
    "soperator_pulumi.stack.program",
)

# Passes its arguments, environment, folder and standard streams on, and ends as the fork does. Killed, it takes the
# fork along: its connection ends.
_STUB = """\
#!{python} -IS
import json, os, socket, sys
asked = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), os.getppid()]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(asked)
    for stream in 0, 1, 2:
        os.close(stream)
    answer = server.recv(16)
os._exit(int(answer or 1))
"""


@functools.cache
def executable() -> Path:
    """Return the program to call in place of `python`. What it needs is started, and ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    atexit.register(folder.cleanup)
    address = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm_python", address],
        cwd=paths.ROOT,
        # Forks are as they would be on a machine that does not have this variable.
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(server.communicate)  # its standard input ends, and so does it
    assert server.stdout
    assert server.stdout.readline() == b"ready\n"
    stub = Path(folder.name) / "python"
    stub.write_text(_STUB.format(python=sys.executable, address=address))
    stub.chmod(0o755)
    return stub


class _Server:
    """Forks for each connection."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, lambda: sys.exit(0))

    def serve(self) -> list[str]:
        """Serve until standard input ends. In a fork: return its arguments."""
        while True:
            for key, _ in self._selector.select():
                if (arguments := key.data()) is not None:
                    return list(arguments)

    def _accept(self) -> list[str] | None:
        connection, _ = self._listener.accept()
        length, streams, _, _ = socket.recv_fds(connection, 4, 3)
        asked = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
        if not asked or len(asked) < int.from_bytes(length, "big"):  # the stub was killed while it asked
            for stream in streams:
                os.close(stream)
            connection.close()
            return None
        arguments, environment, folder, parent = json.loads(asked)
        pid = os.fork()
        if pid == 0:
            self._become(connection, streams, environment, folder, parent)
            return list(arguments)
        for stream in streams:
            os.close(stream)
        ended = os.pidfd_open(pid)
        self._selector.register(ended, selectors.EVENT_READ, lambda: self._report(connection, pid, ended))
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._kill(connection, pid))
        return None

    def _report(self, connection: socket.socket, pid: int, ended: int) -> None:
        """Tell the stub how its fork has ended."""
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(ended)
        os.close(ended)
        if connection in self._selector.get_map():
            self._selector.unregister(connection)
            with contextlib.suppress(OSError):  # the stub has just been killed
                connection.send(str(os.waitstatus_to_exitcode(status) % 256).encode())
        connection.close()

    def _kill(self, connection: socket.socket, pid: int) -> None:
        """End the fork of a stub that was killed."""
        if connection.fileno() >= 0 and connection in self._selector.get_map():
            self._selector.unregister(connection)
            os.kill(pid, signal.SIGKILL)

    def _become(
        self, connection: socket.socket, streams: list[int], environment: dict[str, str], folder: str, parent: int
    ) -> None:
        """Make the fork what its stub is for whoever started that."""
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        connection.close()
        for key in [*self._selector.get_map().values()]:
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            elif key.fd > sys.stderr.fileno():
                os.close(key.fd)
        self._selector.close()
        sys.stdout, sys.stderr = (_unbuffered(output) for output in (sys.stdout, sys.stderr))
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        setattr(os, "getppid", lambda: parent)  # noqa: B010 - a child of the engine ends when that is not its parent


def _unbuffered(output: TextIO) -> TextIO:
    """Return a stream that writes at once, its bytes too, as those of `python -u` do."""
    raw = io.FileIO(output.fileno(), "w", closefd=False)
    return io.TextIOWrapper(raw, encoding=output.encoding, errors=output.errors, write_through=True)


def main() -> None:
    """Import, and serve on the socket that the argument names until standard input ends."""
    for module in _IMPORTED:
        import_module(module)
    gc.freeze()  # or the first collection in a fork would copy all of its memory
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        arguments = [text for text in _Server(listener).serve() if text != "-u"]
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
