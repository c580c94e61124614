"""Public keys of users, fully parsed, so that a typo is found before the first login."""

import base64
import binascii
import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from soperator_pulumi.spec.validation.base import refused_quietly

_MIN_RSA_BITS = 2048
_ED25519_BYTES = 32
_POINT_BYTES = {"nistp256": 65, "nistp384": 97, "nistp521": 133}
"""Length of an uncompressed point, by curve (RFC 5656)."""

KEY_TYPES = (
    "ssh-ed25519",
    *(f"ecdsa-sha2-{curve}" for curve in _POINT_BYTES),
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
"""Types of users' public keys in OpenSSH 10."""


KEY_OPTIONS = (
    "agent-forwarding",
    "cert-authority",
    "command",
    "expiry-time",
    "from",
    "no-agent-forwarding",
    "no-port-forwarding",
    "no-pty",
    "no-touch-required",
    "no-user-rc",
    "no-x11-forwarding",
    "permitlisten",
    "permitopen",
    "port-forwarding",
    "principals",
    "pty",
    "restrict",
    "user-rc",
    "verify-required",
)
"""Options before a key that have an effect in sessions (sshd(8)), unlike `environment`, `tunnel` and `x11-forwarding`.
"""

_OPTION = r'[A-Za-z0-9-]+(?:="(?:[^"\\]|\\.)*")?'
_OPTIONS = rf"{_OPTION}(?:,{_OPTION})*"
_TYPES = f"({'|'.join(KEY_TYPES)}) ".replace(".", "[.]")


def check_public_key(value: object) -> str:
    """Return a line of authorized_keys, `[options] <type> <base64> [comment]`, without surrounding blanks.

    Raises:
        PydanticCustomError: The value is not a public key. The message never shows it, as it may be private.
    """
    if not isinstance(value, str):
        raise refused_quietly('needs a public key as text: the line in a file such as "id_ed25519.pub".')
    if "PRIVATE KEY" in value:
        raise refused_quietly(
            'is a private key. Give the public one, the line in the file that ends in ".pub", '
            "and replace this key: others may have seen it."
        )
    line = value.strip()
    if not line:
        raise refused_quietly('empty. Give the line in a file such as "id_ed25519.pub", or remove the entry.')
    if "\n" in line or "\r" in line:
        raise refused_quietly("has more than one line. List the keys as separate entries.")
    kind, _, rest = _without_options(line).partition(" ")
    if kind not in KEY_TYPES:
        raise refused_quietly(
            f"does not start with a type of public key. Allowed: {', '.join(KEY_TYPES)}, then the key; before them "
            f"options of sshd, separated by commas: {', '.join(KEY_OPTIONS)}."
        )
    encoded = rest.split()[0] if rest.split() else ""
    try:
        blob = base64.b64decode(encoded, validate=True)
        fields = _fields(blob)
    except (binascii.Error, ValueError):
        raise refused_quietly(
            f"starts as {kind}, but the key after it is cut off or damaged. Copy the whole line again."
        ) from None
    _check_fields(kind, fields)
    return line


def _without_options(line: str) -> str:
    """Return a line from the type of its key on."""
    found = re.match(rf"({_OPTIONS})[ \t]+(?={_TYPES})", line)
    if found is None:
        return line
    if any(option.partition("=")[0].lower() not in KEY_OPTIONS for option in re.findall(_OPTION, found[1])):
        raise refused_quietly(
            f"has an option before the key that does not hold in sessions here. Allowed: {', '.join(KEY_OPTIONS)}."
        )
    return line[found.end() :]


SshPublicKey = Annotated[
    str,
    BeforeValidator(check_public_key),
    WithJsonSchema({"type": "string", "pattern": rf"^\s*({_OPTIONS}\s+)?{_TYPES}"}),
]
"""`[options] <type> <base64> [comment]`, as in authorized_keys."""


def _fields(blob: bytes) -> list[bytes]:
    """Return the length-prefixed fields of a key in wire format (RFC 4251, section 5)."""
    fields = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length or len(blob) < 4:
            raise ValueError
        fields.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return fields


def _check_fields(kind: str, fields: list[bytes]) -> None:
    if not fields or fields[0] != kind.encode():
        raise refused_quietly(f"starts as {kind}, but the key after it is of another type. Copy the whole line again.")
    body = fields[1:]
    hardware = kind.startswith("sk-")
    if hardware and body and not body[-1]:
        body = []  # the application, "ssh:" as a rule, is never empty
    elif hardware:
        body = body[:-1]
    if not _body_is_right(kind, body):
        raise refused_quietly(
            f"starts as {kind}, but the key after it is cut off or damaged. Copy the whole line again."
        )
    if kind == "ssh-rsa" and int.from_bytes(body[1], "big").bit_length() < _MIN_RSA_BITS:
        raise refused_quietly(
            f"is an RSA key of {int.from_bytes(body[1], 'big').bit_length()} bits; at least {_MIN_RSA_BITS} are "
            "needed. Create one of type ed25519: ssh-keygen -t ed25519."
        )


def _body_is_right(kind: str, body: list[bytes]) -> bool:
    if "ed25519" in kind:
        return len(body) == 1 and len(body[0]) == _ED25519_BYTES
    if kind == "ssh-rsa":
        return len(body) == 2 and all(body)  # exponent, modulus
    curve = kind.partition("@")[0].rpartition("-")[2]
    return len(body) == 2 and body[0] == curve.encode() and len(body[1]) == _POINT_BYTES[curve] and body[1][0] == 4
