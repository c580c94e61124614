"""Certificates of the embedded Kubernetes: its own authority, and one certificate per identity."""

import datetime as dt
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tools.kube import host_files

_VALID = dt.timedelta(days=365)
_AUTHORITY_VALID = dt.timedelta(days=3650)
_RENEW_BEFORE = dt.timedelta(days=30)
_SKEW = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Identity:
    """Subject of a certificate. Kubernetes reads the common name as the user and the organisation as the group."""

    file: str
    user: str
    group: str = ""
    names: tuple[str, ...] = ()
    """DNS names and IP addresses of a server; empty for a client."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Pki:
    """Authority and certificates in one folder, created if missing and renewed before they expire."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.authority = self._pair("ca")
        if not _good(self.authority, ()):
            self._make_authority()

    def _pair(self, name: str) -> KeyPair:
        return KeyPair(self._folder / f"{name}.crt", self._folder / f"{name}.key")

    def _make_authority(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("soperator-pulumi embedded Kubernetes")
        builder = (
            _builder(name, name, key.public_key(), _AUTHORITY_VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_usage(authority=True), critical=True)
        )
        _write(self.authority, builder.sign(key, hashes.SHA256()), key)

    def issue(self, identity: Identity) -> KeyPair:
        """Return the identity's certificate and key, created or renewed if missing, near expiry, or for other names."""
        pair = self._pair(identity.file)
        if _good(pair, identity.names, self.authority):
            return pair
        authority = x509.load_pem_x509_certificate(self.authority.certificate.read_bytes())
        authority_key = _load_key(self.authority.key)
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [
            ExtendedKeyUsageOID.CLIENT_AUTH,
            *([ExtendedKeyUsageOID.SERVER_AUTH] if identity.names else []),
        ]
        builder = (
            _builder(_name(identity.user, identity.group), authority.subject, key.public_key(), _VALID)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )
        if identity.names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(map(_alternative, identity.names)), critical=False
            )
        _write(pair, builder.sign(authority_key, hashes.SHA256()), key)
        return pair

    def signing_key(self, name: str) -> KeyPair:
        """Return a key pair without a certificate, for service accounts' tokens; `certificate` is the public key."""
        pair = KeyPair(self._folder / f"{name}.pub", self._folder / f"{name}.key")
        if not (pair.certificate.exists() and pair.key.exists()):
            key = ec.generate_private_key(ec.SECP256R1())
            public = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            host_files.write(pair.key, _pem(key))
            host_files.write(pair.certificate, public)
        return pair


def _good(pair: KeyPair, names: Iterable[str], issuer: KeyPair | None = None) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        key = _load_key(pair.key)
    except (OSError, ValueError):  # missing, or cut short by a kill
        return False
    if certificate.not_valid_after_utc - dt.datetime.now(dt.UTC) < _RENEW_BEFORE:
        return False
    if certificate.public_key() != key.public_key():
        return False
    if issuer:
        authority = x509.load_pem_x509_certificate(issuer.certificate.read_bytes())
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            return False
    return _names_of(certificate) == set(names)


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in extension.value}


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(user: str, group: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid: dt.timedelta
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + valid)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} is not an elliptic curve key")  # noqa: TRY004 - like other unusable content
    return key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(pair: KeyPair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    host_files.write(pair.key, _pem(key))
    host_files.write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
