"""A port that is open while a daemon answers.

The kubelet's probe is a connection to it. A probe that runs a program in a container starts three or four of them every
time, which jobs feel as noise of the operating system.
"""

import contextlib
import select
import socket
import struct
import sys
import time
from typing import Self

_BACKLOG = 128
_REST_SECONDS = 0.2
"""Time that connections wait to be ended. By then their makers know that the port is open, and are not reset at once,
and a flood of connections takes little of a processor."""


class Port:
    """A port of the pod, closed at first. It is bound at once and permanently, so that no job can take it.

    Args:
        number: Number of the port.
    """

    def __init__(self, number: int) -> None:
        dual = socket.has_dualstack_ipv6()
        self.number = number
        self._socket = socket.socket(socket.AF_INET6 if dual else socket.AF_INET)
        if dual:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Connections inherit it: none stays in TIME_WAIT, so that a watch that starts again gets the port. With
        # SO_REUSEADDR it would as well, and so would a job while the port is closed.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.setblocking(False)
        self._is_bound = self._bind()
        self.is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _bind(self) -> bool:
        try:
            self._socket.bind(("", self.number))
        except OSError as error:
            print(
                f"Port {self.number} cannot be had ({error.strerror}): the pod is not ready until it is free.",
                file=sys.stderr,
            )
            return False
        return True

    def open(self) -> None:
        """Accept connections, unless another process has the port."""
        self._is_bound = self._is_bound or self._bind()
        if self._is_bound:
            self._socket.listen(_BACKLOG)
            self.is_open = True

    def close(self) -> None:
        """Refuse connections. The socket stays bound: Linux reserves a port that was requested by number."""
        if self.is_open:
            self._socket.shutdown(socket.SHUT_RDWR)
            self.is_open = False

    def attend(self, seconds: float) -> None:
        """Accept and close connections for the given time."""
        end = time.monotonic() + seconds
        poll = select.poll()
        if self.is_open:
            poll.register(self._socket, select.POLLIN)
        while (left := end - time.monotonic()) > 0:
            if poll.poll(left * 1000):
                time.sleep(min(_REST_SECONDS, left))
                with contextlib.suppress(OSError):  # none is left, or it has ended by itself
                    for _ in range(_BACKLOG):
                        self._socket.accept()[0].close()
