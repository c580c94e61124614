"""Meaning of the last message of an exec, and commands run through a real WebSocket."""

import base64
import gc
import hashlib
import json
import socket
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import websocket
from kubernetes import client

from soperator_pulumi.errors import TransportError
from soperator_pulumi.kube.exec_transport import ExecTransport, exit_code, why_not_opened

SUCCESS = json.dumps({"metadata": {}, "status": "Success"})


def failed(code: str) -> str:
    details = {"causes": [{"reason": "ExitCode", "message": code}]}
    return json.dumps({"status": "Failure", "reason": "NonZeroExitCode", "details": details})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (SUCCESS, 0),
        (failed("7"), 7),
        (
            json.dumps({"status": "Failure", "message": "Internal error occurred: error executing command"}),
            "Internal error occurred: error executing command",
        ),
        ("", "the connection ended before its exit code arrived."),
        ("not json", "not json"),
        (failed("not a number"), failed("not a number")),
    ],
)
def test_an_exit_code_is_a_number_or_the_words_that_stand_in_its_place(status: str, expected: int | str) -> None:
    assert exit_code(status) == expected


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what the client library leaves open when an upgrade is refused: its socket."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


Serve = Callable[[socket.socket, bytes], None]


@contextmanager
def server(serve: Serve, *, coreutils: bool = True) -> Iterator[ExecTransport]:
    """An API server that upgrades one connection and then does as `serve` says."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)

    def run() -> None:
        connection, _ = listener.accept()
        connection.settimeout(10)
        with connection:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            serve(connection, request)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        configuration = client.Configuration(host=f"http://127.0.0.1:{listener.getsockname()[1]}")
        yield ExecTransport(configuration, "hpc", "controller-0", "slurmctld", coreutils=coreutils)
    finally:
        thread.join(timeout=10)
        listener.close()


def upgrade(connection: socket.socket, request: bytes) -> None:
    key = request.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())  # noqa: S324 RFC 6455
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
    )


def frame(channel: int, data: bytes) -> bytes:
    payload = bytes([channel]) + data
    return bytes([0x82, 126]) + struct.pack(">H", len(payload)) + payload


CLOSE = bytes([0x88, 0])


def test_what_a_command_prints_and_its_exit_code_come_back() -> None:
    def serve(connection: socket.socket, request: bytes) -> None:
        assert b"command=timeout" in request
        assert b"command=30" in request
        upgrade(connection, request)
        connection.sendall(frame(1, b"out ") + frame(2, b"err") + frame(1, b"put"))
        connection.sendall(frame(3, failed("3").encode()) + CLOSE)

    with server(serve) as transport:
        answer = transport.run(["scontrol", "ping"])
    assert (answer.returncode, answer.stdout, answer.stderr) == (3, "out put", "err")


def test_in_a_container_without_the_usual_programs_only_the_command_is_run() -> None:
    def serve(connection: socket.socket, request: bytes) -> None:
        assert b"command=python3" in request
        assert b"timeout" not in request
        upgrade(connection, request)
        connection.sendall(frame(3, SUCCESS.encode()) + CLOSE)

    with server(serve, coreutils=False) as transport:
        assert transport.run(["python3"]).returncode == 0


def test_a_letter_that_falls_between_two_frames_is_whole() -> None:
    letter = "ü".encode()

    def serve(connection: socket.socket, request: bytes) -> None:
        upgrade(connection, request)
        connection.sendall(frame(1, letter[:1]) + frame(1, letter[1:]) + frame(3, SUCCESS.encode()) + CLOSE)

    with server(serve) as transport:
        assert transport.run(["true"]).stdout == "ü"


def test_a_program_that_does_not_exist_is_an_error_in_words() -> None:
    def serve(connection: socket.socket, request: bytes) -> None:
        upgrade(connection, request)
        status = {"status": "Failure", "message": 'exec: "sinfo": executable file not found'}
        connection.sendall(frame(3, json.dumps(status).encode()) + CLOSE)

    with server(serve) as transport, pytest.raises(TransportError, match=r"was not run: .*executable file not found"):
        transport.run(["sinfo"])


def test_a_connection_that_breaks_says_that_nothing_is_known() -> None:
    def serve(connection: socket.socket, request: bytes) -> None:
        upgrade(connection, request)
        connection.sendall(frame(1, b"half"))

    with server(serve) as transport, pytest.raises(TransportError, match="pod hpc/controller-0"):
        transport.run(["sinfo"])


def test_a_container_that_is_down_is_an_error_with_the_servers_words() -> None:
    def serve(connection: socket.socket, _request: bytes) -> None:
        body = b'container not found ("slurmctld")'
        connection.sendall(
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )

    with server(serve) as transport, pytest.raises(TransportError, match="there: container not found") as raised:
        transport.run(["sinfo"])
    assert "-+-+-" not in str(raised.value), "the library's own noise"


@pytest.mark.parametrize(
    "error",
    [
        websocket.WebSocketAddressException("Name or service not known"),
        websocket.WebSocketTimeoutException("Connection timed out"),
        websocket.WebSocketProxyException("failed CONNECT via proxy status: 502"),
    ],
)
def test_a_connection_that_does_not_come_about_is_reported_as_an_api_that_is_not_reached(error: Exception) -> None:
    try:
        try:
            raise error
        except websocket.WebSocketException:
            raise client.ApiException(status=0, reason=str(error))  # noqa: B904 as the client library does it
    except client.ApiException as raised:
        said = why_not_opened(raised, "https://one.example")
    assert said.startswith("The Kubernetes API at https://one.example is not reached: ")
    assert "Check that the cluster runs" in said


def test_a_host_without_an_address_is_not_reached() -> None:
    transport = ExecTransport(client.Configuration(host="http://nowhere.invalid:6443"), "hpc", "pod", "slurmctld")
    with pytest.raises(TransportError, match=r"nowhere\.invalid:6443 is not reached: .*Check that the cluster runs"):
        transport.run(["sinfo"])


def test_no_one_listening_is_an_error_in_words() -> None:
    transport = ExecTransport(client.Configuration(host="http://127.0.0.1:1"), "hpc", "controller-0", "slurmctld")
    with pytest.raises(TransportError, match=r"not reached: .*refused\. Check that the cluster runs"):
        transport.run(["sinfo"])


def test_a_command_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soperator_pulumi.kube.exec_transport._ANSWER_SECONDS", -2)
    done = threading.Event()

    def serve(connection: socket.socket, request: bytes) -> None:
        upgrade(connection, request)
        done.wait(10)

    with server(serve) as transport:
        with pytest.raises(TransportError, match="`sleep 99` did not answer within 1 s"):
            transport.run(["sleep", "99"], timeout_seconds=1)
        done.set()


def test_standard_input_is_sent_on_its_channel() -> None:
    received: list[bytes] = []

    def serve(connection: socket.socket, request: bytes) -> None:
        assert b"stdin=true" in request
        upgrade(connection, request)
        head = connection.recv(2)
        length = head[1] & 0x7F
        mask, payload = connection.recv(4), connection.recv(length)
        received.append(bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload)))
        connection.sendall(frame(3, SUCCESS.encode()) + CLOSE)

    with server(serve) as transport:
        assert transport.run(["cat"], stdin=b"hello").returncode == 0
    assert received == [b"\x00hello"]
