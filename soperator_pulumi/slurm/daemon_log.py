"""Errors in the log of a Slurm daemon: its own words, and a cure where the words name none that holds here."""

_CURES = {
    "CLUSTER ID MISMATCH": (
        "Leave the file as it is. The database has records of a cluster of this name under the id that it gives. If "
        "they are this cluster's, set accounting.cluster_id to that id; otherwise give this cluster another database."
    ),
}


def errors_in(log: str, daemon: str) -> list[str]:
    """Return the errors in a log, each once and with its further lines, then their cures.

    Args:
        log: Lines of one or several runs.
        daemon: Name of the program, with which it begins each message: a message's further lines have none.
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
