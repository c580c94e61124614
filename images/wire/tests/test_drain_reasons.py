"""Reasons of drains, written and read again."""

import pytest

from slurm_wire import drain_reasons


@pytest.mark.parametrize("replace", [False, True])
def test_a_checks_reason_is_read_as_it_was_written(replace: bool) -> None:
    reason = drain_reasons.health_reason("gpu_count", "7 of 'h100'\nx", "8", replace=replace)

    assert drain_reasons.check_that_drains(reason) == drain_reasons.named_check(reason) == "gpu_count"
    assert drain_reasons.asks_for_replacement(reason) == replace
    assert drain_reasons.named_hook(reason) == drain_reasons.named_operation(reason) == ""
    assert "\n" not in reason
    assert "'" not in reason


def test_a_reason_with_words_of_an_admin_still_names_the_check_but_no_longer_ends_with_it() -> None:
    reason = drain_reasons.health_reason("gpu_count", "7", "8")
    assert drain_reasons.check_that_drains(f"{reason}, RMA 4711") is None
    assert drain_reasons.named_check(f"{reason}, RMA 4711") == "gpu_count"


def test_words_of_slurmctld_about_a_silent_node_change_nothing() -> None:
    reason = drain_reasons.health_reason("gpu_count", "7", "8")
    assert drain_reasons.check_that_drains(f"{reason} : Not responding") == "gpu_count"


def test_a_new_node_is_held_by_its_verification() -> None:
    assert drain_reasons.named_check(f"{drain_reasons.NOT_VERIFIED}, passed gpu_burn") == "verification"
    assert drain_reasons.check_that_drains(drain_reasons.NOT_VERIFIED) is None


def test_a_hooks_reason_is_read_as_it_was_written() -> None:
    reason = drain_reasons.hook_reason("gpu-reset", "no answer in 30 s")
    assert drain_reasons.named_hook(reason) == "gpu-reset"
    assert drain_reasons.named_check(reason) == ""


@pytest.mark.parametrize("checks", [(), ("clock",), ("clock", "disk")])
def test_findings_are_read_as_they_were_written(checks: tuple[str, ...]) -> None:
    assert drain_reasons.findings(drain_reasons.findings_text(checks)) == checks


@pytest.mark.parametrize("extra", ["", "rack 12", "healthy:clock"])
def test_a_text_of_an_admin_has_no_findings(extra: str) -> None:
    assert drain_reasons.findings(extra) == ()
