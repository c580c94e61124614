"""Addresses, names and folders of a cluster."""

from pathlib import Path

import pytest

from tools.console import UserError
from tools.kube import further_machines
from tools.kube.settings import Settings


def test_what_others_rely_on() -> None:
    settings = Settings()
    assert settings.node == "n1"
    assert settings.api_url == "https://10.244.0.1:6443"
    assert settings.api_service == "10.96.0.1"


def test_each_state_folder_has_a_cgroup_of_its_own() -> None:
    assert Settings(state=Path("/a/kube")).cgroup != Settings(state=Path("/b/kube")).cgroup


def test_a_state_folder_that_is_too_deep_for_sockets_is_refused() -> None:
    with pytest.raises(UserError, match="XDG_STATE_HOME"):
        Settings(state=Path("/" + "deep/" * 20))


def test_servers_listen_on_loopback_and_the_bridge_only() -> None:
    settings = Settings()
    assert {address for _, address, _, _ in settings.listens()} == {"127.0.0.1", settings.address}


def test_no_two_servers_want_one_port() -> None:
    wanted = [(protocol, address, port) for protocol, address, port, _ in Settings().listens()]
    assert len(wanted) == len(set(wanted))


def test_machines_share_nothing_but_the_api_server_and_the_pods_range() -> None:
    first = Settings(state=Path("/a/kube"))
    second, third = first.further(2), first.further(3)
    assert {machine.api_url for machine in (first, second, third)} == {first.api_url}
    assert [machine.node for machine in (first, second, third)] == ["n1", "n2", "n3"]
    assert [str(machine.node_pods) for machine in (first, second, third)] == [
        "10.244.0.0/24",
        "10.244.1.0/24",
        "10.244.2.0/24",
    ]
    assert second.state == Path("/a/kube/n2")
    assert len({machine.cgroup for machine in (first, second, third)}) == 3


def test_names_of_links_fit_the_kernels_15_bytes() -> None:
    furthest = Settings().further(further_machines.MOST)
    assert len(furthest.link) <= 15
    assert furthest.link.startswith(furthest.bridge)  # the rules against outside packets go by this
    assert furthest.uplink.startswith(furthest.bridge)


def test_every_state_folder_of_a_first_machine_has_room_for_further_ones() -> None:
    longest = Settings(state=Path("/" + "a" * 63))
    assert longest.further(further_machines.MOST).number == further_machines.MOST
