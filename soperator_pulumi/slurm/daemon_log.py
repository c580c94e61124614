"""Errors in the log of a Slurm daemon: its own words, and a cure if the words suggest none that helps here."""

_CURES = {
    "CLUSTER ID MISMATCH": (
        "Leave the file as it is. The database has records of a cluster of this name under the id that it gives. If "
        "they are this cluster's, set accounting.cluster_id to that id; otherwise give this cluster another database."
    ),
}


def errors_in(log: str, daemon: str) -> list[str]:
    """Return the errors in a log, without repetitions and with their continuation lines, then their cures.

    Args:
        log: Lines of one or more runs.
        daemon: Name of the program, which starts every message: continuation lines do not have it.
    """
    found: list[str] = []
    within = False
    for line in log.splitlines():
        begins = line.startswith(f"{daemon}:")
        is_error = "error:" in line or "fatal:" in line
        within = is_error or (within and not begins)
        if within:
            found.append(line)
    return [*dict.fromkeys(found), *(cure for words, cure in _CURES.items() if words in log)]
