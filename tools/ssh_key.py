"""The key pair with which `make ssh` logs in: made once for this machine's user, kept outside the tree."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from tools import paths


def folder() -> Path:
    """Return the folder of the key pair, the known hosts and the OpenSSH configuration."""
    return paths.state_dir() / "ssh"


def private_key_file() -> Path:
    """Return the private key's file (mode 0600). The key is made when it is not there yet."""
    file = folder() / "id_ed25519"
    if not file.exists():
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        key = Ed25519PrivateKey.generate()
        whole = file.with_suffix(".new")
        whole.touch(mode=0o600)
        whole.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        whole.replace(file)
    return file


def public_key() -> str:
    """Return the public key as one line of authorized_keys (sshd(8))."""
    key = load_ssh_private_key(private_key_file().read_bytes(), password=None)
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f"{line} make-ssh"
