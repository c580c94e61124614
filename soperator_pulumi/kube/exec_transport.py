"""Commands in a container of a pod, run through the Kubernetes API like `kubectl exec`."""

import json
import time
from collections.abc import Sequence
from typing import Any

import urllib3
import websocket
from kubernetes import client
from kubernetes.stream.ws_client import ERROR_CHANNEL, websocket_call

from soperator_pulumi.errors import TransportError
from soperator_pulumi.kube.kubeconfig import not_reached
from soperator_pulumi.slurm.transport import Answer

_POLL_SECONDS = 1.0
_SILENCE_SECONDS = 15  # to connect, and within one frame; the command's limit bounds the time between frames
_ANSWER_SECONDS = 5  # for the answer, after the command's own time
_KILL_AFTER_SECONDS = 2

_NOT_REACHED = (
    OSError,
    websocket.WebSocketAddressException,
    websocket.WebSocketTimeoutException,
    websocket.WebSocketProxyException,
)
"""Errors of a connection that does not come about."""


class ExecTransport:
    """A container of a pod, in which commands run as with `kubectl exec`. A command takes about 60 ms."""

    def __init__(
        self,
        configuration: client.Configuration,
        namespace: str,
        pod: str,
        container: str,
        *,
        coreutils: bool = True,
    ) -> None:
        """Create a transport; no connection is opened before `run`.

        Args:
            configuration: Settings for reaching the API server.
            namespace: Namespace of the pod.
            pod: Name of the pod.
            container: Name of the container.
            coreutils: True if the container has `timeout`, which ends a command in the pod that takes too long.
        """
        self._configuration = configuration
        self._limits = coreutils
        self._namespace = namespace
        self._pod = pod
        self._container = container

    def __str__(self) -> str:
        """Return the pod, for messages."""
        return f"pod {self._namespace}/{self._pod}"

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command`, and end it in the pod if it takes longer than `timeout_seconds`."""
        limit = ["timeout", f"--kill-after={_KILL_AFTER_SECONDS}", str(timeout_seconds)] if self._limits else []
        socket = self._open([*limit, *command], stdin=bool(stdin))
        try:
            if stdin:
                socket.write_stdin(stdin)
            return self._read(socket, command, timeout_seconds + _KILL_AFTER_SECONDS + _ANSWER_SECONDS)
        except (websocket.WebSocketException, OSError) as error:
            raise TransportError(
                f"{self}: the connection broke while `{_name(command)}` ran: {str(error).rstrip('.')}."
            ) from error
        finally:
            socket.close()
            socket.sock.shutdown()  # it is still open if the server has closed the connection

    def _open(self, command: Sequence[str], *, stdin: bool) -> Any:  # noqa: ANN401 the client library has no types
        # Like `kubernetes.stream`. The client's CoreV1Api takes half a second to import.
        url = f"{self._configuration.host}/api/v1/namespaces/{self._namespace}/pods/{self._pod}/exec"
        query = [("container", self._container), ("stdout", "true"), ("stderr", "true"), ("stdin", str(stdin).lower())]
        bearer = bearer_token(self._configuration)
        websocket.setdefaulttimeout(_SILENCE_SECONDS)
        try:
            return websocket_call(
                self._configuration,
                "GET",
                url,
                query_params=[*query, *(("command", word) for word in command)],
                headers={"authorization": bearer} if bearer else {},
                binary=True,  # as text, a character split between two frames would be lost
                _preload_content=False,
            )
        except client.ApiException as error:
            reason = why_not_opened(error, self._configuration.host)
            raise TransportError(f"{self}: cannot run commands there: {reason}.") from error
        except (websocket.WebSocketException, urllib3.exceptions.HTTPError, OSError) as error:
            raise TransportError(f"{self}: cannot be reached: {str(error).rstrip('.')}.") from error

    def _read(self, socket: Any, command: Sequence[str], limit_seconds: float) -> Answer:  # noqa: ANN401
        deadline = time.monotonic() + limit_seconds
        stdout: list[bytes] = []
        stderr: list[bytes] = []
        while socket.is_open():
            if time.monotonic() > deadline:
                raise TransportError(f"{self}: `{_name(command)}` did not answer within {limit_seconds:.0f} s.")
            socket.update(timeout=_POLL_SECONDS)
            if socket.peek_stdout():
                stdout.append(socket.read_stdout())
            if socket.peek_stderr():
                stderr.append(socket.read_stderr())
        stdout.append(socket.read_stdout())
        stderr.append(socket.read_stderr())
        returncode = exit_code(_text([socket.read_channel(ERROR_CHANNEL)]))
        if isinstance(returncode, str):
            raise TransportError(f"{self}: `{_name(command)}` was not run: {returncode}")
        return Answer(returncode, _text(stdout), _text(stderr))


def bearer_token(configuration: client.Configuration) -> str | None:
    """Return the Authorization header, refreshed if it has expired; None if there is none."""
    bearer = configuration.get_api_key_with_prefix("BearerToken", "authorization")
    return str(bearer) if bearer else None


def why_not_opened(error: client.ApiException, host: str) -> str:
    """Return why a WebSocket was not opened: the server's words, or that it is not reached; without a final period."""
    if isinstance(error.__context__, _NOT_REACHED):
        return not_reached(host, error.__context__).rstrip(".")
    message = str(error.reason or error).rpartition("-+-+-")[2].strip()  # the last part of the library's message
    try:
        return str(json.loads(message)["message"]).rstrip(".")
    except (ValueError, KeyError, TypeError):
        return message.rstrip(".")


def exit_code(status: str) -> int | str:
    """Return the exit code in the last message of an exec, or the text that replaces it.

    The client library's own `returncode` raises ValueError for a program that does not exist.
    """
    try:
        message = json.loads(status)
    except ValueError:
        return status.strip() or "the connection ended before its exit code arrived."
    if message.get("status") == "Success":
        return 0
    for cause in (message.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).isdecimal():
            return int(cause["message"])
    return str(message.get("message") or status)


def _text(parts: Sequence[bytes]) -> str:
    return b"".join(parts).decode(errors="replace")


def _name(command: Sequence[str]) -> str:
    """Return a command for a message, without its arguments, which may be long."""
    return " ".join(command[:2])
