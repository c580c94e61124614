"""Errors of GPUs (Xid) that an alert is for: made by `make docs` of images/health/node_health/xids.py."""

DRAINING_XIDS = (
    46,
    48,
    54,
    62,
    64,
    74,
    79,
    95,
    109,
    110,
    119,
    120,
    136,
    140,
    143,
    151,
    155,
    156,
    158,
    167,
    168,
    169,
)
"""Errors after which a GPU needs a reset, a reboot or a replacement, whatever the rest of their lines."""
