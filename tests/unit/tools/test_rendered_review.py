"""`make rendered-review`: a change of manifests as a page, made of two commits without a credential."""

import subprocess
from pathlib import Path

import pytest

from soperator_pulumi.policy.levels import PolicyLevel
from soperator_pulumi.policy.recorded import Violation
from tests.unit.tools.test_render import EXAMPLE, project
from tools import paths, rendered_review
from tools.console import UserError, run

BASE = {
    "001-namespace-hpc.yaml": "kind: Namespace\n",
    "002-hpc-service-old.yaml": "kind: Service\n",
    "003-hpc-statefulset-cpu.yaml": "spec:\n  replicas: 4\n",
    "README.md": "Four nodes.\n",
}
CHANGE = {
    "001-hpc-configmap-new.yaml": "kind: ConfigMap\n",
    "002-namespace-hpc.yaml": "kind: Namespace\n",
    "003-hpc-statefulset-cpu.yaml": "spec:\n  replicas: 2\n",
    "README.md": "Two nodes.\n",
}


def test_the_page_has_each_object_that_changes_and_how() -> None:
    assert rendered_review.page("prod", BASE, CHANGE) == (
        "## Manifests of `prod`: 1 to create, 1 to update, 1 to delete\n\n"
        "| step | file |\n|---|---|\n| create | `hpc-configmap-new.yaml` |\n"
        "| update | `hpc-statefulset-cpu.yaml` |\n| delete | `hpc-service-old.yaml` |\n\n"
        "````diff\n--- base/hpc-configmap-new.yaml\n+++ change/hpc-configmap-new.yaml\n@@ -0,0 +1 @@\n"
        "+kind: ConfigMap\n--- base/hpc-statefulset-cpu.yaml\n+++ change/hpc-statefulset-cpu.yaml\n@@ -1,2 +1,2 @@\n"
        " spec:\n-  replicas: 4\n+  replicas: 2\n"
        "--- base/hpc-service-old.yaml\n+++ change/hpc-service-old.yaml\n@@ -1 +0,0 @@\n-kind: Service\n````"
    )


def test_a_stack_that_stays_the_same_has_no_change() -> None:
    assert rendered_review.page("prod", BASE, BASE) == "## Manifests of `prod`: no change"


def test_a_base_that_does_not_render_is_named() -> None:
    shown = rendered_review.page("prod", None, CHANGE)
    assert "3 to create" in shown
    assert "The base does not render this stack" in shown


def test_findings_of_policies_are_on_the_page_and_refuse() -> None:
    mandatory, advisory = PolicyLevel.MANDATORY, PolicyLevel.ADVISORY
    violation = Violation("a", "no owner ````", cure="Add it.", policy="labels", level=mandatory, resource=None)
    advice = Violation("b", "many", cure="Lower it.", policy="sizes", level=advisory, resource=None)
    shown = rendered_review.page("prod", BASE, BASE, [advice, violation])
    assert shown.startswith("## Manifests of `prod`: refused\n\n````text\n[advisory] sizes: b: many.\nLower it.\n````")
    assert shown.endswith("`````text\n[mandatory] labels: a: no owner ````.\nAdd it.\n`````")


def a_repository(folder: Path, recipe: str) -> Path:
    """Return a repository whose `make render` runs a line of shell."""
    (folder / "Makefile").write_text(f"render:\n\t@{recipe}\n")
    for command in (
        ["init", "--quiet"],
        ["add", "Makefile"],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "base"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


def test_the_base_is_rendered_by_its_own_program_and_leaves_nothing(tmp_path: Path) -> None:
    root = a_repository(tmp_path, "mkdir -p $(DIR) && echo 'of the base: $(STACK)' > $(DIR)/001-a.yaml")
    (root / "Makefile").write_text("render:\n\t@false\n")  # the change

    assert rendered_review.manifests_at(root, "HEAD", "prod") == {"001-a.yaml": "of the base: prod\n"}
    listed = subprocess.run(["git", "-C", str(root), "worktree", "list"], check=True, capture_output=True, text=True)
    assert len(listed.stdout.splitlines()) == 1


def test_a_base_without_the_stack_has_no_manifests(tmp_path: Path) -> None:
    assert rendered_review.manifests_at(a_repository(tmp_path, "exit 1"), "HEAD", "prod") is None


def test_a_base_that_is_no_commit_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"BASE=nowhere is not a commit of this clone\. Fetch it"):
        rendered_review.manifests_at(a_repository(tmp_path, "true"), "nowhere", "prod")


@pytest.mark.parametrize("stack", ["prod", "staging"])
def test_a_stack_of_this_project_is_reviewed_without_any_credential(
    stack: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("KUBECONFIG", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.argv", ["rendered_review", "--stack", stack])
    monkeypatch.setattr(rendered_review, "manifests_at", lambda *_: None)

    assert run(rendered_review.main) == 0

    out = capsys.readouterr().out
    assert out.startswith(f"## Manifests of `{stack}`: ")
    assert "kind: Secret\n" not in out


def test_a_change_that_a_policy_refuses_fails_with_a_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "ROOT", project(tmp_path, EXAMPLE.replace("host-paths:", "labels:")))
    monkeypatch.setattr("sys.argv", ["rendered_review", "--stack", "prod"])
    monkeypatch.setattr(rendered_review, "manifests_at", lambda *_: None)

    assert run(rendered_review.main) == 1

    shown = capsys.readouterr()
    assert shown.out.startswith("## Manifests of `prod`: refused\n")
    assert "[mandatory] host-paths: " in shown.out
    assert "Stack prod is refused. The page gives the reasons." in shown.err
