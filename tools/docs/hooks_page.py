"""Table of docs/job-hooks.md with all built-in hooks, generated from their defaults."""

import re

from soperator_pulumi.spec.job_hooks import DEFAULTS, HookDefaults, JobHook
from soperator_pulumi.spec.types.duration import duration_text
from tools import paths

FILE = paths.ROOT / "docs" / "job-hooks.md"

_TABLE = re.compile(r"(?s)(<!-- hooks: written by `make docs` -->\n).*?(<!-- end -->)")

_HEAD = "| hook | moment | act | on | time | a failure |\n|---|---|---|---|---|---|\n"


def text() -> str:
    """Return the page with its table updated from the defaults."""
    table = _HEAD + "".join(_row(name, default) for name, default in DEFAULTS.items())
    return _TABLE.sub(lambda found: f"{found[1]}\n{table}\n{found[2]}", FILE.read_text())


def _row(name: JobHook, hook: HookDefaults) -> str:
    where = "jobs with whole NVIDIA GPUs" if hook.of_gpus else "all jobs"
    place = where if hook.on else "off"
    return f"| `{name}` | {hook.moment} | {hook.what} | {place} | {duration_text(hook.timeout)} | `{hook.action}` |\n"
