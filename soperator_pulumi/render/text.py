"""How rendered files begin and end."""

HEADER = "# Rendered by soperator-pulumi from the cluster's spec: a change by hand is undone by the next deployment."
"""First line of every rendered file that has comments. It has no time: the same spec gives the same file."""


def lines(*each: str) -> str:
    """Return a file of these lines."""
    return "\n".join(each) + "\n"
