"""Properties of resources on the wire."""

from enum import StrEnum

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.plugin.wire import read, write
from tests.unit.plugin.driver import plain, secret, struct


class Word(StrEnum):
    """A text of a few that there are."""

    ONE = "one"


def test_what_is_written_is_read_again_with_its_secrets() -> None:
    values = {"text": "a", "number": 2.0, "truth": True, "list": [1.0, "b"], "map": {"c": {"d": "e"}}}
    assert read(write(values, {"text", "map"})) == (values, frozenset({"text", "map"}))


def test_a_secret_deep_in_a_value_makes_the_whole_value_secret() -> None:
    found, secrets = read(struct({"map": {"list": [secret("hunter2")]}, "other": 1}))
    assert found == {"map": {"list": ["hunter2"]}, "other": 1.0}
    assert secrets == {"map"}


@pytest.mark.parametrize("value", [UNKNOWN, secret(UNKNOWN)], ids=["plain", "secret"])
def test_a_value_that_is_not_known_yet_is_never_none(value: object) -> None:
    assert read(struct({"kubeconfig": value}))[0] == {"kubeconfig": UNKNOWN}


def test_none_is_left_out() -> None:
    assert read(struct({"a": None, "b": {"c": None, "d": 1}}))[0] == {"b": {"d": 1.0}}
    assert plain(write({"a": None, "b": 1}, ())) == {"b": 1.0}


def test_words_and_tuples_are_text_and_lists() -> None:
    assert plain(write({"word": Word.ONE, "tuple": (1, 2)}, ())) == {"word": "one", "tuple": [1.0, 2.0]}


def test_what_no_property_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="not a property of a resource: object"):
        write({"a": object()}, ())
