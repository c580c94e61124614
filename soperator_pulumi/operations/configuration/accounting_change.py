"""Effect of changed files on accounting's records, for a preview."""

import re
from collections.abc import Mapping

from soperator_pulumi.render.change_impact import parse_conf

_DATABASE = re.compile(r"(?m)^(?:StorageHost|StoragePort|StorageLoc)=.*$")
_RECORDS = "accounting_storage/slurmdbd"


def effect_of_another_database(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return what happens to the records if slurmdbd changes to another database; empty if it keeps its database."""
    before, after = (_DATABASE.findall(files.get("slurmdbd.conf", "")) for files in (old, new))
    if not before or sorted(before) == sorted(after):
        return ""
    return (
        "slurmdbd changes to another database. Kept: running and pending jobs, and the former database with all "
        "records, "
        "unless storage.keep is false. "
        "Lost to sacct: records of jobs that have ended, and the accounts and limits that administrators have set, "
        "until they are restored in the new one. If the new one has the cluster's jobs under another id, slurmctld "
        "ends with CLUSTER ID MISMATCH: confirm the id in its message with accounting.cluster_id, or give this cluster "
        "its own database."
    )


def effect_of_switch(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return what happens to the records if accounting is turned on or off; empty if neither happens."""
    before, after = (parse_conf(files.get("slurm.conf", "")).parameters for files in (old, new))
    was_on, is_on = (files.get("AccountingStorageType") == _RECORDS for files in (before, after))
    if was_on == is_on:
        return ""
    if not is_on:
        return (
            "accounting is turned off. Kept: running and pending jobs, and the database with all records, unless "
            "storage.keep is false. Lost: the records of jobs that end from now on, sacct, and limits of accounts."
        )
    enforced = (
        " Pending jobs have no account, and accounting.enforce would keep them waiting for ever: set it in a second "
        "`up`, after they have started."
    )
    return (
        "accounting is turned on. Kept: running and pending jobs, which get a record. Added: the accounts and users "
        "of the spec. Jobs that ended before have no record."
        f"{enforced if 'AccountingStorageEnforce' in after else ''}"
    )
