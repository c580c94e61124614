"""Certificates: made once, and again when they are of no use any more."""

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from tools.kube import pki
from tools.kube.pki import Identity, Pki

SERVER = Identity("server", "kube-apiserver", names=("localhost", "10.244.0.1"))
CLIENT = Identity("client", "admin", "system:masters")


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_user_and_group_are_common_name_and_organisation(tmp_path: Path) -> None:
    pair = Pki(tmp_path).issue(CLIENT)
    assert certificate(pair.certificate).subject.rfc4514_string() == "CN=admin,O=system:masters"


def test_a_certificate_is_signed_by_the_authority(tmp_path: Path) -> None:
    authority = Pki(tmp_path)
    pair = authority.issue(SERVER)
    certificate(pair.certificate).verify_directly_issued_by(certificate(authority.authority.certificate))


def test_a_server_has_its_names_and_addresses(tmp_path: Path) -> None:
    issued = certificate(Pki(tmp_path).issue(SERVER).certificate)
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.244.0.1"]


def test_one_that_only_calls_cannot_serve(tmp_path: Path) -> None:
    issued = certificate(Pki(tmp_path).issue(CLIENT).certificate)
    uses = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(uses) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    authority = Pki(tmp_path / "pki")
    authority.issue(SERVER)
    authority.signing_key("service-accounts")
    assert {oct(file.stat().st_mode & 0o777) for file in (tmp_path / "pki").iterdir()} == {"0o600"}
    assert oct((tmp_path / "pki").stat().st_mode & 0o777) == "0o700"


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    def content() -> dict[str, bytes]:
        authority = Pki(tmp_path)
        authority.issue(SERVER)
        authority.signing_key("service-accounts")
        return {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    assert content() == content()


def test_other_names_give_another_certificate(tmp_path: Path) -> None:
    authority = Pki(tmp_path)
    before = authority.issue(SERVER).certificate.read_bytes()
    more = Identity("server", "kube-apiserver", names=(*SERVER.names, "kubernetes"))
    assert authority.issue(more).certificate.read_bytes() != before


def test_a_certificate_near_its_end_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Pki(tmp_path)
    monkeypatch.setattr(pki, "_VALID", dt.timedelta(days=29))
    before = authority.issue(SERVER).certificate.read_bytes()
    monkeypatch.undo()
    assert authority.issue(SERVER).certificate.read_bytes() != before


@pytest.mark.parametrize("suffix", ["crt", "key"])
def test_a_file_that_was_cut_short_is_made_again(tmp_path: Path, suffix: str) -> None:
    authority = Pki(tmp_path)
    authority.issue(SERVER)
    broken = tmp_path / f"server.{suffix}"
    broken.write_bytes(broken.read_bytes()[:100])
    pair = authority.issue(SERVER)
    certificate(pair.certificate).verify_directly_issued_by(certificate(authority.authority.certificate))


def test_a_new_authority_signs_all_again(tmp_path: Path) -> None:
    Pki(tmp_path).issue(SERVER)
    (tmp_path / "ca.key").unlink()
    authority = Pki(tmp_path)
    issued = certificate(authority.issue(SERVER).certificate)
    issued.verify_directly_issued_by(certificate(authority.authority.certificate))
