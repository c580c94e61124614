"""Host keys from random bytes."""

import hashlib
from base64 import b64decode, b64encode

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.cluster.secrets import host_key

SEEDS = st.binary(min_size=32, max_size=32)


@given(SEEDS)
def test_any_seed_gives_a_private_key_that_openssh_readers_take(seed: bytes) -> None:
    key = load_ssh_private_key(host_key(seed).private_key.encode(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    assert key.private_bytes_raw() == seed


@given(SEEDS)
def test_the_public_key_belongs_to_the_private_one(seed: bytes) -> None:
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    assert host_key(seed).public_key == public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@given(SEEDS)
def test_the_same_seed_always_gives_the_same_files(seed: bytes) -> None:
    assert host_key(seed) == host_key(seed)


def test_the_fingerprint_is_the_one_that_ssh_shows() -> None:
    key = host_key(bytes(32))
    digest = hashlib.sha256(b64decode(key.public_key.split()[1])).digest()
    assert key.fingerprint == "SHA256:" + b64encode(digest).decode().rstrip("=")
