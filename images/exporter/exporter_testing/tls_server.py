"""A server with a certificate of its own, for one handshake."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(end: datetime, name: str = "rest") -> x509.Certificate:
    """Return a certificate that ends at a time, and begins a day before."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, KEY.public_key(), x509.random_serial_number())
    return builder.not_valid_before(end - timedelta(days=1)).not_valid_after(end).sign(KEY, SHA256())


@contextmanager
def served(made: x509.Certificate, folder: Path) -> Iterator[str]:
    """Serve TLS with a certificate for one connection, and yield the address."""
    file = folder / "tls.pem"
    key = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(key + made.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def answer() -> None:
            with server.accept()[0] as connection, context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)
