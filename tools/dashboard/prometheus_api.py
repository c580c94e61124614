"""Queries to a Prometheus server, at an address or through a Kubernetes API server."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from tools.console import UserError

TOKEN_VARIABLE = "PROMETHEUS_TOKEN"  # noqa: S105 - a variable's name

_SECONDS = 30


@dataclass(frozen=True)
class Series:
    """A series in an answer."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]] = field(default=())
    """Times (seconds since 1970) and values, without values that are not numbers."""

    @property
    def last(self) -> float | None:
        """The latest value."""
        return self.points[-1][1] if self.points else None

    @property
    def largest(self) -> float:
        """The largest value; 0 if there is none."""
        return max((value for _, value in self.points), default=0)


@dataclass(frozen=True)
class Span:
    """Time span that the page shows."""

    start: float
    end: float
    step: float

    @property
    def times(self) -> list[float]:
        """Times of the samples in an answer."""
        return [self.start + self.step * index for index in range(int((self.end - self.start) / self.step) + 1)]


class PrometheusApi:
    """The HTTP API of a Prometheus server."""

    def __init__(self, get: Callable[[str], str], place: str) -> None:
        """Store the function that reads a path of the server.

        Args:
            get: Function from a path with its query (`/api/v1/query?...`) to the answer.
            place: Place of the server, for errors.
        """
        self._get = get
        self.place = place

    def now(self, query: str, at: float) -> list[Series]:
        """Return the series of a query at one time."""
        found = self._ask("query", query=query, time=f"{at:.3f}")
        return [Series(entry["metric"], _numbers([entry["value"]])) for entry in found]

    def over_time(self, query: str, span: Span) -> list[Series]:
        """Return the series of a query over a span of time."""
        times = {"start": f"{span.start:.3f}", "end": f"{span.end:.3f}", "step": f"{span.step:g}"}
        found = self._ask("query_range", query=query, **times)
        return [Series(entry["metric"], _numbers(entry["values"])) for entry in found]

    def _ask(self, path: str, **query: str) -> list[dict[str, Any]]:
        text = self._get(f"/api/v1/{path}?{urlencode(query)}")
        try:
            answer = json.loads(text)
            if answer["status"] != "success":
                raise UserError(f"Prometheus at {self.place} refuses the query {query['query']}: {answer['error']}")
            return list(answer["data"]["result"])
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"{self.place} does not answer like Prometheus: got {text[:80]!r}. "
                "Give the address above /api/v1, such as http://localhost:9090."
            ) from error


def at_address(address: str) -> PrometheusApi:
    """Return the server at an HTTP address. `PROMETHEUS_TOKEN` in the environment is sent as a bearer token."""
    if not _is_http(address):
        raise UserError(f'PROMETHEUS="{address}" is not an address. Give one such as http://localhost:9090.')
    token = os.environ.get(TOKEN_VARIABLE)
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(path: str) -> str:
        try:
            with urlopen(Request(address.rstrip("/") + path, headers=headers), timeout=_SECONDS) as answer:  # noqa: S310 - HTTP, see above
                return str(answer.read().decode(errors="replace"))
        except HTTPError as error:
            with error:
                body = error.read().decode(errors="replace")
            if body.startswith("{"):  # a query that it refuses
                return body
            needs_token = error.code in {401, 403}
            cure = f"Set {TOKEN_VARIABLE} to a token that it takes." if needs_token else "Correct PROMETHEUS."
            raise UserError(f"Prometheus at {address} answers with status {error.code}. {cure}") from error
        except (OSError, HTTPException) as error:
            why = str(error).strip() or type(error).__name__
            raise UserError(f"Prometheus at {address} does not answer: {why}. Correct PROMETHEUS.") from error

    return PrometheusApi(get, address)


def _is_http(address: str) -> bool:
    try:
        return urlsplit(address).scheme in {"http", "https"}
    except ValueError:  # brackets without an address of IPv6
        return False


def _numbers(points: Sequence[Sequence[Any]]) -> list[tuple[float, float]]:
    found = [(float(time), float(value)) for time, value in points]
    return [(time, value) for time, value in found if math.isfinite(value)]
