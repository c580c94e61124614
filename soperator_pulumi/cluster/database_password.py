"""Password of slurmdbd's database user: generated, or from a Secret of the user."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_random as random
from pulumi_kubernetes.core.v1 import Secret

from soperator_pulumi.cluster.mounts import SecretFile
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.render.passwords import quoted_password
from soperator_pulumi.spec.accounting import GENERATED_PASSWORD, AccountingSpec
from soperator_pulumi.spec.accounting_database import DatabasePassword

GENERATED = SecretFile(GENERATED_PASSWORD, "password")
"""Key of a generated password in its Secret."""

PASSWORD_LENGTH = 32


class UnfitPasswordError(SpecError, pulumi.RunError):
    """A user's Secret has no usable password. Pulumi prints neither the password nor a traceback."""


@dataclass(frozen=True)
class Password:
    """A password, and its file."""

    value: pulumi.Output[str]
    file: SecretFile
    created: tuple[Secret, ...]
    """The Secret with a generated password; empty if the user provides one."""


def create_password(name: str, scope: Scope, accounting: AccountingSpec) -> Password:
    """Create the password, unless the spec names a Secret of the user."""
    external, own = accounting.database.external, accounting.own
    given = external.password if external is not None else (own.password if own is not None else None)
    if given is not None:
        return _given(name, scope, given)
    password = random.RandomPassword(
        f"{name}-database-password",
        length=PASSWORD_LENGTH,
        special=False,
        keepers={"version": str(1 if own is None else own.password_version)},
        opts=scope.options(),
    )
    secret = Secret(
        f"{name}-database-password-secret",
        metadata=scope.metadata(str(GENERATED.secret)),
        string_data={GENERATED.key: password.result},
        opts=scope.options(),
    )
    return Password(password.result, GENERATED, (secret,))


def _given(name: str, scope: Scope, given: DatabasePassword) -> Password:
    """Read the user's Secret: a changed value is a change of slurmdbd.conf in the next run."""
    found = Secret.get(
        f"{name}-database-password-given",
        pulumi.Output.concat(scope.namespace, "/", given.secret),
        opts=scope.options(),
    )

    def text(known: Sequence[Any]) -> str:
        metadata, data = known
        # A program that is only rendered reads nothing.
        return "not-read" if metadata is None else _password(given, data or {})

    value = pulumi.Output.all(found.metadata, found.data).apply(text)
    return Password(pulumi.Output.secret(value), SecretFile(given.secret, given.key), ())


def _password(given: DatabasePassword, data: Mapping[str, str]) -> str:
    """Return the password in a Secret's data, without the line end that editors leave.

    Raises:
        UnfitPasswordError: The Secret has none, or one that slurmdbd.conf cannot hold.
    """
    where = f"Secret {given.secret}"
    if given.key not in data:
        keys = ", ".join(sorted(data)) or "none"
        text = f"not there. The Secret has these keys: {keys}. Add the key to it, or name another one."
        raise UnfitPasswordError(where, [Problem(given.key, text)])
    try:
        password = base64.b64decode(data[given.key]).decode().removesuffix("\n")
        quoted_password(password)
    except UnicodeDecodeError:
        problem = Problem(given.key, "is not UTF-8 text. Give the database's user another password.")
    except ValueError as error:
        problem = Problem(
            given.key, f"{error}: slurmdbd.conf cannot hold it. Give the database's user another password."
        )
    else:
        return password
    raise UnfitPasswordError(where, [problem])
