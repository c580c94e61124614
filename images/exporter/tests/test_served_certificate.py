"""The end of a certificate, from a handshake with a server that has it."""

import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from exporter_testing.tls_server import certificate, served
from slurm_exporter.background_reading import BackgroundReading
from slurm_exporter.collection import Collector
from slurm_exporter.served_certificate import METRIC, end_of, read


@pytest.mark.parametrize("end", [datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)])
def test_the_end_of_a_served_certificate_is_a_metric_even_if_it_is_over(end: datetime, tmp_path: Path) -> None:
    with served(certificate(end), tmp_path) as address:
        reading = BackgroundReading("REST certificate", lambda: read(address), print)
        reading.take()
    (family,) = [family for family in Collector(certificate=reading).collect() if family.name == METRIC]
    assert [sample.value for sample in family.samples] == [end.timestamp()]


@pytest.mark.parametrize("year", [1999, 2049, 2050, 2200])
@pytest.mark.parametrize("name", ["rest", "a-name-of-" + 50 * "x"])
def test_ends_before_and_after_2050_are_read(year: int, name: str) -> None:
    end = datetime(year, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert end_of(certificate(end, name).public_bytes(Encoding.DER)) == end


@pytest.mark.parametrize("length", [0, 1, 40, 90])
def test_what_is_no_certificate_is_refused(length: int) -> None:
    whole = certificate(datetime(2030, 1, 1, tzinfo=UTC)).public_bytes(Encoding.DER)
    with pytest.raises(ValueError):  # noqa: PT011 - strptime has words of its own
        end_of(whole[:length])


def test_a_server_that_is_gone_keeps_the_last_end_and_is_reported_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said: list[str] = []
    reading = BackgroundReading("REST certificate", lambda: read(f"127.0.0.1:{port}"), said.append)
    reading.samples = {METRIC: [((), 7.0)]}
    reading.take()
    reading.take()
    assert reading.samples == {METRIC: [((), 7.0)]}
    assert len(said) == 1
