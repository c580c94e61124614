"""Users of the cluster, and their groups."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.names import SlurmAccount
from soperator_pulumi.spec.types.ssh_key import SshPublicKey
from soperator_pulumi.spec.validation.base import Matches, Model, refused, whole
from soperator_pulumi.spec.validation.partial import known

_ID_RANGES = ((1000, 65_533), (65_536, 4_294_967_293))
"""Ids of people according to Debian's policy (9.2.2): from 1000. 65534 is the user `nobody`, 65535 and 4294967295 are
-1 in 16 and 32 bits, and 4294967294 is `nobody` on other systems."""

_TAKEN_IDS = {
    64030: "slurm",
    64031: "munge",
    64032: "mysql",
    64033: "slurmrest",
    64034: "soperator-health",
    64035: "slurmexport",
}
"""Ids that this project uses in all images; 64030 is Debian's for slurm."""


def _account_id(value: int) -> int:
    if value in _TAKEN_IDS:
        raise refused(f"which is the id of {_TAKEN_IDS[value]}. Choose another one.")
    if not any(low <= value <= high for low, high in _ID_RANGES):
        raise refused(
            "needs a number from 1000 to 65533 or from 65536: lower ids belong to the system, 65534 is nobody."
        )
    return value


AccountId = Annotated[
    int,
    whole(0, 4_294_967_295),
    AfterValidator(_account_id),
    WithJsonSchema(
        {"type": "integer", "anyOf": [{"minimum": lowest, "maximum": highest} for lowest, highest in _ID_RANGES]}
    ),
]
"""A uid or gid of a person."""


def _no_system_name(name: str) -> str:
    if name in SYSTEM_NAMES:
        raise refused("which is a system user or group in every image. Choose another name.")
    return name


AccountName = Annotated[
    str,
    Matches(
        r"[a-z_]([a-z0-9_.-]*[a-z0-9_-])?",
        "needs lower case letters, digits, '_', '-' and '.', a letter or '_' first, no '.' at the end.",
        32,
    ),
    AfterValidator(_no_system_name),
]
"""Name of a user or group: at most 32 characters. Debian's useradd and groupadd accept it, with a dot in it by
`--badname`."""

Shell = Annotated[
    str,
    Matches(r"/[A-Za-z0-9._/-]+", 'needs the absolute path of a program in the images, such as "/bin/bash".', 255),
]


class GroupSpec(Model):
    """A group that several users share."""

    name: AccountName
    """Name of the group."""
    gid: AccountId
    """Id of the group, the same on all nodes."""


class UserSpec(Model):
    """A person who may log in and run jobs, with the home directory `/home/<name>`, created at the first login."""

    name: AccountName
    """Login name, such as `jane.doe`: a lower case letter or '_' first, then lower case letters, digits, '_', '-' and
    '.', at most 32."""
    uid: AccountId
    """Id of the user, the same on all nodes, which owns the files in the home directory: never change it."""
    gid: AccountId = Field(default_factory=lambda fields: int(fields["uid"]))
    """Id of the user's own group, which is named after the user unless `groups` has the id. Default: the uid."""
    groups: tuple[AccountName, ...] = ()
    """Names of further groups, which must be in the cluster's `groups`."""
    ssh_keys: tuple[SshPublicKey, ...] = ()
    """Public keys, as lines of authorized_keys, also with options such as `from="10.0.0.0/8"` or `cert-authority`.
    Without one the user exists but cannot log in."""
    accounts: tuple[SlurmAccount, ...] = ()
    """Accounts in the accounting database; the first one is for jobs that name none. Default:
    accounting.default_account."""
    shell: Shell = "/bin/bash"
    """Login shell."""


def problems(users: tuple[UserSpec, ...], groups: tuple[GroupSpec, ...]) -> Iterator[Problem]:
    """Yield problems between users and groups."""
    yield from _twice("users", [(user.name, user.uid) for user in users], ("name", "uid"), "Users")
    yield from _twice("groups", [(group.name, group.gid) for group in groups], ("name", "gid"), "Groups")
    declared_names = [group.name for group in groups]
    for index, user in enumerate(users):
        for position, name in enumerate(user.groups):
            if known(name, groups, *declared_names) and name not in declared_names:
                yield Problem(
                    f"users[{index}].groups[{position}]",
                    f'"{name}" is not declared. Add it to the groups of the cluster, with its gid, or remove it.',
                )
    yield from _private_groups(users, groups)
    yield from _size_problems(users)


CONFIG_MAP_BYTES = 1_048_576
"""Largest size of all values of a ConfigMap (`MaxSecretSize` of Kubernetes' validation)."""


def _size_problems(users: tuple[UserSpec, ...]) -> Iterator[Problem]:
    lines = [key for user in users if known(user.ssh_keys) for key in user.ssh_keys if known(key)]
    size = sum(len(line.encode()) + 1 for line in lines)
    if size > CONFIG_MAP_BYTES:
        yield Problem(
            "users",
            f"{len(lines)} ssh_keys with {size} bytes, but Kubernetes accepts {CONFIG_MAP_BYTES} in one ConfigMap. Use "
            "keys of type ed25519, of 100 bytes, or leave keys to ~/.ssh/authorized_keys of the homes.",
        )


def _twice(what: str, rows: list[tuple[str, int]], fields: tuple[str, str], plural: str) -> Iterator[Problem]:
    for column, field in enumerate(fields):
        first_with: dict[object, int] = {}
        for index, row in enumerate(rows):
            value = row[column]
            if not known(value):
                continue
            if value in first_with:
                shown = f'"{value}"' if isinstance(value, str) else value
                yield Problem(
                    f"{what}[{index}].{field}",
                    f"{shown} is also the {field} of {what}[{first_with[value]}]. {plural} need distinct {field}s.",
                )
            first_with.setdefault(value, index)


def _private_groups(users: tuple[UserSpec, ...], groups: tuple[GroupSpec, ...]) -> Iterator[Problem]:
    """Yield collisions of users' own groups with each other and with declared groups."""
    gids = [group.gid for group in groups]
    names = {group.name: index for index, group in enumerate(groups)}
    owners: dict[int, int] = {}
    if not known(groups, *gids):
        return
    for index, user in enumerate(users):
        if not known(user.gid) or user.gid in gids:
            continue
        same_user = known(user.uid) and user.gid == user.uid and user.uid in {u.uid for u in users[:index]}
        if user.gid in owners and not same_user:
            yield Problem(
                f"users[{index}].gid",
                f"{user.gid} is also the gid of users[{owners[user.gid]}]. "
                "Give every user a different gid, or declare it in the groups of the cluster.",
            )
        owners.setdefault(user.gid, index)
        if known(user.name) and user.name in names:
            yield Problem(
                f"groups[{names[user.name]}].name",
                f'"{user.name}" is also the name of the own group of users[{index}], with gid {user.gid}. '
                "Choose another name, or give that user the group's gid.",
            )


SYSTEM_NAMES = frozenset(
    """
    _apt _ssh adm audio backup bin cdrom clock crontab daemon dialout dip disk fax floppy games input irc kmem kvm
    list lp mail man messagebus munge netdev news nobody nogroup operator plugdev proxy render root sasl sgx shadow
    slurm slurmexport slurmrest soperator-health src sshd staff sudo sync sys systemd-journal systemd-network
    systemd-timesync tape tty users utmp uucp video voice www-data
    """.split()  # noqa: SIM905 one name a line would be a screen of nothing
)
"""Users and groups of Debian 13's base-passwd and of the packages in the images, which would hide those of a spec. One
set for both, as a user's own group has the user's name."""
