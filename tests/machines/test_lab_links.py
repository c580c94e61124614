"""Machines of the lab that reach each other, and one that loses its power."""

import pytest

from tools.lab.further_machines import Further
from tools.lab.script_machine import run_script

pytestmark = pytest.mark.soak

FIRST = """
ip link set vec0 up && ip address add 10.0.0.1/24 dev vec0
cat > /run/talk.py <<'END'
import socket, sys, time
end = time.monotonic() + 60
while True:
    try:
        peer = socket.create_connection(("10.0.0.2", 99), 1)
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(f"no answer: {error}")
        time.sleep(0.2)
peer.sendall(bytes(20 << 20))
peer.shutdown(socket.SHUT_WR)
print(peer.makefile().read())
END
cat > /run/dark.py <<'END'
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20000):
    sender.sendto(bytes(1400), ("10.0.0.2", 9))
END
echo "2 on" > /dev/tty2
python3 -I /run/talk.py
echo "2 off" > /dev/tty2
python3 -I /run/dark.py
echo "2 on echo again" > /dev/tty2
python3 -I /run/talk.py
"""
"""The first machine sends 20 MB, then 28 MB to a machine without power, then 20 MB when it is back."""

SECOND = """
ip link set vec0 up && ip address add 10.0.0.2/24 dev vec0
python3 -I -c '
import socket
server = socket.create_server(("", 99))
while True:
    peer, _ = server.accept()
    with peer:
        print(sum(map(len, iter(lambda: peer.recv(1 << 16), b""))))
        peer.sendall(b"{word}, from the second machine")
'
"""


def test_machines_reach_each_other_again_after_one_has_lost_its_power() -> None:
    printed = run_script(FIRST, further=Further(2, lambda _, command: SECOND.format(word=command or "once")))
    assert [line for line in printed.splitlines() if "second machine" in line] == [
        "once, from the second machine",
        "echo again, from the second machine",
    ]
