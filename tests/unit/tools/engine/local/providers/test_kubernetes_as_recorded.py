"""The local engine's provider of Kubernetes sees the differences that the real one sees, but for those listed here."""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.tools.engine.local.providers.kubernetes_cases import CASES, RECORDED, answers
from tools.engine.kubernetes.provider_settings import settings_of
from tools.engine.local.providers.kubernetes_provider import KubernetesProvider

RECORDED_ANSWERS: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())


def answered(case: str) -> dict[str, Any]:
    provider = KubernetesProvider(settings_of({}), {}, "tests", lambda _urn, _line: None)
    return asyncio.run(answers(provider, CASES[case]))


def test_every_case_is_recorded() -> None:
    assert RECORDED_ANSWERS.keys() == CASES.keys()


@pytest.mark.parametrize("case", CASES)
def test_a_change_is_answered_as_recorded(case: str) -> None:
    assert answered(case) == RECORDED_ANSWERS[case]
