"""Settings of MariaDB for slurmdbd, derived from the memory that it may use.

Figures are those of Slurm's accounting guide (doc/html/accounting.shtml), and of slurmdbd's own check at its start
(`_set_mysql_engine` and the like in src/plugins/accounting_storage/mysql).
"""

from soperator_pulumi.spec.accounting import OwnDatabaseSpec
from soperator_pulumi.spec.types.quantity import whole_mib

_SMALLEST_POOL_MIB, _SMALLEST_LOG_MIB = 64, 32
_UNLIMITED = "4Gi"
"""Assumed memory of a pod without a limit."""


def mariadb_settings(memory: str | None) -> dict[str, str]:
    """Return the settings by name in my.cnf, for a container with this memory limit."""
    pool = max(_SMALLEST_POOL_MIB, whole_mib(memory or _UNLIMITED) // 2)
    return {
        # The pool is at most half of the memory: connections, sorts and the log take the rest.
        "innodb_buffer_pool_size": f"{pool}M",
        "innodb_log_file_size": f"{max(_SMALLEST_LOG_MIB, pool // 4)}M",
        # Otherwise each connection of slurmdbd waits 5 s for the name of its address: the pod may ask no name server.
        "skip_name_resolve": "ON",
        # A roll-up of usage or a purge locks rows for minutes.
        "innodb_lock_wait_timeout": "900",
        # Scripts and environments of jobs travel in one packet.
        "max_allowed_packet": "64M",
        # On by default since 11.6.2: slurmdbd ends at the first conflict of two writers.
        "innodb_snapshot_isolation": "OFF",
        "innodb_default_row_format": "DYNAMIC",
        "character_set_server": "utf8mb4",
        # slurmdbd compares names without regard to case.
        "collation_server": "utf8mb4_unicode_ci",
    }


def my_cnf(memory: str | None) -> str:
    """Return the settings as a my.cnf."""
    return "".join(f"{line}\n" for line in ["[mariadb]", *(f"{k}={v}" for k, v in mariadb_settings(memory).items())])


def mariadb_arguments(database: OwnDatabaseSpec) -> list[str]:
    """Return the settings as arguments of mariadbd."""
    settings = mariadb_settings(database.pod_resources.limits.memory)
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
