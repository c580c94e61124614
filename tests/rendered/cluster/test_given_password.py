"""The password of the accounting database in a Secret of the user."""

import base64

import pytest

from soperator_pulumi.cluster.database_password import UnfitPasswordError, _password
from soperator_pulumi.spec.accounting_database import DatabasePassword

GIVEN = DatabasePassword(secret="db")


def data(content: bytes) -> dict[str, str]:
    return {"password": base64.b64encode(content).decode()}


def test_the_line_end_that_an_editor_leaves_is_no_part_of_it() -> None:
    assert _password(GIVEN, data(b"hunter 2#\n")) == "hunter 2#"


def test_a_secret_without_the_key_is_refused_with_the_keys_that_it_has() -> None:
    with pytest.raises(
        UnfitPasswordError, match=r"Secret db has 1 problem:\n  password: not there.* these keys: other\."
    ):
        _password(GIVEN, {"other": ""})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xffhunter2", "is not UTF-8 text"),
        (b"", "is empty"),
        (b"hunter2\tx", "control character"),
        (b'"hunter2" x', "has a double quote"),
    ],
)
def test_a_password_that_slurmdbd_cannot_have_is_refused_without_being_shown(content: bytes, reason: str) -> None:
    with pytest.raises(UnfitPasswordError, match=reason) as refused:
        _password(GIVEN, data(content))
    assert "hunter2" not in str(refused.value)
