"""The cluster's keys: generated, or taken from Secrets of the user."""

import base64
import hashlib
import struct
from dataclasses import dataclass

import pulumi
import pulumi_random as random
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pulumi_kubernetes.core.v1 import Secret

from soperator_pulumi.cluster.mounts import SecretFile
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import Prerequisites
from soperator_pulumi.render import layout
from soperator_pulumi.spec.rest import RestSpec
from soperator_pulumi.spec.secrets import SecretsSpec

SEED_BYTES = 32
_ALGORITHM = b"ssh-ed25519"
_BLOCK_BYTES = 8  # of cipher "none", to which the private part is padded


@dataclass(frozen=True)
class HostKey:
    """An ed25519 key pair in OpenSSH's formats. Only `private_key` is secret."""

    private_key: str
    """Content of `ssh_host_ed25519_key`."""

    public_key: str
    """`ssh-ed25519 AAAA...`, as in known_hosts after the host's name."""

    fingerprint: str
    """`SHA256:...`, as ssh shows it at the first login."""


def host_key(seed: bytes) -> HostKey:
    """Return the key pair of a seed of 32 bytes: the same bytes always give the same files.

    `cryptography` would write random check bytes into the private file, so the Secret would change in every run.
    """
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    blob = _string(_ALGORITHM) + _string(public)
    return HostKey(
        private_key=_private_file(seed, public, blob),
        public_key=f"{_ALGORITHM.decode()} {base64.b64encode(blob).decode()}",
        fingerprint=fingerprint(blob),
    )


def fingerprint(blob: bytes) -> str:
    """Return the SHA256 fingerprint of a public key in binary form."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _private_file(seed: bytes, public: bytes, blob: bytes) -> str:
    """Return the key in OpenSSH's format (PROTOCOL.key in its sources), without a passphrase."""
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


MUNGE_KEY_BYTES = 128  # the default of mungekey(8)
JWT_KEY_BYTES = 32  # of HS256, RFC 7518 section 3.2


@dataclass(frozen=True)
class Keys:
    """Keys of a cluster: the places of their files, and the public half of the host key."""

    munge: SecretFile
    jwt: SecretFile | None
    """Key that signs tokens. None without the REST API."""
    ssh_host: SecretFile
    ssh_host_public_key: pulumi.Output[str]
    ssh_host_fingerprint: pulumi.Output[str]
    created: tuple[Secret, ...]
    """Secrets with generated keys. Empty where the spec names Secrets for both."""


def create_keys(
    name: str, scope: Scope, secrets: SecretsSpec, prerequisites: Prerequisites, rest: RestSpec | None
) -> Keys:
    """Create the keys for which the spec names no Secret. Their values are secret in Pulumi's state."""
    created = []
    munge = secrets.munge_key
    if munge is None:
        created.append(_munge_key(name, scope))
    jwt: SecretFile | None = None
    if rest is not None and secrets.jwt_key is not None:
        jwt = SecretFile(secrets.jwt_key.secret, secrets.jwt_key.key)
    elif rest is not None:
        jwt = SecretFile("jwt-key", layout.JWT_KEY)
        created.append(_jwt_key(name, scope, rest))
    ssh_host = secrets.ssh_host_key
    if ssh_host is None:
        seed = random.RandomBytes(f"{name}-ssh-host-key", length=SEED_BYTES, opts=scope.options())
        pair = seed.base64.apply(pulumi.Output.secret).apply(_host_key)
        created.append(_secret(name, scope, "ssh-host-key", {"ssh_host_ed25519_key": pair.apply(_private)}))
        # The public half of a generated key is no secret, though computed from one.
        public_key = pulumi.Output.unsecret(pair.apply(_public))
        fingerprint = pulumi.Output.unsecret(pair.apply(_fingerprint))
    else:
        public_key = prerequisites.ssh_host_public_key
        fingerprint = prerequisites.ssh_host_fingerprint
    return Keys(
        munge=SecretFile("munge-key", "munge.key") if munge is None else SecretFile(munge.secret, munge.key),
        jwt=jwt,
        ssh_host=SecretFile("ssh-host-key", "ssh_host_ed25519_key")
        if ssh_host is None
        else SecretFile(ssh_host.secret, ssh_host.key),
        ssh_host_public_key=public_key,
        ssh_host_fingerprint=fingerprint,
        created=tuple(created),
    )


def _munge_key(name: str, scope: Scope) -> Secret:
    key = random.RandomBytes(f"{name}-munge-key", length=MUNGE_KEY_BYTES, opts=scope.options())
    return _secret(name, scope, "munge-key", {"munge.key": key.base64.apply(pulumi.Output.secret)})


def _jwt_key(name: str, scope: Scope, rest: RestSpec) -> Secret:
    key = random.RandomBytes(
        f"{name}-jwt-key", length=JWT_KEY_BYTES, keepers={"version": str(rest.key_version)}, opts=scope.options()
    )
    return _secret(name, scope, "jwt-key", {layout.JWT_KEY: key.base64.apply(pulumi.Output.secret)})


def _secret(name: str, scope: Scope, secret: str, data: dict[str, pulumi.Output[str]]) -> Secret:
    return Secret(f"{name}-{secret}-secret", metadata=scope.metadata(secret), data=data, opts=scope.options())


def _host_key(seed: str) -> HostKey:
    return host_key(base64.b64decode(seed))


def _private(pair: HostKey) -> str:
    return base64.b64encode(pair.private_key.encode()).decode()


def _public(pair: HostKey) -> str:
    return pair.public_key


def _fingerprint(pair: HostKey) -> str:
    return pair.fingerprint
