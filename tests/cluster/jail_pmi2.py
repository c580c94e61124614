"""A task that meets the others over PMI-2, spoken as in the specification: what an MPI library does at its start."""

import os
import socket
import sys

_LENGTH = 6
"""Digits that say how long a message is."""


def _ask(connection: socket.socket, command: str, **arguments: object) -> dict[str, str]:
    body = "".join(f"{key}={value};" for key, value in {"cmd": command, **arguments}.items()).encode()
    connection.sendall(f"{len(body):{_LENGTH}}".encode() + body)
    length = int(_receive(connection, _LENGTH))
    answer = _receive(connection, length).decode()
    fields = dict(pair.split("=", 1) for pair in answer.split(";") if pair)
    if fields.get("rc", "0") != "0":
        raise SystemExit(f"{command}: {answer}")
    return fields


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        if not part:
            raise SystemExit("PMI-2 server closed the connection")
        received += part
    return received


def main() -> None:
    """Put this task's node under its rank, wait for the others, read theirs."""
    rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
    with socket.socket(fileno=int(os.environ["PMI_FD"])) as connection:
        connection.sendall(b"cmd=init pmi_version=2 pmi_subversion=0\n")
        while not connection.recv(1).endswith(b"\n"):
            pass
        _ask(connection, "fullinit", pmijobid=os.environ["PMI_JOBID"], pmirank=rank, threaded="FALSE")
        _ask(connection, "kvs-put", key=f"node-{rank}", value=os.environ["SLURMD_NODENAME"])
        _ask(connection, "kvs-fence")
        nodes = [_ask(connection, "kvs-get", srcid=-1, key=f"node-{other}")["value"] for other in range(size)]
        _ask(connection, "finalize")
    sys.stdout.write(f"rank {rank} of {size} met {' '.join(nodes)}\n")


if __name__ == "__main__":
    main()
