"""A server in place of Kubernetes, with a certificate of its own."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from slurm_exporter.kubernetes_api import KubernetesApi


def self_signed() -> tuple[str, str]:
    """Return a certificate of 127.0.0.1 and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.public_bytes(Encoding.PEM).decode(), secret.decode()


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], folder: Path) -> Iterator[tuple[int, str]]:
    """Serve by TLS; yield the port and the certificate."""
    certificate, key = self_signed()
    (folder / "server.pem").write_text(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port, certificate
        finally:
            server.shutdown()
            thread.join()


def of_account(folder: Path, port: int, authority: str) -> KubernetesApi:
    """Return the API client of a pod in the namespace hpc, with the files of its service account in a folder."""
    for name, content in {"namespace": "hpc", "token": "first\n", "ca.crt": authority}.items():
        (folder / name).write_text(content)
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    return KubernetesApi(folder, address)
