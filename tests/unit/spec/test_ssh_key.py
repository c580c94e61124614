"""Public keys of users are really parsed."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from soperator_pulumi.spec.types.ssh_key import SshPublicKey

_checker: TypeAdapter[str] = TypeAdapter(SshPublicKey)

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_PRIVATE_KEYS: dict[str, PrivateKey] = {
    "ed25519": ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32))),
    "nistp256": ec.derive_private_key(7, ec.SECP256R1()),
    "nistp384": ec.derive_private_key(7, ec.SECP384R1()),
    "nistp521": ec.derive_private_key(7, ec.SECP521R1()),
    "rsa 2048": rsa.generate_private_key(65537, 2048),
}


def public_line(name: str) -> str:
    return _PRIVATE_KEYS[name].public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def wire(*fields: bytes) -> str:
    blob = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return f"{fields[0].decode()} {base64.b64encode(blob).decode()}"


def why_not(key: object) -> str:
    with pytest.raises(ValidationError) as caught:
        _checker.validate_python(key)
    return str(caught.value.errors()[0]["ctx"]["text"])


@pytest.mark.parametrize("name", _PRIVATE_KEYS)
def test_keys_that_openssh_makes_are_taken_with_and_without_a_comment(name: str) -> None:
    assert _checker.validate_python(public_line(name)) == public_line(name)
    assert _checker.validate_python(f"  {public_line(name)} me@my laptop\n") == f"{public_line(name)} me@my laptop"


@pytest.mark.parametrize(
    "line",
    [
        wire(b"sk-ssh-ed25519@openssh.com", bytes(32), b"ssh:"),
        wire(b"sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", b"\4" + bytes(64), b"ssh:"),
    ],
)
def test_keys_in_hardware_are_taken(line: str) -> None:
    assert _checker.validate_python(line) == line


@pytest.mark.parametrize("name", _PRIVATE_KEYS)
@given(cut=st.integers(1, 40))
def test_a_key_that_is_cut_off_is_refused(name: str, cut: int) -> None:
    assert "cut off or damaged" in why_not(public_line(name)[:-cut])


@given(position=st.integers(0, 18))
def test_a_key_whose_type_inside_is_another_is_refused(position: int) -> None:
    kind, encoded = public_line("ed25519").split()
    blob = bytearray(base64.b64decode(encoded))
    blob[position] ^= 0x01
    why = why_not(f"{kind} {base64.b64encode(bytes(blob)).decode()}")
    assert "cut off or damaged" in why or "of another type" in why


def test_a_short_rsa_key_is_refused_with_what_to_do() -> None:
    line = wire(b"ssh-rsa", b"\1\0\1", b"\0" + b"\xff" * 128)
    assert "RSA key of 1024 bits" in why_not(line)
    assert "ssh-keygen -t ed25519" in why_not(line)


def test_types_that_openssh_no_longer_takes_are_refused() -> None:
    assert "does not start with a type of public key" in why_not(wire(b"ssh-dss", b"p", b"q", b"g", b"y"))


@pytest.mark.parametrize("form", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8])
def test_a_private_key_is_refused_and_not_shown(form: PrivateFormat) -> None:
    private = _PRIVATE_KEYS["ed25519"].private_bytes(Encoding.PEM, form, NoEncryption()).decode()
    why = why_not(private)
    assert why.startswith("is a private key.")
    assert not any(line in why for line in private.splitlines())


@pytest.mark.parametrize("given_key", ["", " \n"])
def test_an_empty_key_is_refused(given_key: str) -> None:
    assert why_not(given_key).startswith("empty.")


def test_several_keys_in_one_entry_are_refused() -> None:
    line = public_line("ed25519")
    assert "more than one line" in why_not(f"{line}\n{line}")


@given(st.text() | st.binary() | st.integers() | st.none() | st.lists(st.text()))
def test_nothing_else_is_taken_for_a_key(value: object) -> None:
    assert why_not(value)


@pytest.mark.parametrize(
    "options",
    [
        'from="10.0.0.0/8,!10.1.0.0/16"',
        'cert-authority,principals="jane,jane.doe"',
        'command="echo \\"a, b\\"",no-pty',
        "restrict,pty",
    ],
)
def test_options_of_sshd_before_a_key_are_taken(options: str) -> None:
    assert _checker.validate_python(f"{options} {public_line('ed25519')}") == f"{options} {public_line('ed25519')}"


@pytest.mark.parametrize("options", ['environment="A=b"', 'tunnel="0"', "x11-forwarding", "from,hunter2"])
def test_options_that_do_not_hold_in_sessions_are_refused_and_not_shown(options: str) -> None:
    why = why_not(f"{options} {public_line('ed25519')}")
    assert why.startswith("has an option before the key that does not hold in sessions here. Allowed: ")
    assert "hunter2" not in why


def test_a_key_after_options_is_checked_as_any_other() -> None:
    assert "cut off or damaged" in why_not(f'from="10.0.0.1" {public_line("ed25519")[:-8]}')
