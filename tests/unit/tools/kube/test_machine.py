"""Facts about a machine."""

import os
import socket
from ipaddress import IPv4Network
from pathlib import Path

from tools.kube import listeners, machine
from tools.kube.machine import Route
from tools.kube.settings import ServerPorts, Settings

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
soperator0\t0000F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


def test_routes() -> None:
    assert machine.routes(ROUTES) == [
        Route(IPv4Network("0.0.0.0/0"), "eth0"),
        Route(IPv4Network("10.244.0.0/24"), "soperator0"),
    ]


def test_capabilities() -> None:
    assert machine.capabilities("Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001fffeffffff\n") == 0x1FFFEFFFFFF


def test_available_memory() -> None:
    assert machine.available_memory("MemTotal:  24683660 kB\nMemAvailable:   1024 kB\n") == 1 << 20


def test_the_file_system_of_a_folder_that_is_not_there_yet_is_its_parents(tmp_path: Path) -> None:
    found = machine.filesystem(tmp_path / "not" / "yet")
    assert found.device == tmp_path.stat().st_dev
    assert found.free_bytes > 0
    assert found.kind != "unknown"


def test_a_port_of_ours_that_another_has_is_found_with_its_program() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (taken,) = machine.taken(Settings(ports=ServerPorts(etcd=port)), own_listeners(port), ours=())
    assert (taken.port, taken.wanted_by, taken.pid) == (port, "etcd", os.getpid())
    assert taken.program


def test_ports_of_our_own_servers_are_not_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        assert not machine.taken(Settings(ports=ServerPorts(etcd=port)), own_listeners(port), ours={os.getpid()})


def own_listeners(port: int) -> list[listeners.Listener]:
    return [listener for listener in listeners.listeners() if listener.port == port]


def test_settings_that_are_right_or_can_be_set_are_not_stuck(tmp_path: Path) -> None:
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/ip_forward").write_text("0\n")
    assert machine.stuck_sysctls(tmp_path) == []
    assert (tmp_path / "net/ipv4/ip_forward").read_text() == "0\n"
