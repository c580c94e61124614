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
from soperator_pulumi.lifecycle import KeyKind, KeysInUse, Prerequisites, key_fingerprint
from soperator_pulumi.render import layout
from soperator_pulumi.spec.rest import RestSpec
from soperator_pulumi.spec.secrets import SecretsSpec

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


_REPLACEABLE = pulumi.ResourceOptions(protect=False)
"""Options that permit a new key to replace the old one if the component is protected."""

_MUNGE_KEY_CHARACTERS = 128  # 762 random bits; munged takes 32 to 1024 bytes, mungekey(8) makes 128
_SEED_CHARACTERS = 64  # 381 random bits, of which 256 become the seed
_JWT_KEY_CHARACTERS = 64  # HS256 needs 32 bytes at least, RFC 7518 section 3.2


@dataclass(frozen=True)
class Keys:
    """Keys of a cluster: the places of their files, and the public half of the host key."""

    munge: SecretFile
    jwt: SecretFile | None
    """Key that signs tokens; None without the REST API."""
    ssh_host: SecretFile
    ssh_host_public_key: pulumi.Output[str]
    ssh_host_fingerprint: pulumi.Output[str]
    created: tuple[Secret, ...]
    """Secrets with generated keys; empty if the spec names Secrets for all keys."""
    in_use: KeysInUse
    """Rotation of keys in the pods of a live cluster."""


def create_keys(
    name: str, scope: Scope, secrets: SecretsSpec, prerequisites: Prerequisites, rest: RestSpec | None
) -> Keys:
    """Create the keys for which the spec names no Secret. Their values are secret in Pulumi's state."""
    munge = _munge_key(name, scope, secrets)
    ssh_host = _ssh_host_key(name, scope, secrets, prerequisites)
    jwt = None if rest is None else _jwt_key(name, scope, secrets, rest)
    # Pods that read the user's own key for tokens are replaced for another `rest.key_version` alone.
    keys = [munge, ssh_host.key, *([jwt] if jwt is not None and jwt.created is not None else [])]
    created = tuple(key.created for key in keys if key.created is not None)
    return Keys(
        munge=munge.file,
        jwt=None if jwt is None else jwt.file,
        ssh_host=ssh_host.key.file,
        ssh_host_public_key=ssh_host.public_key,
        ssh_host_fingerprint=ssh_host.fingerprint,
        created=created,
        in_use=KeysInUse(
            f"{name}-keys-in-use",
            cluster=scope.connection(),
            keys=[key.in_use() for key in keys],
            opts=scope.behind(*created).options(),
        ),
    )


@dataclass(frozen=True)
class _Key:
    """A key of the cluster, generated or the user's own."""

    kind: KeyKind
    file: SecretFile
    created: Secret | None = None
    fingerprint: pulumi.Output[str] | None = None
    """None for a key that the user provides."""

    def in_use(self) -> dict[str, pulumi.Input[str] | None]:
        """Return the fields of `KeyInUse`."""
        return {
            "kind": self.kind.value,
            "secret": self.file.secret,
            "key": self.file.key,
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True)
class _SshHostKey:
    key: _Key
    public_key: pulumi.Output[str]
    fingerprint: pulumi.Output[str]


def _munge_key(name: str, scope: Scope, secrets: SecretsSpec) -> _Key:
    if (own := secrets.munge_key) is not None:
        return _Key(KeyKind.MUNGE, SecretFile(own.secret, own.key))
    text = _random_text(f"{name}-munge-key", scope, _MUNGE_KEY_CHARACTERS, secrets.munge_key_version)
    secret = _secret(name, scope, "munge-key", {"munge.key": text.apply(_encoded)})
    return _Key(KeyKind.MUNGE, SecretFile("munge-key", "munge.key"), secret, _fingerprint_of(text))


def _ssh_host_key(name: str, scope: Scope, secrets: SecretsSpec, prerequisites: Prerequisites) -> _SshHostKey:
    if (own := secrets.ssh_host_key) is not None:
        key = _Key(KeyKind.SSH_HOST, SecretFile(own.secret, own.key))
        return _SshHostKey(key, prerequisites.ssh_host_public_key, prerequisites.ssh_host_fingerprint)
    text = _random_text(f"{name}-ssh-host-key", scope, _SEED_CHARACTERS, secrets.ssh_host_key_version)
    pair = text.apply(lambda text: host_key(hashlib.sha256(text.encode()).digest()))
    private_key = pair.apply(lambda pair: pair.private_key)
    secret = _secret(name, scope, "ssh-host-key", {"ssh_host_ed25519_key": private_key.apply(_encoded)})
    file = SecretFile("ssh-host-key", "ssh_host_ed25519_key")
    return _SshHostKey(
        _Key(KeyKind.SSH_HOST, file, secret, _fingerprint_of(private_key)),
        # The public half of a generated key is no secret, though computed from one.
        pulumi.Output.unsecret(pair.apply(lambda pair: pair.public_key)),
        pulumi.Output.unsecret(pair.apply(lambda pair: pair.fingerprint)),
    )


def _jwt_key(name: str, scope: Scope, secrets: SecretsSpec, rest: RestSpec) -> _Key:
    if (own := secrets.jwt_key) is not None:
        return _Key(KeyKind.JWT, SecretFile(own.secret, own.key))
    text = _random_text(f"{name}-jwt-key", scope, _JWT_KEY_CHARACTERS, rest.key_version)
    secret = _secret(name, scope, "jwt-key", {layout.JWT_KEY: text.apply(_encoded)})
    return _Key(KeyKind.JWT, SecretFile("jwt-key", layout.JWT_KEY), secret, _fingerprint_of(text))


def _random_text(name: str, scope: Scope, characters: int, version: int) -> pulumi.Output[str]:
    """Return random letters and digits as a secret. Another version gives others.

    RandomBytes would be the type for keys, but its id is the bytes themselves, and Pulumi encrypts no ids. The id of
    RandomPassword is `none`.
    """
    password = random.RandomPassword(
        name, length=characters, special=False, keepers={"version": str(version)}, opts=scope.options(_REPLACEABLE)
    )
    return password.result.apply(pulumi.Output.secret)


def _fingerprint_of(text: pulumi.Output[str]) -> pulumi.Output[str]:
    """Return the fingerprint of a key, which is no secret: it is short, and the key is random."""
    return pulumi.Output.unsecret(text.apply(lambda text: key_fingerprint(text.encode())))


def _secret(name: str, scope: Scope, secret: str, data: dict[str, pulumi.Output[str]]) -> Secret:
    return Secret(
        f"{name}-{secret}-secret", metadata=scope.metadata(secret), data=data, opts=scope.options(_REPLACEABLE)
    )


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
