"""End of the certificate that the REST API serves.

It is read from a handshake and not from its Secret: haproxy keeps the certificate that it started with, so a renewed
Secret alone doesn't help. The certificate isn't verified, as its end is wanted even if it is over.
"""

import socket
import ssl
from datetime import UTC, datetime

from slurm_exporter.samples import Samples

METRIC = "slurm_rest_certificate_end_time_seconds"

_SECONDS = 10
"""Time for the connection and the handshake."""

_LONG_FORM = 0x80
_EXPLICIT_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18
_FORMS = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
_CENTURY_PIVOT = 2050
"""Years of two digits are before it (RFC 5280, 4.1.2.5.1)."""


def read(address: str) -> Samples:
    """Return the time since 1970 at which the certificate of a server ends.

    Args:
        address: `HOST:PORT`.

    Raises:
        OSError: The server does not answer, or not with TLS.
        ValueError: Its certificate has another form.
    """
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), timeout=_SECONDS) as connection,
        context.wrap_socket(connection) as secured,
    ):
        certificate = secured.getpeercert(binary_form=True)
    return {METRIC: [((), end_of(certificate or b"").timestamp())]}


def end_of(certificate: bytes) -> datetime:
    """Return the time at which a certificate in DER ends (`notAfter`; RFC 5280, 4.1).

    Raises:
        ValueError: The bytes are not a certificate.
    """
    try:
        _, start, _ = _element(certificate, 0)
        _, at, _ = _element(certificate, start)
        tag, _, following = _element(certificate, at)
        skipped = 4 if tag == _EXPLICIT_VERSION else 3  # version, serial number, signature, issuer
        for _ in range(skipped - 1):
            _, _, following = _element(certificate, following)
        _, before, _ = _element(certificate, following)
        _, _, after = _element(certificate, before)
        tag, begin, end = _element(certificate, after)
        found = datetime.strptime(certificate[begin:end].decode("ascii"), _FORMS[tag]).replace(tzinfo=UTC)
    except (IndexError, KeyError) as error:
        raise ValueError(f"no certificate: {error}") from None
    if tag == _UTC_TIME and found.year >= _CENTURY_PIVOT:
        return found.replace(year=found.year - 100)
    return found


def _element(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of an element, the start of its content, and the end."""
    length, start = data[at + 1], at + 2
    if length & _LONG_FORM:
        size = length & ~_LONG_FORM
        length, start = int.from_bytes(data[start : start + size], "big"), start + size
    return data[at], start, start + length
