"""Commands in one container by one shell that stays: an exec for each would start a runtime, and that costs most.

An exec takes 0.15 s of the processors, by kubelet, containerd and runc; tests look at Slurm every half second.
"""

import secrets
import shlex
import time
from collections.abc import Sequence
from typing import Any

import websocket

from soperator_pulumi.errors import TransportError
from soperator_pulumi.kube.exec_transport import ExecTransport
from soperator_pulumi.slurm.transport import Answer

_POLL_SECONDS = 1.0


class PodShell:
    """A shell in a container, begun with the first command, and again where its container is another one."""

    def __init__(self, transport: ExecTransport) -> None:
        self._transport = transport
        self._socket: Any = None

    def run(self, command: Sequence[str], *, timeout_seconds: float) -> Answer:
        """Run a command without standard input, and return its answer, whatever its exit code.

        Raises:
            TransportError: The container is not there, or did not answer in time. The command may have run.

        """
        try:
            return self._run(command, timeout_seconds)
        except (websocket.WebSocketException, OSError) as error:
            self.close()
            raise TransportError(f"{self._transport}: the connection broke while {command[0]} ran: {error}") from error
        except TransportError:
            self.close()
            raise

    def close(self) -> None:
        """End the shell, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket.sock.shutdown()  # left open when it was the server that closed
            self._socket = None

    def _run(self, command: Sequence[str], timeout_seconds: float) -> Answer:
        mark = secrets.token_hex(8)
        line = f"({shlex.join(command)}) < /dev/null; printf '\\n{mark} %s\\n' $?; printf '\\n{mark} \\n' >&2\n"
        socket = self._shell()
        socket.write_stdin(line.encode())
        deadline = time.monotonic() + timeout_seconds
        outputs = [b"", b""]
        ends = [f"\n{mark} ".encode()] * 2
        while not all(end in out and out.endswith(b"\n") for end, out in zip(ends, outputs, strict=True)):
            if time.monotonic() > deadline:
                raise TransportError(f"{self._transport}: {command[0]} did not answer within {timeout_seconds:.0f} s.")
            if not socket.is_open():
                raise TransportError(f"{self._transport}: the container ended while {command[0]} ran.")
            socket.update(timeout=_POLL_SECONDS)
            outputs[0] += socket.read_stdout() if socket.peek_stdout() else b""
            outputs[1] += socket.read_stderr() if socket.peek_stderr() else b""
        (stdout, _, code), (stderr, _, _) = (out.partition(end) for out, end in zip(outputs, ends, strict=True))
        return Answer(int(code), stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    def _shell(self) -> Any:
        if self._socket is not None and not self._is_open():
            self.close()
        if self._socket is None:
            self._socket = self._transport._open(["/bin/sh"], stdin=True)
        return self._socket

    def _is_open(self) -> bool:
        """Return False if the connection has ended, by a message of its end or without one."""
        try:
            self._socket.update(timeout=0)
        except (websocket.WebSocketException, OSError):
            return False
        return bool(self._socket.is_open())
