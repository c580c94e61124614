"""Keys of the cluster, generated or in existing Secrets. A spec never contains the value of a secret."""

from collections.abc import Iterator
from typing import Annotated

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Matches, Model, whole
from soperator_pulumi.spec.validation.partial import known

SecretKey = Annotated[
    str, Matches(r"[A-Za-z0-9._-]+", "needs the name of a Secret's key: letters, digits, '-', '_', '.'.", 253)
]


class SecretRef(Model):
    """A key of an existing Secret in the cluster's namespace."""

    secret: Maybe[ObjectName]
    """Name of the Secret."""
    key: SecretKey
    """Key in the Secret's data. Default: munge.key, or ssh_host_ed25519_key."""


class MungeKeyRef(SecretRef):
    """A Secret that holds a munge key: 32 to 1024 bytes."""

    key: SecretKey = "munge.key"
    """Key in the Secret's data. Default: munge.key."""


class SshHostKeyRef(SecretRef):
    """A Secret that holds an ed25519 private key in OpenSSH's format."""

    key: SecretKey = "ssh_host_ed25519_key"
    """Key in the Secret's data. Default: ssh_host_ed25519_key."""


class JwtKeyRef(SecretRef):
    """A Secret that holds the key that signs tokens of the REST API: at least 32 bytes."""

    key: SecretKey = "jwt.key"
    """Key in the Secret's data. Default: jwt.key."""


class SecretsSpec(Model):
    """Sources of the cluster's keys."""

    munge_key: MungeKeyRef | None = None
    """Key with which Slurm's daemons authenticate each other. Default: generated, 128 random letters and digits."""
    munge_key_version: Annotated[int, whole(1, 1_000_000)] = 1
    """Number of the generated munge key. Another number generates another key, which all daemons then start to use
    while jobs run. Not with `munge_key`."""
    ssh_host_key: SshHostKeyRef | None = None
    """The login nodes' host key. Default: a generated ed25519 key."""
    ssh_host_key_version: Annotated[int, whole(1, 1_000_000)] = 1
    """Number of the generated host key. Another number generates another key, which users' ssh clients must be given.
    Not with `ssh_host_key`."""
    jwt_key: JwtKeyRef | None = None
    """Key that signs tokens of the REST API (HS256). Default: generated; `rest.key_version` is its number."""


def problems(secrets: SecretsSpec) -> Iterator[Problem]:
    """Yield numbers of generated keys next to a Secret that has the key: another number would change no key."""
    for key in ("munge_key", "ssh_host_key"):
        given, number = getattr(secrets, key), f"{key}_version"
        if known(given, getattr(secrets, number)) and given is not None and getattr(secrets, number) != 1:
            yield Problem(
                f"secrets.{number}",
                f"counts generated keys, but the key is in the Secret that secrets.{key} names. Remove it. To use "
                "another key, change the Secret.",
            )
