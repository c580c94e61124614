"""slurmdbd.conf, the slurm.conf of slurmdbd's own pod, and the slurm.conf lines about slurmdbd."""

from collections.abc import Mapping

from soperator_pulumi.render import layout
from soperator_pulumi.render.communication import communication_lines, token_lines
from soperator_pulumi.render.gres import tracked_gres
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.render.passwords import quoted_password
from soperator_pulumi.spec.accounting import AccountingSpec, Enforce
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.rest import RestSpec

_PURGES = {
    "events": "Event",
    "jobs": "Job",
    "reservations": "Resv",
    "steps": "Step",
    "suspends": "Suspend",
    "transactions": "TXN",
    "usage": "Usage",
}
"""Kinds of records, with their names in slurmdbd.conf(5)."""

QUEUED_MESSAGES = 100_000
"""Messages that slurmctld keeps for a slurmdbd that does not answer: those of 20,000 to 30,000 jobs of one step, in
some 100 MB. Beyond, slurmctld discards the starts of jobs and steps first (MaxDBDMsgs in slurm.conf(5))."""


def tracks_wckeys(spec: ClusterSpec) -> bool:
    """Return True if jobs have workload characterization keys.

    slurmdbd sums usage by them only if its own TrackWCKey is set (slurmdbd.conf(5)).
    """
    if spec.accounting is None:
        return False
    asked = spec.slurm.extra.get("TrackWCKey", "no").lower() in {"yes", "true", "up", "1"}
    return asked or Enforce.WCKEYS in spec.accounting.enforce


def accounting_lines(spec: ClusterSpec) -> dict[str, str]:
    """Return the parameters of slurm.conf for accounting."""
    accounting = spec.accounting
    if accounting is None:
        return {"AccountingStorageType": "accounting_storage/none"}
    settings = {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": layout.ACCOUNTING_HOST,
        "AccountingStoragePort": str(layout.SLURMDBD_PORT),
        "AccountingStorageTRES": ",".join(f"gres/{text}" for text in tracked_gres(spec)),
        "AccountingStorageEnforce": ",".join(accounting.enforce),
        "AccountingStoreFlags": ",".join(accounting.store),
        "TrackWCKey": "yes" if tracks_wckeys(spec) and "TrackWCKey" not in spec.slurm.extra else "",
    }
    return {name: value for name, value in settings.items() if value}


def slurmdbd_conf(
    accounting: AccountingSpec,
    password: str,
    rest: RestSpec | None = None,
    *,
    wckeys: bool = False,
    communication: Mapping[str, str] | None = None,
) -> str:
    """Return slurmdbd.conf, which is secret as it holds the database's password.

    Args:
        accounting: Accounting of the spec.
        password: Password of the database.
        rest: The REST API of the spec.
        wckeys: True if jobs have workload characterization keys.
        communication: Parameters of the communication. Default: none.
    """
    external = accounting.database.external
    settings = {
        "AuthType": "auth/munge",
        **token_lines(rest, layout.SLURMDBD_DIR),
        "DbdHost": layout.ACCOUNTING_HOST,
        "DbdPort": str(layout.SLURMDBD_PORT),
        "SlurmUser": "slurm",
        "DebugLevel": "info",
        # Without it, sacctmgr records Bob as bob, and slurmctld never finds Bob's associations (slurmdbd.conf(5)).
        "Parameters": "PreserveCaseUser",
        "PidFile": f"{layout.SLURMDBD_DIR}/slurmdbd.pid",
        **({"TrackWCKey": "yes"} if wckeys else {}),
        **(communication or {}),
        "StorageType": "accounting_storage/mysql",
        "StorageHost": _host(accounting),
        "StoragePort": str(external.port if external else layout.DATABASE_PORT),
        "StorageLoc": external.database if external else layout.DATABASE_NAME,
        "StorageUser": external.user if external else layout.DATABASE_USER,
        "StoragePass": quoted_password(password),
        **({"StorageParameters": f"SSL_CA={layout.DATABASE_AUTHORITY}"} if external and external.authority else {}),
        **{
            f"Purge{_PURGES[kind]}After": age.replace(" ", "")
            for kind, age in accounting.purge.model_dump(exclude_none=True).items()
        },
    }
    return lines(HEADER, *_settings(settings))


def _host(accounting: AccountingSpec) -> str:
    database = accounting.database
    if database.external is not None:
        return str(database.external.host)
    return layout.DATABASE_HOST if accounting.own is not None else layout.OPERATOR_DATABASE_HOST


def client_conf(spec: ClusterSpec) -> str:
    """Return the slurm.conf of slurmdbd's pod, for sacctmgr in the same container."""
    return lines(
        HEADER,
        *_settings(
            {
                "ClusterName": spec.name,
                "SlurmctldHost": layout.CONTROLLER_HOST,
                "SlurmUser": "slurm",
                "AuthType": "auth/munge",
                "CredType": "cred/munge",
                "AccountingStorageType": "accounting_storage/slurmdbd",
                "AccountingStorageHost": layout.ACCOUNTING_HOST,
                "AccountingStoragePort": str(layout.SLURMDBD_PORT),
                **communication_lines(spec),
            }
        ),
    )


def _settings(settings: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]
