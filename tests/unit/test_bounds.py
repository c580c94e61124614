"""The libraries of images/bounds, built with the machine's compiler, in front of what stands for slurmctld."""

import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.soak import times
from tests.unit.spank_plugin.compiler import toolchain
from tests.waiting import wait_until
from tools.paths import ROOT

SOURCES = ROOT / "images" / "bounds"
FUZZ_SECONDS = times(1, 60)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-static-libasan", "-static-libubsan")
LIBRARY = """\
void *hostlist_create_dims(const char *list, int dims) { return dims == 1 ? (void *)list : 0; }
void *slurm_hostlist_create_dims(const char *list, int dims) { return hostlist_create_dims(list, dims); }
void *hostlist_create(const char *list) { return hostlist_create_dims(list, 1); }

#include <stdlib.h>
#include <string.h>
char *slurm_xstrdup(const char *text) { return strdup(text); }
void slurm_xfree(void **place) { free(*place); *place = 0; }
int unpackstr_array(char ***strings, unsigned *count, void *buffer)
{
    *count = ((char **)buffer)[0] ? atoi(((char **)buffer)[0]) : 0;
    *strings = calloc(*count + 1, sizeof(char *));
    for (unsigned i = 0; i < *count; i++)
        (*strings)[i] = strdup(((char **)buffer)[1]);
    return 0;
}
int unpack(char ***strings, unsigned *count, void *buffer) { return unpackstr_array(strings, count, buffer); }
"""
"""What stands for libslurm."""

PROGRAM = """\
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
void *hostlist_create(const char *list);
int unpack(char ***strings, unsigned *count, void *buffer);
int main(int count, char **words)
{
    char **strings;
    unsigned unpacked;

    if (count == 2)
        return hostlist_create(words[1]) ? 0 : 1;
    if (count == 4)
        accept4(-1, NULL, NULL, 0);
    if (unpack(&strings, &unpacked, words + 1))
        return 1;
    for (unsigned i = 0; i < unpacked; i++)
        puts(strings[i]);
    return 0;
}
"""
"""Return 0 if the host list of the first word is made; or print as many strings as the first word says, the second.
With a third word, accept connections before that."""

DAEMON = """\
import contextlib, selectors, socket
listener = socket.create_server(("0.0.0.0", 0))
print(listener.getsockname()[1], flush=True)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
asked = []
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        request = key.fileobj.recv(16)
        if request == b"now":
            for connection in [*asked, key.fileobj]:
                with contextlib.suppress(BrokenPipeError):
                    connection.sendall(b"answer")
            continue
        if request == b"much":
            key.fileobj.setblocking(False)
            key.fileobj.send(bytes(10**8))  # as much as the kernel takes
            continue
        if request == b"own":
            far.send(b"x")
            key.fileobj.sendall(b"answer" if near.recv(1) else b"")
            continue
        selector.unregister(key.fileobj)
        if request == b"later":
            asked.append(key.fileobj)
        else:
            number = key.fileobj.fileno()
            key.fileobj.close()
        if request == b"leave":
            near, far = socket.socketpair()
            assert near.fileno() == number
"""
"""Answer requests at once, or with the next one, or with much, and close connections at their end. After `leave` a
socket of the daemon's own has the descriptor of the connection, and `own` needs that socket."""

READER = """\
import contextlib, selectors, socket
listener = socket.create_server(("0.0.0.0", 0))
print(listener.getsockname()[1], flush=True)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ, bytearray())
            continue
        data = b""
        with contextlib.suppress(ConnectionError):
            data = key.fileobj.recv(1 << 16)
        key.data.extend(data)
        if not data:
            selector.unregister(key.fileobj)
            key.fileobj.close()
        elif key.data.endswith(b"\\r\\n\\r\\n") or int.from_bytes(key.data[:4], "big") == len(key.data) - 4:
            key.data.clear()
            key.fileobj.sendall(b"answer")
"""
"""Answer requests, which are their length and as many bytes, or end with an empty line."""

MOST = 16


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools, build = toolchain(), tmp_path_factory.mktemp("bounds") / "build"
    shutil.copytree(SOURCES, build)
    (build / "library.c").write_text(LIBRARY)
    (build / "program.c").write_text(PROGRAM)
    environment = {**os.environ, **tools.environment}
    hurried = [
        "-DREAD_SECONDS=2",
        "-DREAD_BYTES=65536",
        "-O2",
        "-std=c11",
        "-D_GNU_SOURCE",
        "-fPIC",
        "-shared",
        "-o",
        "hurried.so",
    ]
    compiled = [
        [str(tools.make), "--silent", *tools.variables],
        [*tools.compiler, *hurried, "bounded_connections.c", "-ldl", "-pthread"],
        [*tools.compiler, "-fPIC", "-shared", "-o", "liblists.so", "library.c"],
        [*tools.compiler, "-o", "program", "program.c", "-L.", "-llists", f"-Wl,-rpath,{build}"],
    ]
    for command in compiled:
        subprocess.run(command, cwd=build, env=environment, check=True, timeout=300)
    return build


