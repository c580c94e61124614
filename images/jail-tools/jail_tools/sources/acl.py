"""POSIX ACLs as tar writes them (text, acl(5)) and as the kernel takes them (an extended attribute)."""

from collections.abc import Mapping

VERSION = (2).to_bytes(4, "little")
"""POSIX_ACL_XATTR_VERSION of linux/posix_acl_xattr.h, whose structures these are."""
NOBODY = 0xFFFFFFFF
"""Id in entries that name no user or group."""

_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_TAGS = {
    ("user", False): _USER_OBJ,
    ("user", True): _USER,
    ("group", False): _GROUP_OBJ,
    ("group", True): _GROUP,
    ("mask", False): _MASK,
    ("other", False): _OTHER,
}
_PERMISSIONS = {"r": 4, "w": 2, "x": 1, "-": 0}


def attribute_of(text: str, users: Mapping[str, int], groups: Mapping[str, int]) -> bytes:
    """Return the extended attribute of an ACL.

    Args:
        text: the ACL in short or long form, numbers or names, with or without the number in a fourth field as star and
            bsdtar write it: `user::rw-,user:1001:r--,group::r--,mask::r--,other::r--`.
        users: numbers of the users' names.
        groups: numbers of the groups' names.

    Raises:
        ValueError: it is no ACL, or has a name that no one has; the message names the entry.
    """
    entries = []
    for line in text.replace("\n", ",").split(","):
        entry = line.partition("#")[0].strip()
        if entry:
            entries.append(_entry(entry, users, groups))
    return VERSION + b"".join(
        tag.to_bytes(2, "little") + permissions.to_bytes(2, "little") + number.to_bytes(4, "little")
        for tag, number, permissions in sorted(entries)
    )


def _entry(text: str, users: Mapping[str, int], groups: Mapping[str, int]) -> tuple[int, int, int]:
    """Return tag, number and permissions of one entry."""
    kind, *rest = text.split(":")
    if kind in {"u", "g", "m", "o"}:
        kind = {"u": "user", "g": "group", "m": "mask", "o": "other"}[kind]
    name = rest[0] if len(rest) > 1 else ""
    permissions = rest[1] if len(rest) > 1 else "".join(rest)
    tag = _TAGS.get((kind, bool(name)))
    if tag is None or len(rest) > 3 or not permissions or not set(permissions) <= _PERMISSIONS.keys():
        raise ValueError(f"{text!r} is not an entry of an ACL")
    number = NOBODY
    if name:
        number = _number(rest[2] if len(rest) == 3 else name, users if kind == "user" else groups, text)
    return tag, number, sum(_PERMISSIONS[letter] for letter in set(permissions))


def _number(name: str, numbers: Mapping[str, int], text: str) -> int:
    if name.isdecimal():
        return int(name)
    if name not in numbers:
        raise ValueError(f"{text!r} names a user or group that the tree's /etc does not know")
    return numbers[name]
