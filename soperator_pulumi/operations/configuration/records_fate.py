"""Fate of accounting's records at a change of the files, for a preview."""

import re
from collections.abc import Mapping

from soperator_pulumi.render.change_impact import parse_conf

_DATABASE = re.compile(r"(?m)^(?:StorageHost|StoragePort|StorageLoc)=.*$")
_RECORDS = "accounting_storage/slurmdbd"


def fate_at_another_database(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return the fate of the records where slurmdbd is to use another database; empty where it stays with its own."""
    before, after = (_DATABASE.findall(files.get("slurmdbd.conf", "")) for files in (old, new))
    if not before or sorted(before) == sorted(after):
        return ""
    return (
        "slurmdbd gets another database. Kept: running and pending jobs, and the former database with all records, "
        "unless storage.keep is false. "
        "Lost to sacct: records of jobs that have ended, and the accounts and limits that administrators have set, "
        "until they are restored in the new one. If the new one has jobs of the cluster under another id, slurmctld "
        "ends with CLUSTER ID MISMATCH: confirm the id that it names with accounting.cluster_id, or give this cluster "
        "a database of its own."
    )


def fate_at_a_switch(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return the fate of the records where accounting is switched on or off; empty where it stays as it is."""
    before, after = (parse_conf(files.get("slurm.conf", "")).parameters for files in (old, new))
    was_on, is_on = (each.get("AccountingStorageType") == _RECORDS for each in (before, after))
    if was_on == is_on:
        return ""
    if not is_on:
        return (
            "accounting is switched off. Kept: running and pending jobs, and the database with all records, unless "
            "storage.keep is false. Lost: the records of jobs that end from now on, sacct, and limits of accounts."
        )
    enforced = (
        " Jobs that are pending now have no account, and accounting.enforce has them wait for ever: set it in a second "
        "`up`, when they have started."
    )
    return (
        "accounting is switched on. Kept: running and pending jobs, which get a record. Added: the accounts and users "
        "of the spec. Jobs that ended before have no record."
        f"{enforced if 'AccountingStorageEnforce' in after else ''}"
    )
