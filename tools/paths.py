"""Folders of the tools' output, never in the source tree or in /etc."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Folder of the source tree."""

_NAME = "soperator-pulumi"


def cache_dir() -> Path:
    """Return the folder of reproducible files: built binaries, unpacked packages, image layers.

    Below `$XDG_CACHE_HOME` or `~/.cache` (XDG base directory specification). Entries are named by version or
    content, so that checkouts can share the folder.
    """
    return _base("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Return the folder of the running cluster: disks, certificates, logs, engine state.

    Below `$XDG_STATE_HOME` or `~/.local/state` (XDG base directory specification).
    """
    return _base("XDG_STATE_HOME", ".local/state")


def _base(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / default) / _NAME
