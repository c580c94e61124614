"""Way to a chart, as pulumi-kubernetes finds it."""

from typing import Any

import pytest

from tools.engine.local.helm.chart_place import chart_place

LOGIN = {"username": "reader", "password": "secret"}


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"chart": "./charts/tiny"}, ["./charts/tiny"]),
        ({"chart": "tiny", "version": "^1"}, ["tiny", "--version", "^1"]),
        ({"chart": "tiny", "devel": True}, ["tiny", "--version", ">0.0.0-0"]),
        ({"chart": "tiny", "repositoryOpts": {"repo": "https://c.test"}}, ["tiny", "--repo", "https://c.test"]),
        ({"chart": "tiny", "repositoryOpts": {"repo": "mine"}}, ["mine/tiny"]),
        ({"chart": "mine/tiny", "repositoryOpts": {"repo": "other"}}, ["mine/tiny"]),
        ({"chart": "oci://r.test/tiny", "repositoryOpts": {"repo": "https://c.test"}}, ["oci://r.test/tiny"]),
        ({"chart": "tiny", "repositoryOpts": {"caFile": "/ca"}}, ["tiny", "--ca-file", "/ca"]),
    ],
)
def test_inputs_lead_to_a_chart(inputs: dict[str, Any], words: list[str]) -> None:
    assert chart_place(inputs).words == words


@pytest.mark.parametrize(
    ("inputs", "needed"),
    [
        ({"chart": "tiny", "repositoryOpts": {"repo": "https://c.test", **LOGIN}}, True),
        ({"chart": "oci://r.test/tiny", "repositoryOpts": LOGIN}, True),
        ({"chart": "./tiny", "repositoryOpts": LOGIN}, False),
        ({"chart": "tiny", "repositoryOpts": {"repo": "https://c.test", "username": "reader"}}, False),
    ],
)
def test_a_password_is_given_to_the_place_that_takes_it_and_is_no_argument(
    inputs: dict[str, Any], needed: bool
) -> None:
    place = chart_place(inputs)
    assert place.needs_login is needed
    assert "secret" not in place.words


def test_the_login_of_a_registry_is_for_its_host() -> None:
    assert chart_place({"chart": "oci://r.test:5000/charts/tiny"}).registry == "r.test:5000"
