"""Table of docs/long-checks.md with all long checks, generated from their defaults."""

from soperator_pulumi.spec.long_checks import LONG_DEFAULTS, NCCL_LIMITS, LongCheck, LongDefaults
from soperator_pulumi.spec.validation.descriptions import member_descriptions
from tools import paths
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "long-checks.md"

_HEADS = ("check", "measures", "nodes of a job", "at least", "on", "source")


def text() -> str:
    """Return the page with its table updated from the defaults."""
    subjects = member_descriptions(LongCheck)
    checks = (_row(name, subjects[name.name], long_default) for name, long_default in LONG_DEFAULTS.items())
    return with_tables(FILE, {"long checks": table(_HEADS, checks), "nccl limits": _nccl_limits()})


def _nccl_limits() -> str:
    """Return the limits of boards by model, and the statement that others have none."""
    rows = [(model, f"{limit.nvls:g}", f"{limit.plain:g}", limit.source) for model, limit in NCCL_LIMITS.items()]
    others = ("any other", "no limit known", "no limit known", "none is published")
    return table(("board of eight", "with NVLS, GB/s", "without, GB/s", "source"), [*rows, others])


def _row(name: LongCheck, subject: str, check: LongDefaults) -> tuple[str, ...]:
    size = f"{check.size} (`group`)" if check.size > 2 else str(check.size)
    return f"`{name}`", subject, size, _limit(check), check.needs, check.source


def _limit(check: LongDefaults) -> str:
    if check.by_gpu:
        return "by model"
    own = [] if check.limit is None else [f"{check.limit:g} {check.unit}"]
    return own[0] if own else "no limit known: yours" if check.unit else "all tests pass"
