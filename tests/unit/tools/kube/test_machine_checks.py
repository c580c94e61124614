"""Missing parts of a machine, reported at once with the next step."""

from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from tools.console import UserError
from tools.kube import kernel, machine, machine_checks
from tools.kube.machine import GIB, Facts, Filesystem, Route, Taken
from tools.kube.settings import Settings

SETTINGS = Settings()
ROOMY = Filesystem(Path("/home/alice/.cache/soperator-pulumi"), device=1, free_bytes=100 * GIB, kind="ext4")
GOOD = Facts(cache=ROOMY, state=replace(ROOMY, path=SETTINGS.state), controllers=machine_checks.V1_CONTROLLERS)


def problems(**changes: Any) -> list[str]:
    return list(machine_checks.problems(replace(GOOD, **changes), SETTINGS))


def test_a_machine_that_has_all_has_no_problem() -> None:
    machine_checks.require(GOOD, SETTINGS)


def test_all_problems_are_in_one_message() -> None:
    facts = replace(GOOD, uid=1000, architecture="s390x", memory_bytes=GIB, missing_files=machine.FILES)
    with pytest.raises(UserError) as failure:
        machine_checks.require(facts, SETTINGS)
    message = str(failure.value)
    assert "5 things are in the way" in message
    for part in ("user id 1000", "s390x", "1.0 GiB of memory", "/dev/kmsg", "/etc/hosts"):
        assert part in message


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"uid": 1000, "capabilities": 0}, ["user id 1000", "sudo"]),
        ({"architecture": "armv7l"}, ["armv7l", "x86_64 and aarch64"]),
        ({"missing_commands": {"umount": "mount"}}, ["no umount", "install the package mount"]),
        ({"missing_features": [kernel.FEATURES[0]]}, ["overlay file system", "CONFIG_OVERLAY_FS"]),
        ({"missing_files": {"/etc/hosts": machine.FILES["/etc/hosts"]}}, ["no /etc/hosts", "127.0.0.1 localhost"]),
        ({"overlay_problem": "wrong fs type"}, ["overlay", "wrong fs type", "XDG_STATE_HOME"]),
        ({"cache": replace(ROOMY, noexec=True)}, ["noexec", "XDG_CACHE_HOME"]),
        ({"cgroups_writable": False}, ["/sys/fs/cgroup", "read-only"]),
        ({"other_cluster": "/x/soperator-pulumi/kube"}, ["another embedded Kubernetes", "XDG_STATE_HOME=/x make down"]),
        ({"stuck_sysctls": ["net/ipv4/ip_forward"]}, ["/proc/sys/net/ipv4/ip_forward", "host"]),
        ({"memory_bytes": GIB}, ["1.0 GiB", "2.0 GiB"]),
        ({"memory_bytes": 3 * GIB, "builds": True}, ["3.0 GiB", "building", "4.0 GiB"]),
    ],
)
def test_each_problem_says_what_was_found_and_what_to_do(changes: dict[str, Any], parts: list[str]) -> None:
    (problem,) = problems(**changes)
    for part in parts:
        assert part in problem


def test_a_port_that_is_taken_is_named_with_its_program() -> None:
    taken = Taken("tcp", "10.244.0.1", 6443, "the API server", "k3s-server", 4711)
    (problem,) = problems(taken=[taken])
    for part in ("tcp port 6443", "k3s-server", "4711", "the API server"):
        assert part in problem


def test_missing_capabilities_are_listed_with_the_options_that_give_them() -> None:
    everything = (1 << 41) - 1
    (problem,) = problems(capabilities=everything & ~(1 << 21) & ~(1 << 12))
    assert "CAP_NET_ADMIN, CAP_SYS_ADMIN" in problem
    assert "--cap-add=NET_ADMIN --cap-add=SYS_ADMIN" in problem


def test_sys_resource_is_not_needed() -> None:
    everything = (1 << 41) - 1
    assert not problems(capabilities=everything & ~(1 << 24))


@pytest.mark.parametrize(
    ("unified", "controllers", "missing"),
    [
        (False, machine_checks.V1_CONTROLLERS - {"memory"}, "cgroup v1 has no controllers memory"),
        (True, frozenset({"memory", "pids"}), "cgroup v2 has no controllers cpu, cpuset"),
        (True, machine_checks.V2_CONTROLLERS, None),
    ],
)
def test_cgroup_controllers(*, unified: bool, controllers: frozenset[str], missing: str | None) -> None:
    found = problems(unified=unified, controllers=controllers)
    assert (missing is None and not found) or (missing is not None and missing in found[0])


@pytest.mark.parametrize(
    ("network", "device", "named"),
    [
        ("10.244.3.0/24", "flannel.1", True),
        ("10.0.0.0/8", "tun0", True),
        ("10.96.0.0/12", "eth1", True),
        ("10.244.0.0/24", SETTINGS.bridge, False),
        ("10.244.1.0/24", SETTINGS.further(2).link, False),
        ("0.0.0.0/0", "eth0", False),
        ("192.168.0.0/16", "eth0", False),
    ],
)
def test_routes_in_the_way_of_pods_and_services_are_named(network: str, device: str, *, named: bool) -> None:
    found = problems(routes=[Route(IPv4Network(network), device)])
    assert bool(found) is named
    assert all(device in problem and network in problem for problem in found)


def test_cache_and_state_on_one_file_system_need_the_sum() -> None:
    free = machine_checks.CACHE_BYTES + machine_checks.STATE_BYTES - 1
    one = [replace(ROOMY, free_bytes=free), replace(GOOD.state, free_bytes=free)]
    (problem,) = problems(cache=one[0], state=one[1])
    assert "5.0 GiB" in problem
    assert not problems(cache=one[0], state=replace(one[1], device=2))


def test_a_build_needs_more_room() -> None:
    (problem,) = problems(builds=True, cache=replace(ROOMY, free_bytes=2 * GIB, device=7))
    assert "2.0 GiB free" in problem


def test_a_cluster_that_runs_has_its_room_already() -> None:
    little = 2 * GIB
    assert not problems(
        running=True, cache=replace(ROOMY, free_bytes=little), state=replace(GOOD.state, free_bytes=little)
    )
