"""Where the tools keep what they make: never in the source tree, never in /etc."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The source tree."""

_NAME = "soperator-pulumi"


def cache_dir() -> Path:
    """Return the folder of what can be made again: built binaries, unpacked packages, image layers.

    `$XDG_CACHE_HOME` or `~/.cache`, as the XDG base directory specification has it. Entries are named by
    version or content, so that checkouts can share it.
    """
    return _base("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Return the folder of what belongs to the running cluster: its disks, certificates, logs, engine state.

    `$XDG_STATE_HOME` or `~/.local/state`, as the XDG base directory specification has it.
    """
    return _base("XDG_STATE_HOME", ".local/state")


def _base(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / _NAME
