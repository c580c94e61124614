"""Nodes, jobs and times as text for messages about a drain."""

from datetime import UTC, datetime, tzinfo

from soperator_pulumi.slurm.models import Job, Reservation

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span(seconds: float) -> str:
    """Return a duration in its two largest units: `7 d`, `1 h 12 min`, `0 s`."""
    left = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, name))
    return " ".join(f"{count} {name}" for count, name in parts[:2] if count) or "0 s"


def moment(at: float, now: float, zone: tzinfo | None) -> str:
    """Return a time of day, with its date if it is not today."""
    then, today = (datetime.fromtimestamp(seconds, UTC).astimezone(zone) for seconds in (at, now))
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def named(job: Job) -> str:
    """Return a job with its user and its name."""
    details = ", ".join(part for part in (job.user, job.name) if part)
    return f"job {job.reference} ({details})" if details else f"job {job.reference}"


def ending(job: Job, now: float, zone: tzinfo | None) -> str:
    """Return when a job ends, according to its time limit."""
    if "COMPLETING" in job.state:
        return "completing"
    if "SUSPENDED" in job.state:
        return "suspended"  # its time stands still
    return "no time limit" if job.ends_at is None else f"ends by {moment(job.ends_at, now, zone)}"


def lasting(reservation: Reservation, now: float, zone: tzinfo | None) -> str:
    """Return a reservation with its times."""
    begins = f" from {moment(reservation.starts_at, now, zone)}" if reservation.starts_at > now else ""
    return f"reservation {reservation.name}{begins} until {moment(reservation.ends_at, now, zone)}"
