"""The local engine's random provider answers as the real one does, but for the differences listed here."""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.tools.engine.local.providers.random_cases import CASES, RECORDED, answers
from tools.engine.local.providers.random import RandomProvider

HASHES = {"bcryptHash", "bcryptHash (secret)"}
"""Outputs that are left out: to make them takes another library, and no program of this project reads one."""

REFUSED_HERE_ALONE = "id, no bytes"


def recorded_answers(case: str) -> dict[str, Any]:
    recorded: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return recorded[case]


def without_hashes(answer: object) -> object:
    return {key: value for key, value in answer.items() if key not in HASHES} if isinstance(answer, dict) else answer


def test_every_case_is_recorded() -> None:
    assert json.loads(RECORDED.read_text()).keys() == CASES.keys()


@pytest.mark.parametrize("case", sorted(CASES.keys() - {REFUSED_HERE_ALONE}))
def test_a_case_is_answered_as_recorded(case: str) -> None:
    found, recorded = asyncio.run(answers(RandomProvider(), CASES[case])), recorded_answers(case)
    if "refused" in recorded:
        assert found.keys() == {"refused"}, "the words differ"
    else:
        assert found == {part: without_hashes(answer) for part, answer in recorded.items()}


def test_an_id_without_a_bit_is_refused_here_alone() -> None:
    assert recorded_answers(REFUSED_HERE_ALONE)["outputs"]["id"] == "id of 0"
    assert asyncio.run(answers(RandomProvider(), CASES[REFUSED_HERE_ALONE])).keys() == {"refused"}
