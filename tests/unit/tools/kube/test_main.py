"""The command line of the embedded Kubernetes."""

import shlex

import pytest

from tools.console import UserError
from tools.kube import EmbeddedKubernetes, __main__


def test_env_prints_shell_settings_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kube", "env"])
    assert __main__.main() == 0
    printed = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    kubernetes = EmbeddedKubernetes()
    assert printed == [
        ["export", f"KUBECONFIG={kubernetes.kubeconfig}"],
        ["export", f"PATH={kubernetes.bin_dir}:$PATH"],
    ]


def test_status_fails_when_a_part_is_not_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kube", "status"])
    monkeypatch.setattr(EmbeddedKubernetes, "status", lambda _: {"etcd": None, "kubelet": "does not run"})
    assert __main__.main() == 1
    assert [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()] == [
        ["etcd", "well"],
        ["kubelet", "does not run"],
    ]


def test_a_machine_is_killed_and_started_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, int]] = []
    monkeypatch.setattr(EmbeddedKubernetes, "kill_machine", lambda _, number: done.append(("kill", number)))
    monkeypatch.setattr(EmbeddedKubernetes, "start_machine", lambda _, number: done.append(("start", number)))
    for command in ("machine-kill", "machine-start"):
        monkeypatch.setattr("sys.argv", ["kube", command, "--number", "2"])
        assert __main__.main() == 0
    assert done == [("kill", 2), ("start", 2)]


def test_a_command_for_one_machine_needs_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["kube", "machine-kill"])
    with pytest.raises(UserError, match="`make machine-kill N=2`"):
        __main__.main()
