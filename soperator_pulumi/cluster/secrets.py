"""The cluster's keys: generated, or taken from Secrets that the user has made."""

import base64
from dataclasses import dataclass

import pulumi
import pulumi_random as random
from pulumi_kubernetes.core.v1 import Secret

from soperator_pulumi.cluster.host_key import SEED_BYTES, HostKey, host_key
from soperator_pulumi.cluster.mounts import SecretFile
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import Prerequisites
from soperator_pulumi.spec.secrets import SecretsSpec

MUNGE_KEY_BYTES = 128  # what mungekey(8) writes by default


@dataclass(frozen=True)
class Keys:
    """Where the pods find the keys, and what of them is public."""

    munge: SecretFile
    ssh_host: SecretFile
    ssh_host_public_key: pulumi.Output[str]
    ssh_host_fingerprint: pulumi.Output[str]
    created: tuple[Secret, ...]
    """The Secrets of our own."""


def create_keys(name: str, scope: Scope, secrets: SecretsSpec, prerequisites: Prerequisites) -> Keys:
    """Create the keys that the spec does not take from elsewhere. Their values are secret in Pulumi's state."""
    created = []
    munge = secrets.munge_key
    if munge is None:
        created.append(_munge_key(name, scope))
    ssh_host = secrets.ssh_host_key
    if ssh_host is None:
        seed = random.RandomBytes(f"{name}-ssh-host-key", length=SEED_BYTES, opts=scope.options())
        pair = seed.base64.apply(pulumi.Output.secret).apply(_host_key)
        created.append(_secret(name, scope, "ssh-host-key", {"ssh_host_ed25519_key": pair.apply(_private)}))
        # The public half of a generated key is for everybody, though it is computed from a secret.
        public_key = pulumi.Output.unsecret(pair.apply(_public))
        fingerprint = pulumi.Output.unsecret(pair.apply(_fingerprint))
    else:
        public_key = prerequisites.ssh_host_public_key
        fingerprint = prerequisites.ssh_host_fingerprint
    return Keys(
        munge=SecretFile("munge-key", "munge.key") if munge is None else SecretFile(munge.secret, munge.key),
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
