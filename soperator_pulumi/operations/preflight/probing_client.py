"""Client of the network probe: runs alone in a pod, and writes what it reaches to the termination message.

Called as: python3 -c SOURCE PLAN, a JSON object with `names` to resolve, [name, host]; with `open` and `closed` places
to connect to, [name, host, port]; and with `seconds`, in which it tries until all are as they are to be: a policy takes
its time. An empty host is the first one that was resolved; without it no place is tried.
"""

import json
import socket
import sys
import time
from pathlib import Path

_CONNECT_SECONDS = 1.0


def reached(host: str, port: int) -> bool:
    """Return True if a connection is established."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def address_of(host: str) -> str:
    """Return the address of a name; empty if it cannot be resolved."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return ""


def is_open(wanted: bool, host: str, port: int, deadline: float) -> bool:  # noqa: FBT001 a parameter of the plan
    """Return the state of a place once it is as expected, or at the deadline.

    A place counts as closed after two attempts, as one may get lost.
    """
    while True:
        found = reached(host, port) or (not wanted and reached(host, port))
        if found is wanted or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def main() -> None:
    """Carry out the plan, and write the result."""
    plan = json.loads(sys.argv[1])
    deadline = time.monotonic() + float(plan["seconds"])
    names: dict[str, str] = {}
    for name, host in plan["names"]:
        while not (found := address_of(host)) and time.monotonic() < deadline:
            time.sleep(0.2)
        names[name] = found
    target = next(filter(None, names.values()), "")
    states = {
        name: is_open(wanted, host or target, port, deadline)
        for wanted, places in ((True, plan["open"]), (False, plan["closed"]))
        for name, host, port in places
        if host or target
    }
    Path("/dev/termination-log").write_text(json.dumps({"names": names, "open": states}), encoding="utf-8")


if __name__ == "__main__":
    main()
