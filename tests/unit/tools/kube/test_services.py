"""The servers as they are started."""

from pathlib import Path

import pytest

from tools.kube import debs, services
from tools.kube.debs import Tool
from tools.kube.services import ProgramFolders
from tools.kube.settings import Settings
from tools.kube.supervisor import Server

SETTINGS = Settings()
PROGRAMS = ProgramFolders(kubernetes=Path("/k"), etcd=Path("/e"), coredns=Path("/c"), node=Path("/n"))


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Server]:
    libraries = {"LD_LIBRARY_PATH": "/debs/usr/lib", "PERL5LIB": "/debs/perl", "PATH": "/debs/usr/bin:/home/me/bin"}
    monkeypatch.setattr(services, "tool", lambda name: Tool(name, Path("/debs/usr/sbin") / name, libraries))
    return {part.name: part for wave in services.waves(SETTINGS, PROGRAMS) for part in wave}


def arguments(part: Server) -> list[str]:
    return [str(word) for word in part.command]


def test_etcd_answers_no_one_without_a_certificate(servers: dict[str, Server]) -> None:
    flags = arguments(servers["etcd"])
    assert {"--client-cert-auth", "--peer-client-cert-auth"} <= set(flags)
    urls = [flag.partition("=")[2] for flag in flags if "-urls=" in flag]
    assert len(urls) == 4
    assert all(url.startswith("https://127.0.0.1:") for url in urls)


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("kube-apiserver", "--bind-address=10.244.0.1"),
        ("kube-controller-manager", "--bind-address=127.0.0.1"),
        ("kube-scheduler", "--bind-address=127.0.0.1"),
        ("node-agent", "--health=127.0.0.1:10255"),
    ],
)
def test_servers_are_told_where_to_listen(servers: dict[str, Server], name: str, flag: str) -> None:
    assert flag in arguments(servers[name])


def test_every_kubeconfig_is_someones(servers: dict[str, Server]) -> None:
    assert servers
    assert set(services.KUBECONFIGS) <= set(services.identities(SETTINGS))


def test_the_api_server_has_the_names_by_which_pods_call_it() -> None:
    names = services.identities(SETTINGS)["apiserver"].names
    assert {"kubernetes.default", "kubernetes.default.svc.cluster.local", "10.96.0.1", "10.244.0.1"} <= set(names)


def test_servers_get_nothing_of_the_shell_that_starts_them(
    servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: part.environment for name, part in servers.items()}
    monkeypatch.setenv("PATH", "/somewhere/else")
    again = {part.name: part.environment for wave in services.waves(SETTINGS, PROGRAMS) for part in wave}
    assert again == before
    assert all("/home/me" not in value for environment in again.values() for value in environment.values())


def test_the_container_runtime_finds_its_shim_and_runc(servers: dict[str, Server]) -> None:
    environment = servers["containerd"].environment
    assert environment["PATH"].startswith("/debs/usr/sbin:")
    assert environment["LD_LIBRARY_PATH"] == "/debs/usr/lib"


def test_no_secret_is_in_a_command(servers: dict[str, Server]) -> None:
    words = [word for part in servers.values() for word in arguments(part)]
    assert not [word for word in words if "PRIVATE" in word or "token=" in word]


def test_all_programs_of_the_distribution_are_known() -> None:
    assert {"containerd", "containerd-shim-runc-v2", "runc", "nft", "conntrack"} <= set(debs.PROGRAMS)


def test_a_further_machine_has_no_control_plane_and_makes_no_volumes(servers: dict[str, Server]) -> None:
    further = {part.name: part for wave in services.waves(SETTINGS.further(2), PROGRAMS) for part in wave}
    assert set(further) == {"containerd", "coredns", "node-agent", "kubelet", "kube-proxy"}
    assert "--hostname-override=n2" in arguments(further["kubelet"])
    makes_volumes = [
        any("--volumes" in flag for flag in arguments(entry["node-agent"])) for entry in (servers, further)
    ]
    assert makes_volumes == [True, False]


def test_a_further_machine_has_no_certificate_of_the_control_plane() -> None:
    identities = services.identities(SETTINGS.further(2))
    assert set(identities) == {"admin", "kubelet", "kube-proxy", "coredns", "node-agent"}
    assert identities["kubelet"].names == ("n2", "10.244.1.1")
