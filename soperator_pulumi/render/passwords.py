"""Passwords in slurmdbd.conf."""

import re

_BLANK, _DELETE = ord(" "), 0x7F


def quoted_password(password: str) -> str:
    """Return a password in the syntax of slurmdbd.conf (`_strip_escapes` and others in src/common/parse_config.c).

    Raises:
        ValueError: slurmdbd.conf has no form for it; with the reason, without the password.
    """
    if not password:
        raise ValueError("is empty")
    if any(_is_control(character) for character in password):
        raise ValueError("has a line end, a tab or another control character")
    blank = " " in password
    if '"' in password and (blank or password[0] == password[-1] == '"'):
        raise ValueError("has a double quote, and a blank or another quote around it")
    escaped = re.sub(r"[\\#]", r"\\\g<0>", password)
    return f'"{escaped}"' if blank else escaped


def _is_control(character: str) -> bool:
    """Return True for characters that end a line, also in Unicode, or that terminals do not show."""
    return ord(character) < _BLANK or ord(character) == _DELETE or len(f"a{character}b".splitlines()) > 1


def unquoted_password(text: str) -> str:
    """Return the password that slurmdbd reads from its syntax."""
    unescaped = re.sub(r"\\(.)", r"\1", text)
    quoted = re.fullmatch(r'"([^"]*)"', unescaped)
    return quoted[1] if quoted else unescaped
