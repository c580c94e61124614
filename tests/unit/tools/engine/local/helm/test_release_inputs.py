"""Flags of helm, as pulumi-kubernetes sets them in its calls of helm's library."""

import pytest

from tools.engine.local.helm import release_inputs
from tools.engine.values import UNKNOWN, PlainMap


def complete(**given: object) -> PlainMap:
    return release_inputs.complete({"chart": "tiny", "name": "r", **given}, "default")  # type: ignore[dict-item] # plain


def test_an_install_waits_for_five_minutes() -> None:
    assert release_inputs.install_flags(complete()) == ["--timeout", "300s", "--wait"]


def test_an_upgrade_keeps_all_revisions() -> None:
    flags = release_inputs.upgrade_flags(complete())
    assert flags == ["--timeout", "300s", "--wait", "--history-max", "0"]


def test_jobs_are_awaited_with_the_rest_alone() -> None:
    assert "--wait-for-jobs" in release_inputs.install_flags(complete(waitForJobs=True))
    skipped = release_inputs.install_flags(complete(waitForJobs=True, skipAwait=True))
    assert not {"--wait", "--wait-for-jobs"} & {*skipped}


def test_switches_are_those_of_their_command() -> None:
    inputs = complete(
        atomic=True, skipCrds=True, createNamespace=True, cleanupOnFail=True, maxHistory=3, description="d"
    )
    install, upgrade = release_inputs.install_flags(inputs), release_inputs.upgrade_flags(inputs)
    assert {"--atomic", "--skip-crds", "--create-namespace", "--description"} <= {*install}
    assert {"--atomic", "--cleanup-on-fail", "--history-max", "3"} <= {*upgrade}
    assert not {"--skip-crds", "--create-namespace"} & {*upgrade}


def test_a_removal_waits_unless_nothing_was_awaited() -> None:
    assert release_inputs.uninstall_flags(complete()) == ["--ignore-not-found", "--wait", "--timeout", "300s"]
    assert release_inputs.uninstall_flags(complete(skipAwait=True)) == ["--ignore-not-found"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"unheard": 1}, "unheard"),
        ({"atomic": "yes"}, "atomic"),
        ({"timeout": True}, "timeout"),
        ({"values": ["a"]}, "values"),
        ({"lint": True}, "lint"),
        ({"chart": ""}, "chart"),
    ],
)
def test_wrong_inputs_are_named(given: PlainMap, path: str) -> None:
    assert [where for where, _ in release_inputs.problems({"chart": "tiny", **given})] == [path]


def test_unknown_inputs_and_those_without_effect_are_no_problem() -> None:
    assert release_inputs.problems({"chart": "tiny", "values": UNKNOWN, "compat": "true", "lint": False}) == []
    assert "compat" not in complete(compat="true")
