"""`make up`: what happens in which order."""

from pathlib import Path
from typing import Any

import pytest

from tools import build, chosen_cluster, paths, up
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError
from tools.engine import DeployError, StackChanges
from tools.kube import EmbeddedKubernetes

CHOSEN = ChosenCluster(Path("kubeconfig"), None, None, Path("state"))
EMBEDDED = ChosenCluster(Path("kubeconfig"), None, EmbeddedKubernetes(), Path("state"))


class Recording:
    """A deployer that writes down what is asked of it."""

    def __init__(self, *, refused: bool = False) -> None:
        self.asked: list[str] = []
        self._refused = refused

    def preview(self) -> StackChanges:
        self.asked.append("preview")
        if self._refused:
            raise DeployError("a policy is violated")
        return StackChanges(changes=())

    def up(self) -> None:
        self.asked.append("up")

    def outputs(self) -> dict[str, Any]:
        return {"namespace": "hpc"}


@pytest.fixture
def deployer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recording:
    found = Recording(refused=getattr(request, "param", False))
    monkeypatch.setattr(up, "deployer_of", lambda *_: (found, "an engine"))
    return found


def test_policies_judge_a_preview_before_anything_is_applied(
    deployer: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLICY_PACKS", "policy examples/own-policy")
    assert up.policy_packs() == [paths.ROOT / "policy", paths.ROOT / "examples" / "own-policy"]
    assert up.deploy("prod", CHOSEN) == {"namespace": "hpc"}
    assert deployer.asked == ["preview", "up"]


@pytest.mark.parametrize("deployer", [True], indirect=True)
def test_nothing_is_applied_where_a_policy_is_violated(deployer: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_PACKS", "policy")
    with pytest.raises(DeployError):
        up.deploy("prod", CHOSEN)
    assert deployer.asked == ["preview"]


def test_without_policies_there_is_no_preview(deployer: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLICY_PACKS", raising=False)
    up.deploy("local", CHOSEN)
    assert deployer.asked == ["up"]


@pytest.mark.parametrize(
    ("chosen", "machines", "problem"),
    [
        (
            ChosenCluster(Path("kubeconfig"), None, EmbeddedKubernetes(), Path("state")),
            "0",
            "a cluster has 1 to 9 machines",
        ),
        (CHOSEN, "3", "KUBECONFIG or CONTEXT names another one"),
    ],
    ids=["out of range", "not the embedded Kubernetes"],
)
def test_a_number_of_machines_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, chosen: ChosenCluster, machines: str, problem: str
) -> None:
    monkeypatch.setattr("sys.argv", ["up", "--machines", machines])
    monkeypatch.setattr(chosen_cluster, "choose", lambda: chosen)
    monkeypatch.setattr(build, "is_needed", lambda *_: pytest.fail("something is built"))
    with pytest.raises(UserError, match=problem):
        up.main()
