"""The resource that changes the password of slurmdbd's account in the cluster's own database without losing records.

A cluster has two of them, before and after slurmdbd.conf: the first makes the account accept the new password as well
as the former one, then slurmdbd changes to the new one, and the second removes the former one. Both read the live
account, so that a killed run can continue anywhere.
"""

from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pydantic import ConfigDict, Field

from soperator_pulumi.errors import DatabaseError, KubernetesError, NotReadyError, TransportError
from soperator_pulumi.kube.verbs import Kube, secret_path
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.configuration.desired_files import LiveFiles
from soperator_pulumi.operations.database.accounts import PasswordsOfAccount, native_hash
from soperator_pulumi.operations.database.administration import DatabaseAdministration
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, report, saying, until
from soperator_pulumi.render.passwords import unquoted_password

ANSWER_SECONDS = 120
"""Time for MariaDB to answer: it was ready before, but may be restarting."""

_FILE, _KEY = "slurmdbd.conf", "StoragePass="


class DatabaseAccountInputs(ClusterRef):
    """An account, the hash of its password, and the Secret with the slurmdbd.conf that uses the password."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    user: str
    password_hash: str = Field(repr=False)
    accepts_former: bool
    """True to keep passwords that the account accepts; False to remove them."""
    config_secret: str


class DatabaseAccountProvider(PinnedProvider):
    """Change the account on create and update. Delete removes nothing: the account is deleted with its database."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Read which passwords the account accepts, and report the change."""
        if has_unknown(news):
            return DiffResult(changes=True)
        inputs = DatabaseAccountInputs.model_validate(news)
        other = inputs.password_hash != olds.get("password_hash")
        try:
            accepted = _passwords(self.pinned_kube(news), inputs).accepted()
        except (DatabaseError, KubernetesError, TransportError) as error:
            report(f"database: cannot read the account {inputs.user}: {error}")
            return DiffResult(changes=other)
        if inputs.accepts_former and inputs.password_hash not in accepted:
            report(f"database: the account {inputs.user} accepts a new password as well as the former one")
            return DiffResult(changes=True)
        if not inputs.accepts_former and accepted != (inputs.password_hash,):
            report(f"database: the account {inputs.user} loses its former password once slurmdbd has the new one")
            return DiffResult(changes=True)
        return DiffResult(changes=other)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Change the account if it differs. In a new database, it has its password already."""
        self._put(props)
        return CreateResult(f"{props['namespace']}/{props['user']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Change the account."""
        self._put(news)
        return UpdateResult({**news})

    def _put(self, props: dict[str, Any]) -> None:
        inputs, kube = DatabaseAccountInputs.model_validate(props), self.pinned_kube(props)
        passwords = _passwords(kube, inputs)
        _await_account(passwords)
        if inputs.accepts_former:
            passwords.accept(inputs.password_hash)
            return
        _unless_former_is_used(kube, inputs)
        passwords.accept_alone(inputs.password_hash)


def _passwords(kube: Kube, inputs: DatabaseAccountInputs) -> PasswordsOfAccount:
    return PasswordsOfAccount(DatabaseAdministration(kube, inputs.namespace, inputs.selector), inputs.user)


def _await_account(passwords: PasswordsOfAccount) -> None:
    """Wait until MariaDB answers.

    Raises:
        NotReadyError: MariaDB does not answer in time; with the reason.
    """
    clock, reason = MachineClock(), ""
    for left in until(clock.now() + ANSWER_SECONDS, clock, say=saying(report, "waits for MariaDB")):
        try:
            passwords.accepted()
        except (DatabaseError, TransportError) as error:
            if not reason:
                report(f"waits for MariaDB, {left:.0f} s left: {error}")
            reason = str(error)
        else:
            return
    raise NotReadyError(f"MariaDB does not answer after {ANSWER_SECONDS} s: {reason}")


def _unless_former_is_used(kube: Kube, inputs: DatabaseAccountInputs) -> None:
    """Check that slurmdbd runs on the new password, so that the former one can be removed.

    Raises:
        NotReadyError: slurmdbd does not run on it yet.
    """
    body = kube.get(secret_path(inputs.namespace, inputs.config_secret))
    live = None if body is None else LiveFiles(body)
    lines = [] if live is None else live.files.get(_FILE, "").splitlines()
    found = next((line.removeprefix(_KEY) for line in lines if line.startswith(_KEY)), "")
    if live is None or not live.in_force or inputs.password_hash != native_hash(unquoted_password(found)):
        raise NotReadyError(
            f"The account {inputs.user} keeps its former password: slurmdbd does not run on the new one yet. "
            "Run again, with all of the cluster's resources."
        )


class DatabaseAccount(LiveResource, module="soperator", name="DatabaseAccount"):
    """The account of slurmdbd, accepting only its password, or also the former one."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        user: str,
        password: pulumi.Input[str],
        accepts_former: bool,
        config_secret: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster.
            user: Name of the account.
            password: The password. The state has only its hash, encrypted.
            accepts_former: True to keep the passwords that the account accepts; False to remove them.
            config_secret: Secret with slurmdbd.conf.
            opts: Options of the resource.
        """
        inputs = {
            "user": user,
            "password_hash": pulumi.Output.secret(password).apply(native_hash),
            "accepts_former": accepts_former,
            "config_secret": config_secret,
        }
        encrypted = pulumi.ResourceOptions(additional_secret_outputs=["password_hash"])
        merged = pulumi.ResourceOptions.merge(opts, encrypted)
        super().__init__(DatabaseAccountProvider(), resource_name, cluster, inputs, merged)