def is_made(build: Path, hosts: str, limit: dict[str, str]) -> bool:
    """Return True if a program gets a list of the hosts."""
    environment = {"LD_PRELOAD": str(build / "bounded_hostlists.so"), **limit}
    return subprocess.run([build / "program", hosts], env=environment, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("hosts", "made"),
    [
        ("", True),
        ("cpu-0", True),
        ("cpu-[0-9]", True),
        ("cpu-[0-4,7-9],gpu-0,gpu-1", True),
        ("cpu-[0-9],gpu-0", False),
        ("cpu-[00-09] gpu-0", False),
        ("a,b,c,d,e,f,g,h,i,j,k", False),
        ("x[0-9999][0-9999]", False),
        ("x[0-4]y[0-1]", True),
        ("x[0-4]y[0-2]", False),
        ("x[0-18446744073709551615]", False),
        ("x[0-4294967295][0-4294967295][0-4294967295]", False),
        ("x[5-1]", True),
        ("x[][0-10]", False),
        ("x[,][0-10]", False),
        ("x[0-+9]", False),
        ("x[0- 9]", False),
        ("x[[0-1]y[0-1]", False),
        ("x[0-99", False),
        ("x[", False),
        ("x]", True),
        ("x[a-z]", False),
    ],
)
def test_a_list_of_more_hosts_than_the_limit_is_no_list(build: Path, hosts: str, made: bool) -> None:
    assert is_made(build, hosts, {"HOSTLIST_MAX": "10"}) == made


def test_without_a_limit_every_list_is_made(build: Path) -> None:
    assert is_made(build, "x[0-99999]", {})


