"""Settings of a node's hooks, as the cluster's configuration has them (`soperator_pulumi/render/job_hooks.py`)."""

import json
from typing import NamedTuple

FORMAT = 1


class HookSettings(NamedTuple):
    """Settings of one hook."""

    name: str
    action: str
    """`log`, `drain` or `requeue`."""
    seconds: float
    """Time until it counts as failed."""
    command: tuple[str, ...]
    """Command of the site's own script; empty for a built-in hook."""


class MomentSettings(NamedTuple):
    """Settings of one moment, prolog or epilog."""

    hooks: tuple[HookSettings, ...]
    """Hooks in their order."""
    whole_gpus: frozenset[str]
    """Node sets with whole NVIDIA GPUs only: no MIG instances and no shards."""


def parse(text: str, moment: str) -> MomentSettings:
    """Return the settings of a moment, `prolog` or `epilog`.

    Raises:
        ValueError: The text is not JSON, or the settings have the format of another version.
    """
    given = json.loads(text)
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(
            f"the settings do not have format {FORMAT}: the image has another version than the program that wrote them"
        )
    try:
        hooks = tuple(
            HookSettings(item["name"], item["action"], item["seconds"], tuple(item["command"]))
            for item in given[moment]
        )
        return MomentSettings(hooks, frozenset(given["whole_gpus"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"key missing or of another type: {error}") from error
