"""Commands for one of the clusters of a stack."""

import subprocess
from pathlib import Path

import pytest

from soperator_pulumi.cli.ssh import Login, write_config
from soperator_pulumi.kube.access import Access
from tools import deployed_clusters, paths, ssh, up
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError

ONE = {"namespace": "hpc", "login_user": "demo", "login_host_key": "ssh-ed25519 AAAA"}
TWO = {"clusters": {"blue": {**ONE, "namespace": "n1"}, "green": {**ONE, "namespace": "n2"}}}


@pytest.fixture(autouse=True)
def _a_state_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [(TWO, {"blue": "n1", "green": "n2"}), (ONE, {"hpc": "hpc"}), ({}, {}), ({"namespace": None}, {})],
)
def test_the_outputs_of_each_cluster_are_found_by_its_name(
    outputs: dict[str, object], expected: dict[str, str]
) -> None:
    found = deployed_clusters.outputs_by_cluster(outputs)
    assert {name: entry["namespace"] for name, entry in found.items()} == expected


def test_the_only_cluster_is_chosen_and_one_of_several_by_its_name() -> None:
    assert deployed_clusters.chosen(["hpc"], None, "make ssh") == "hpc"
    assert deployed_clusters.chosen(["blue", "green"], "green", "make ssh") == "green"


@pytest.mark.parametrize(
    ("names", "given", "said"),
    [
        (["green", "blue"], None, "The stack has several clusters: blue, green. Choose one: make ssh CLUSTER=NAME"),
        (["green", "blue"], "red", 'There is no cluster "red". Choose one of: blue, green.'),
        (["slurm"], "red", 'There is no cluster "red". Choose one of: slurm.'),
    ],
)
def test_a_choice_that_leads_to_no_cluster_is_answered_with_the_names(
    names: list[str], given: str | None, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        deployed_clusters.chosen(names, given, "make ssh")
    assert str(caught.value) == said


@pytest.mark.parametrize("command", ["ssh", "admin"])
def test_make_passes_the_choice_on(command: str) -> None:
    planned = ["make", "--dry-run", "--silent", "--old-file=.venv/.installed", command, "CLUSTER=blue"]
    done = subprocess.run(planned, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert f"tools.{command} " in done.stdout
    assert "--cluster blue '" in done.stdout


@pytest.mark.parametrize("command", ["ssh", "admin"])
@pytest.mark.parametrize("line", ["echo a\necho \"b  $HOME\" 'c'", "", "true"])
def test_make_passes_a_command_of_several_lines_on_unharmed(command: str, line: str) -> None:
    python = r"PYTHON=printf '[%s]\n'"
    typed = ["make", "--silent", "--old-file=.venv/.installed", command, f"CMD={line}", python]
    done = subprocess.run(typed, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(f"[local]\n[{line}]\n")


def test_each_stack_on_a_kubernetes_has_an_ssh_configuration_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ChosenCluster(tmp_path / "kubeconfig", None, None, tmp_path)
    files = {stack: ssh.config_file(chosen, stack) for stack in ("local", "dev")}
    assert files["local"] != files["dev"]
    for suffix in ("", ".known_hosts"):
        Path(f"{files['dev']}{suffix}").touch()
    monkeypatch.setattr("tools.chosen_cluster.choose", lambda: chosen)
    monkeypatch.setattr("sys.argv", ["ssh"])
    with pytest.raises(UserError, match=r"make up, or take one of another stack: make ssh STACK=dev$"):
        ssh.main()


def test_each_of_several_clusters_has_a_host_of_its_name_and_the_only_one_that_of_always(tmp_path: Path) -> None:
    for outputs, expected in ((TWO, ["blue", "green"]), (ONE, [ssh.HOST])):
        write_config(tmp_path / "ssh_config", Access("kubeconfig"), *up.logins_of(outputs))
        assert ssh.hosts(tmp_path / "ssh_config") == expected


def test_a_host_s_key_is_known_for_that_host_alone(tmp_path: Path) -> None:
    keys = [Login(namespace, namespace, "u", f"ssh-ed25519 {namespace}", tmp_path) for namespace in ("a", "b")]
    write_config(tmp_path / "ssh_config", Access("kubeconfig"), *keys)

    assert (tmp_path / "ssh_config.known_hosts").read_text() == "login.a ssh-ed25519 a\nlogin.b ssh-ed25519 b\n"


def test_a_stack_of_another_kubernetes_has_no_login_of_this_machine() -> None:
    assert up.logins_of({"namespace": "hpc"}) == []


def test_the_stack_of_this_machine_has_no_images_for_another_kubernetes() -> None:
    with pytest.raises(UserError, match=r"stacks/Pulumi.local.yaml names no images.* prints to soperator:cluster\."):
        up.require_images_that_can_be_pulled("local", up.descriptions("local"))


def test_images_of_the_defaults_can_be_pulled() -> None:
    up.require_images_that_can_be_pulled("prod", up.descriptions("prod"))


def test_a_stack_without_a_file_is_answered_with_the_stacks_that_there_are() -> None:
    with pytest.raises(
        UserError, match=r'no stack "nowhere" \(stacks/Pulumi.nowhere.yaml\)\. .* dev, local, prod, stag'
    ):
        up.descriptions("nowhere")