def test_no_list_breaks_the_count_of_its_hosts(tmp_path: Path) -> None:
    tools, seed = toolchain(), str(int.from_bytes(os.urandom(3)))
    sources = [SOURCES / "tests/fuzz_hostlists.c", ROOT / "spank-plugin/tests/fuzz.c"]
    compiler = [*tools.compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", *SANITIZERS]
    environment = {**os.environ, **tools.environment}
    subprocess.run([*compiler, "-o", tmp_path / "fuzz", *sources, "-ldl"], env=environment, check=True, timeout=300)

    command = [str(tmp_path / "fuzz"), str(FUZZ_SECONDS), seed]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seed {seed}" in done.stdout


def unpacked(build: Path, environment: dict[str, str], *words: str) -> list[str]:
    """Return the strings that a program prints."""
    command = [str(build / "program"), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("count", "text", "limit", "strings"),
    [
        (3, "A=12345", "48", ["A=12345"] * 3),
        (3, "A=123456", "48", ["SOPERATOR_TOO_LARGE=51"]),
        (1000, "", "8999", ["SOPERATOR_TOO_LARGE=9000"]),
        (0, "", "1", []),
        (1000, "A=1", "", ["A=1"] * 1000),
    ],
)
def test_of_strings_larger_than_the_limit_their_size_is_left(
    build: Path, count: int, text: str, limit: str, strings: list[str]
) -> None:
    environment = {
        "LD_PRELOAD": f"{build}/bounded_connections.so:{build}/bounded_environments.so",
        **({"ENVIRONMENT_MAX": limit} if limit else {}),
    }
    assert unpacked(build, environment, str(count), text, "accepts") == strings


def test_slurmctld_reads_the_strings_of_its_state_whole(build: Path) -> None:
    environment = {"LD_PRELOAD": str(build / "bounded_environments.so"), "ENVIRONMENT_MAX": "48"}
    assert unpacked(build, environment, "3", "A=123456") == ["A=123456"] * 3


def test_a_program_without_slurms_library_runs_all_the_same(build: Path) -> None:
    """slurmctld gives what it was started with to the programs that it starts."""
    libraries = ":".join(str(path) for path in [*build.glob("bounded_*.so"), build / "known_messages.so"])
    environment = {"LD_PRELOAD": libraries, "LD_BIND_NOW": "1", "ENVIRONMENT_MAX": "1"}
    assert subprocess.run(["/bin/true"], env=environment, capture_output=True, check=True, timeout=60).stderr == b""


class Callers:
    """Connections to a daemon, closed in the end."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self._port = port
        self._stack = stack

    def call(self, source: str = "127.0.0.1") -> socket.socket:
        """Return a silent connection from an address of this machine."""
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=10, source_address=(source, 0))
        return self._stack.enter_context(connection)


@contextmanager
def daemon(
    build: Path,
    limit: dict[str, str],
    library: str = "bounded_connections.so",
    name: str = sys.executable,
    program: str = DAEMON,
) -> Iterator[Callers]:
    environment = {**os.environ, "LD_PRELOAD": str(build / library), **limit}
    command = [name, "-c", program]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(command, executable=sys.executable, env=environment, stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        yield Callers(int(process.stdout.readline()), stack)


@pytest.fixture
def bounded(build: Path) -> Iterator[Callers]:
    with daemon(build, {"CONNECTIONS_MAX": str(MOST)}) as callers:
        yield callers


def is_answered(connection: socket.socket, request: bytes = b"now") -> bool:
    """Return True if a request on the connection has an answer, and False if the connection has ended."""
    try:
        connection.sendall(request)
        return connection.recv(16) == b"answer"
    except ConnectionError:
        return False


def test_the_oldest_connection_ends_when_there_are_more_than_the_limit(bounded: Callers) -> None:
    held = [bounded.call() for _ in range(MOST)]
    further = bounded.call()

    assert held[0].recv(16) == b""
    assert [is_answered(connection) for connection in [*held[1:], further]] == [True] * MOST


def test_the_limit_ends_no_connection_of_an_address_with_fewer(bounded: Callers) -> None:
    early = bounded.call("127.0.0.2")
    held = [bounded.call() for _ in range(3 * MOST)]
    late = bounded.call("127.0.0.3")

    assert held[0].recv(16) == b""
    assert is_answered(early)
    assert is_answered(late)


def test_no_address_loses_its_only_connection(bounded: Callers) -> None:
    held = [bounded.call(f"127.0.0.{number}") for number in range(1, 3 * MOST)]

    assert all(is_answered(connection) for connection in held)


def test_a_request_that_has_come_is_answered_before_its_connection_ends(bounded: Callers) -> None:
    asks = bounded.call()
    asks.sendall(b"later")
    held = [bounded.call() for _ in range(MOST + 1)]

    assert held[0].recv(16) == b""
    assert is_answered(held[-1])
    assert asks.recv(16) == b"answer"


def test_of_the_answers_that_are_still_due_to_lost_connections_all_but_the_last_eighth_are_cut_off(
    bounded: Callers,
) -> None:
    """A client that does not read an answer would hold the daemon's thread."""
    asked = [bounded.call() for _ in range(2 + MOST // 8)]
    for connection in asked:
        connection.sendall(b"later")
    held = [bounded.call() for _ in range(MOST)]

    assert [connection.recv(16) for connection in asked[:2]] == [b"", b""]
    assert is_answered(held[-1])
    assert [connection.recv(16) for connection in asked[2:]] == [b"answer"] * (MOST // 8)


def has_ended(connection: socket.socket) -> bool:
    """Return True if the daemon has cut a connection off, though its answer has not been read."""
    poll = select.poll()
    poll.register(connection, 0)  # its end alone
    return bool(poll.poll(0))


def asks_for_much(callers: Callers, source: str) -> socket.socket:
    connection = callers.call(source)
    connection.sendall(b"much")
    return connection


UNREAD_MAX = 8
"""That of bounded_connections.c."""

SLOW_BYTES = 256 * 1024
"""Bytes a second of a client that reads slowly: more than in the build of the tests, less than in the image's."""


def test_of_many_answers_that_are_not_read_the_oldest_of_the_address_with_most_are_cut_off(build: Path) -> None:
    """slurmctld keeps each in memory until it is read."""
    with daemon(build, {"CONNECTIONS_MAX": "100"}) as callers:
        other = asks_for_much(callers, "127.0.0.2")
        unread = [asks_for_much(callers, "127.0.0.1") for _ in range(UNREAD_MAX + 2)]

        def seen() -> list[bool]:
            return [has_ended(connection) for connection in unread]

        wait_until(lambda: any(seen()), "answers are cut off", timeout_seconds=30)
        wait_until(lambda: sum(seen()) == 3, "the others stay", timeout_seconds=30)
        assert seen() == [True] * 3 + [False] * (UNREAD_MAX - 1)
        assert not has_ended(other)


def test_answers_that_are_read_slowly_stay_however_many_they_are(build: Path) -> None:
    with daemon(build, {"CONNECTIONS_MAX": "100"}, "hurried.so") as callers:
        unread = asks_for_much(callers, "127.0.0.2")
        reading = [asks_for_much(callers, "127.0.0.1") for _ in range(UNREAD_MAX + 2)]
        began, read_bytes = time.monotonic(), 0

        def read_a_little() -> bool:
            nonlocal read_bytes
            due = int(SLOW_BYTES * (time.monotonic() - began)) - read_bytes
            for connection in reading if due else ():
                connection.recv(due, socket.MSG_WAITALL)
            read_bytes += due
            return has_ended(unread)

        wait_until(read_a_little, "the answer that is not read is cut off", timeout_seconds=30)
        assert not any(map(has_ended, reading))


def test_an_answer_that_is_not_read_is_cut_off_in_the_end_and_one_that_is_read_stays(build: Path) -> None:
    with daemon(build, {"CONNECTIONS_MAX": "100"}, "hurried.so") as callers:
        unread, read = asks_for_much(callers, "127.0.0.1"), callers.call("127.0.0.1")
        assert is_answered(read)

        wait_until(lambda: has_ended(unread), "the answer is cut off", timeout_seconds=30)
        assert is_answered(read)


MIB = 1 << 20


@pytest.fixture
def reader(build: Path) -> Iterator[Callers]:
    """Return callers of a daemon that reads requests of 4 MiB, and of 8 MiB together."""
    limit = {"CONNECTIONS_MAX": str(MOST), "REQUEST_BYTES_MAX": str(8 * MIB)}
    with daemon(build, limit, program=READER) as callers:
        yield callers


def a_request(length: int) -> bytes:
    return length.to_bytes(4, "big") + bytes(length)


def test_a_request_of_more_than_half_of_all_bytes_is_not_read(reader: Callers) -> None:
    whole, too_long = reader.call(), reader.call()

    assert [is_answered(whole, a_request(length)) for length in (4 * MIB, 1, 4 * MIB, 3 * MIB)] == [True] * 4
    assert not is_answered(too_long, a_request(4 * MIB + 1))


def test_of_requests_that_are_read_the_address_with_most_bytes_loses_the_largest(reader: Callers) -> None:
    honest, greedy = reader.call("127.0.0.2"), [reader.call() for _ in range(3)]
    honest.sendall(a_request(3 * MIB)[:-1])
    for connection in greedy:
        connection.sendall(a_request(3 * MIB)[:-MIB])

    assert select.select(greedy, [], [], 10)[0], "one of them ends"
    assert is_answered(honest, bytes(1))
    assert sum(is_answered(connection, bytes(MIB)) for connection in greedy) == 2


def test_bytes_of_a_connection_that_has_ended_are_not_counted(reader: Callers) -> None:
    for _ in range(8):
        left = reader.call()
        left.sendall(a_request(3 * MIB)[:-1])
        left.close()
    assert is_answered(reader.call(), a_request(4 * MIB))


def test_what_is_no_request_of_slurm_is_read(reader: Callers) -> None:
    assert is_answered(reader.call(), b"GET /metrics HTTP/1.1\r\n\r\n")


def test_a_daemon_without_a_limit_of_bytes_reads_long_requests(build: Path) -> None:
    with daemon(build, {"CONNECTIONS_MAX": str(MOST)}, program=READER) as callers:
        assert is_answered(callers.call(), a_request(16 * MIB))


def test_another_socket_with_the_descriptor_of_a_former_connection_is_left_alone(bounded: Callers) -> None:
    former = bounded.call()
    former.sendall(b"leave")
    assert former.recv(16) == b""
    held = [bounded.call() for _ in range(MOST + 1)]

    assert held[0].recv(16) == b""
    assert is_answered(held[-1], b"own")


def test_without_a_limit_no_connection_ends(build: Path) -> None:
    with daemon(build, {}) as callers:
        held = [callers.call() for _ in range(3 * MOST)]
        assert all(is_answered(connection) for connection in held)


def test_a_slurmstepd_has_no_limit_of_connections(build: Path) -> None:
    """It is started with slurmd's, and serves every process of PMIx."""
    environment = {"CONNECTIONS_MAX": str(MOST), "PYTHONHOME": sys.base_prefix}
    with daemon(build, environment, name="/usr/sbin/slurmstepd") as callers:
        held = [callers.call() for _ in range(3 * MOST)]
        assert all(is_answered(connection) for connection in held)


CALLER = """\
import socket, sys
tcp = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)
values = [tcp.getsockopt(socket.IPPROTO_TCP, option) for option in options]
print(tcp.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), *values)
local = socket.socket(socket.AF_UNIX)
local.connect(sys.argv[2])
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.connect(("127.0.0.1", 9))
try:
    socket.create_connection(("127.0.0.1", 1))
except ConnectionRefusedError:
    print("refused")
"""


def test_a_connection_ends_after_a_minute_of_silence_and_others_are_made_as_ever(build: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "socket"))
        local.listen()
        command = [sys.executable, "-c", CALLER, str(tcp.getsockname()[1]), str(tmp_path / "socket")]
        environment = {**os.environ, "LD_PRELOAD": str(build / "silent_peers.so")}
        called = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert called.stdout.splitlines() == ["1 60000 30 10", "refused"]
