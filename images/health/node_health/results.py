"""Results of checks, and the formatting of their numbers."""

from typing import NamedTuple


class CheckResult(NamedTuple):
    """Result of one check in one round."""

    passed: bool
    value: str
    """Compared value, with its place: `95 C on GPU 3`."""


def plain(number: float) -> str:
    """Return a number without unneeded digits: `7`, `0.5`, `12.3`."""
    return f"{number:.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def at_most(values: dict[str, float], limit: float, unit: str = "") -> CheckResult | None:
    """Return the result of the largest value; None if there is no value.

    Args:
        values: Values by their place, such as `GPU 3`. An empty place is the node.
        limit: Largest value allowed.
        unit: Unit of the values. Default: none.
    """
    if not values:
        return None
    place, worst = max(values.items(), key=lambda value: value[1])
    return CheckResult(worst <= limit, _shown(worst, unit, place))


def at_least(values: dict[str, float], limit: float, unit: str = "") -> CheckResult | None:
    """Return the result of the smallest value; None if there is no value."""
    if not values:
        return None
    place, worst = min(values.items(), key=lambda value: value[1])
    return CheckResult(worst >= limit, _shown(worst, unit, place))


def none_of(places: list[str], word: str) -> CheckResult:
    """Return a failed result that names the first places, or a passed one if there are none."""
    if not places:
        return CheckResult(passed=True, value="none")
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return CheckResult(passed=False, value=f"{word} {', '.join(places[:3])}{more}")


def _shown(value: float, unit: str, place: str) -> str:
    return f"{plain(value)}{' ' if unit and unit != '%' else ''}{unit}{f' on {place}' if place else ''}"
