"""Errors without secrets."""

from pulumi.provider.experimental.property_value import PropertyValue

from tools.engine.local.helm.redaction import redacted, secret_texts
from tools.engine.values import properties_of


def test_secrets_at_any_depth_are_hidden_as_they_are_and_in_base64() -> None:
    inner = PropertyValue(properties_of({"password": "hunter22", "of": ["other secret"]})).with_secret(True)
    secrets = secret_texts({"values": PropertyValue({"open": PropertyValue("hello"), "db": inner})})
    text = 'hello: "hunter22", aHVudGVyMjI=, other secret'
    assert redacted(text, secrets) == 'hello: "[secret]", [secret], [secret]'


def test_a_secret_within_another_one_does_not_leave_a_part_of_it() -> None:
    assert redacted("abcdef", {"abc", "abcdef"}) == "[secret]"
