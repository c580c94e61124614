"""The Kubernetes that the commands choose, from the environment that a person has."""

from pathlib import Path

import pytest

from tools import chosen_cluster
from tools.console import UserError

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: prod
contexts:
  - {name: prod, context: {cluster: c, user: u}}
  - {name: "aws/dev:1", context: {cluster: c, user: u}}
"""


@pytest.fixture(autouse=True)
def _a_home_without_any_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")  # sockets need short paths, and tmp_path is long
    for variable in ("KUBECONFIG", "CONTEXT"):
        monkeypatch.delenv(variable, raising=False)


def a_kubeconfig(folder: Path, content: str = KUBECONFIG) -> Path:
    file = folder / "kubeconfig"
    file.write_text(content)
    return file


def test_the_embedded_kubernetes_is_used_when_nothing_is_chosen() -> None:
    assert chosen_cluster.choose().embedded is not None


def test_the_embedded_kubernetes_is_still_used_in_a_shell_that_took_make_env(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(chosen_cluster.choose().kubeconfig))

    assert chosen_cluster.choose().embedded is not None


def test_a_kubeconfig_of_the_user_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(a_kubeconfig(tmp_path)))

    chosen = chosen_cluster.choose()

    assert (chosen.embedded, chosen.context, chosen.state_dir.name) == (None, None, "context-prod")


def test_a_context_alone_is_looked_up_in_the_default_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("CONTEXT", "aws/dev:1")

    chosen = chosen_cluster.choose()

    assert (chosen.context, chosen.state_dir.name) == ("aws/dev:1", "context-aws_dev_1")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("contexts: []", "has no current context"),
        ("current-context: gone\ncontexts: []", 'has no context "gone". It has: none'),
        ("{", "is not YAML"),
        ("- a list", "holds no cluster"),
    ],
)
def test_a_broken_kubeconfig_is_reported_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, said: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(a_kubeconfig(tmp_path, content)))

    with pytest.raises(UserError, match=said):
        chosen_cluster.choose()


def test_a_kubeconfig_that_is_not_there_is_reported_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    with pytest.raises(UserError, match=f"{tmp_path}/none can't be read.*unset it to use the embedded"):
        chosen_cluster.choose()
