"""Values of panels as text: `12.3 GiB`, `85 %`, `2.5 h`."""

from soperator_pulumi.monitoring.panels import Unit

_LARGE = ("", "k", "M", "G", "T", "P")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"))


def in_words(value: float, unit: Unit) -> str:
    """Return a value with its unit and three digits."""
    if unit is Unit.RATIO:
        return f"{_digits(value * 100)} %"
    if unit is Unit.SECONDS:
        return _time(value)
    if unit is Unit.MICROSECONDS:
        return _time(value / 1e6)
    if unit in {Unit.BYTES, Unit.BYTES_PER_SECOND}:
        scaled, name = _scaled(value, 1024, _BINARY)
        return f"{_digits(scaled)} {name}{'/s' if unit is Unit.BYTES_PER_SECOND else ''}"
    scaled, name = _scaled(value, 1000, _LARGE)
    after = {Unit.CELSIUS: "°C", Unit.WATT: "W", Unit.PER_SECOND: "/s"}.get(unit, "")
    return f"{_digits(scaled)} {name}{after}".strip()


def _scaled(value: float, base: int, names: tuple[str, ...]) -> tuple[float, str]:
    for name in names[:-1]:
        if abs(value) < base:
            return value, name
        value /= base
    return value, names[-1]


def _time(seconds: float) -> str:
    if not seconds:
        return "0 s"
    size, name = next((time_ for time_ in _TIMES if abs(seconds) >= time_[0]), _TIMES[-1])
    return f"{_digits(seconds / size)} {name}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
