"""`soperator drift` and `soperator review`, on answers of `pulumi preview --json`."""

import json
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi import cli

URN = "urn:pulumi:prod::soperator::soperator-pulumi:index:SlurmCluster$kubernetes:apps/v1:StatefulSet::"


def a_step(operation: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"op": operation, "urn": f"{URN}{name}", **rest}


STEPS = [
    a_step("same", "hpc-login"),
    a_step("update", "hpc-cpu", detailedDiff={"spec.replicas": {"kind": "update"}}),
    a_step("create-replacement", "hpc-gpu"),
    a_step("replace", "hpc-gpu", diffReasons=["spec"]),
    a_step("delete-replaced", "hpc-gpu"),
]
NOTE = {"severity": "info", "message": "<{%reset%}>hpc/cpu: 4 -> 2 nodes.<{%reset%}>\n"}
FAULT = {"severity": "error", "urn": f"{URN}hpc-cpu", "message": "refused"}


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a `pulumi` on PATH that gives an answer, and notes its arguments."""

    def put(content: str, status: int = 0) -> Path:
        (tmp_path / "answer").write_text(content)
        fake = tmp_path / "pulumi"
        fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\ncat {tmp_path}/answer\nexit {status}\n')
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return tmp_path / "words"

    return put


def test_drift_lists_each_difference_once(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = answer(json.dumps({"steps": STEPS}))
    assert cli.main(["drift", "--stack", "prod"]) == 1
    assert capsys.readouterr().out == (
        "update kubernetes:apps/v1:StatefulSet hpc-cpu: spec.replicas\n"
        "replace kubernetes:apps/v1:StatefulSet hpc-gpu: spec\n"
    )
    assert words.read_text() == "preview --stack prod --json --non-interactive --refresh\n"


def test_no_difference_has_status_0(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer(json.dumps({"steps": STEPS[:1]}))
    assert cli.main(["drift", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_review_has_the_changes_and_the_words_of_providers(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer(json.dumps({"steps": STEPS, "diagnostics": [NOTE]}))
    assert cli.main(["review", "--stack", "prod"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("## Preview of `prod`: 1 to update, 1 to replace\n")
    assert "hpc/cpu: 4 -> 2 nodes.\n" in shown
    assert "{%" not in shown


def test_a_refused_change_has_its_reason_on_the_page(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer(json.dumps({"steps": STEPS, "diagnostics": [FAULT]}), 255)
    assert cli.main(["review", "--stack", "prod"]) == 1
    assert "hpc-cpu: refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", ["", "error: no stack named 'prod' found", '{"steps": [{"op": "leap", "urn": "a::b"}]}']
)
def test_an_answer_that_is_not_understood_passes_for_no_comparison(
    content: str, answer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(content, 0)
    assert cli.main(["drift"]) == 2
    assert capsys.readouterr().err.startswith("error: pulumi preview: ")


def test_a_failure_without_a_reason_in_the_answer_is_a_failure(answer: Any) -> None:
    answer(json.dumps({"steps": STEPS[:1]}), 255)
    assert cli.main(["drift"]) == 2
