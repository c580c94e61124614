"""Further machines of the lab: n2, n3, and so on, with links to the first one, which switches them on and off.

A link is a pair of sockets, so the machines need no network of this one, and reach nothing but each other. A machine
that is switched off ends as by a loss of power: at once, with what it had in memory, which is all that it had.
"""

import os
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tools.console import UserError, say
from tools.lab.boot import ENVIRONMENT, machine
from tools.paths import cache_dir

_BUFFER_BYTES = 4 << 20
"""Size of a link's buffers: as much as 2,700 packets."""

_PACKET_BYTES = 1 << 16
_LAST_LINES = 15
_END = "end"

_SWITCH_CONSOLE = 2
"""Console of the first machine whose lines switch further ones. Console 0 is the script's, 1 has its exit code."""

SWITCH = Path(f"/dev/tty{_SWITCH_CONSOLE}")
"""File of the first machine for requests, one in a line: `2 on`, `2 on COMMAND`, `2 off`."""


@dataclass(frozen=True)
class Further:
    """Further machines of a lab."""

    last: int = 1
    """Number of the last one. The first further machine is 2; with 1, there is none."""

    script: Callable[[int, str], str] = lambda _, command: command
    """Function of a machine's number and of the command of its request, which returns the machine's script."""

    memory_mib: int = 512
    processors: int = 1


@dataclass(frozen=True)
class Wires:
    """Connections of the first machine to the further ones."""

    arguments: tuple[str, ...] = ()
    """Arguments of its kernel. Its interfaces `vec0`, `vec1`, ... lead to n2, n3, ..."""

    descriptors: tuple[int, ...] = ()
    """File descriptors that it inherits."""


def log(number: int) -> Path:
    """Return the file with the console of a further machine, since it was last switched on."""
    return cache_dir() / "lab" / f"n{number}.log"


@contextmanager
def switchable(further: Further) -> Iterator[Wires]:
    """Yield connections to further machines, which are off at first, and end with the body.

    Raises:
        UserError: The body raised it. Its text has the last lines of the machines that were on.
    """
    numbers = range(2, further.last + 1)
    if not numbers:
        yield Wires()
        return
    with ExitStack() as stack:
        links = {number: _link(stack) for number in numbers}
        requests, switch = os.pipe()
        stack.callback(os.close, switch)
        board = _Switchboard(further, {number: there for number, (_, there) in links.items()}, requests)
        thread = threading.Thread(target=board.serve)
        thread.start()
        try:
            yield Wires(
                (
                    *(_interface(number - 2, here, 1, number) for number, (here, _) in links.items()),
                    f"con{_SWITCH_CONSOLE}=null,fd:{switch}",
                ),
                (*(here.fileno() for here, _ in links.values()), switch),
            )
        except UserError as error:
            raise UserError("\n".join([str(error), *map(_last_words, sorted(board.used))])) from error
        finally:
            with suppress(BrokenPipeError):  # the switchboard has ended
                os.write(switch, f"\n{_END}\n".encode())  # the machine may have ended within a line
            thread.join()


def _link(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Return the ends of a new link, that of the first machine first."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        stack.enter_context(end)
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return ends


def _interface(unit: int, end: socket.socket, side: int, number: int) -> str:
    """Return the kernel's argument for an interface. Its hardware address outlives the machine, as that of a card."""
    return f"vec{unit}:transport=fd,fd={end.fileno()},mac=52:54:00:00:{side:02x}:{number:02x}"


def _last_words(number: int) -> str:
    lines = log(number).read_text(errors="replace").splitlines()[-_LAST_LINES:]
    return "\n".join([f"The console of n{number}:", *(f"    {line.rstrip()}" for line in lines)])


class _Switchboard:
    """Serves requests, and takes the packets for machines that are off.

    Without the latter, a full link would have the first machine's driver close and lose it.
    """

    def __init__(self, further: Further, links: Mapping[int, socket.socket], requests: int) -> None:
        self._further = further
        self._links = links
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._on: dict[int, ExitStack] = {}
        self._unread = ""
        self._over = False
        self.used: set[int] = set()
        """Numbers of the machines that were ever on."""

    def serve(self) -> None:
        """Serve until the line `end`, and end all machines."""
        with self._selector:
            for number in self._links:
                self._unanswered(number)
            self._selector.register(self._requests, selectors.EVENT_READ, self._read)
            try:
                while not self._over:
                    for key, _ in self._selector.select():
                        key.data()
            finally:
                os.close(self._requests)
                for number in [*self._on]:
                    self._off(number)

    def _read(self) -> None:
        text = os.read(self._requests, _PACKET_BYTES).decode(errors="replace")
        *lines, self._unread = (self._unread + text).split("\n")
        for line in lines:
            self._serve_request(line.strip())

    def _serve_request(self, line: str) -> None:
        number, _, rest = line.partition(" ")
        act, _, command = rest.partition(" ")
        machine_number = next((known for known in self._links if str(known) == number), None)
        if line == _END:
            self._over = True
        elif machine_number and act == "on":
            self._switch_on(machine_number, command)
        elif machine_number and act == "off":
            self._off(machine_number)
        elif line:
            say(f"there is no machine to switch by the request: {line}")

    def _switch_on(self, number: int, command: str) -> None:
        if number in self._on:
            say(f"n{number} is on already, so a request to switch it on changes nothing. Switch it off before")
            return
        further, link = self._further, self._links[number]
        self._selector.unregister(link)
        self.used.add(number)
        with ExitStack() as stack:
            console = stack.enter_context(log(number).open("w"))
            try:
                started, folder = stack.enter_context(
                    machine(
                        further.script(number, command),
                        further.memory_mib,
                        further.processors,
                        writable=True,
                        answer="/dev/tty0",
                    )
                )
                process = stack.enter_context(
                    subprocess.Popen(
                        [
                            *("setpriv", "--pdeathsig", "KILL", "--", *map(str, started)),
                            *(_interface(0, link, 2, number), "con0=null,fd:1"),
                        ],
                        env={**os.environ, **ENVIRONMENT},
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=console,
                        stderr=subprocess.STDOUT,
                        pass_fds=[link.fileno()],
                        process_group=0,
                    )
                )
            except (UserError, OSError) as error:
                console.write(f"{error}\n")
                say(f"n{number} does not start: {error}")
                self._unanswered(number)
                return
            stack.callback(_kill, process.pid)
            end = os.pidfd_open(process.pid)
            stack.callback(os.close, end)
            self._on[number] = on = stack.pop_all()
            self._selector.register(end, selectors.EVENT_READ, lambda: self._ended(number, on))
            on.callback(self._selector.unregister, end)

    def _ended(self, number: int, stack: ExitStack) -> None:
        """Switch a machine off that has ended by itself, unless a request before has put another one in its place."""
        if self._on.get(number) is stack:
            self._off(number)

    def _off(self, number: int) -> None:
        if stack := self._on.pop(number, None):
            stack.close()
            self._unanswered(number)

    def _unanswered(self, number: int) -> None:
        """Take the packets for a machine until it is on."""
        link = self._links[number]
        self._selector.register(link, selectors.EVENT_READ, lambda: _drop(link))


def _drop(link: socket.socket) -> None:
    with suppress(BlockingIOError):
        link.recv(_PACKET_BYTES)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
