"""Table of docs/job-hooks.md with all built-in hooks, generated from their defaults."""

from soperator_pulumi.spec.job_hooks import DEFAULTS, HookDefaults, JobHook
from soperator_pulumi.spec.types.duration import duration_text
from tools import paths
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "job-hooks.md"

_HEADS = ("hook", "moment", "act", "on", "time", "a failure")


def text() -> str:
    """Return the page with its table updated from the defaults."""
    return with_tables(FILE, {"hooks": table(_HEADS, (_row(*hook) for hook in DEFAULTS.items()))})


def _row(name: JobHook, hook: HookDefaults) -> tuple[str, ...]:
    where = "jobs with whole NVIDIA GPUs" if hook.of_gpus else "all jobs"
    place = where if hook.on else "off"
    return f"`{name}`", hook.moment, hook.what, place, duration_text(hook.timeout), f"`{hook.action}`"
