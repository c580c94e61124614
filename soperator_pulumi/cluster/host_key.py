"""An ssh host key made of 32 random bytes, the same bytes always giving the same files."""

import base64
import hashlib
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SEED_BYTES = 32
_ALGORITHM = b"ssh-ed25519"
_BLOCK_BYTES = 8  # of cipher "none", to which the private part is padded


@dataclass(frozen=True)
class HostKey:
    """An ed25519 key pair as OpenSSH writes it. `private_key` is secret; the other two are for everybody."""

    private_key: str
    """Content of `ssh_host_ed25519_key`."""

    public_key: str
    """`ssh-ed25519 AAAA...`, as in known_hosts after the host's name."""

    fingerprint: str
    """`SHA256:...`, as ssh shows it at the first login."""


def host_key(seed: bytes) -> HostKey:
    """Return the key pair whose private scalar is made from `seed` (32 bytes).

    The file is written here and not by `cryptography`, which puts random check bytes into it: the Secret
    would then differ on every run.
    """
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    blob = _string(_ALGORITHM) + _string(public)
    return HostKey(
        private_key=_private_file(seed, public, blob),
        public_key=f"{_ALGORITHM.decode()} {base64.b64encode(blob).decode()}",
        fingerprint=fingerprint(blob),
    )


def fingerprint(blob: bytes) -> str:
    """Return the SHA256 fingerprint of a public key's binary form."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _private_file(seed: bytes, public: bytes, blob: bytes) -> str:
    """Return the key in OpenSSH's own format (PROTOCOL.key in its sources), without a passphrase."""
    check = hashlib.sha256(public).digest()[:4]
    private = check + check + blob + _string(seed + public) + _string(b"")
    private += bytes(range(1, -len(private) % _BLOCK_BYTES + 1))
    content = b"openssh-key-v1\0" + _string(b"none") * 2 + _string(b"") + struct.pack(">I", 1)
    content += _string(blob) + _string(private)
    text = base64.b64encode(content).decode()
    lines = [text[start : start + 70] for start in range(0, len(text), 70)]
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""])


def _string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value
