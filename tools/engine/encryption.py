"""Encryption of secrets in the state, with a passphrase."""

import base64
import json
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from tools.console import UserError

# RFC 7914's parameters for interactive use: about 50 ms and 16 MiB, once a run.
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**14, 8, 1
_NONCE_BYTES = 12  # what AES-GCM takes
_CHECK = "the passphrase is the right one"


def passphrase(folder: Path) -> str:
    """Return the user's passphrase, or the state folder's own.

    The user's is in `PULUMI_CONFIG_PASSPHRASE` or in the file that `PULUMI_CONFIG_PASSPHRASE_FILE` names. The first
    call creates the folder's own, which only its owner can read.
    """
    if given := os.environ.get("PULUMI_CONFIG_PASSPHRASE"):
        return given
    return passphrase_file(folder).read_text(encoding="utf-8").strip()


def passphrase_file(folder: Path) -> Path:
    """Return the file of the passphrase: the user's, or the state folder's own."""
    if named := os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        if not Path(named).is_file():
            raise UserError(f"PULUMI_CONFIG_PASSPHRASE_FILE: {named} is not a file. Correct or unset the variable.")
        return Path(named)
    own = folder / "passphrase"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not own.exists():
        draft = folder / f"passphrase.{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(32))
        try:
            own.hardlink_to(draft)  # unlike a rename, never replaces the file of another run
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return own


class Vault:
    """Encrypts and decrypts values with a key from a passphrase and a salt."""

    def __init__(self, key_phrase: str, salt: bytes) -> None:
        self.salt = salt
        key = Scrypt(salt=salt, length=32, n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P).derive(key_phrase.encode())
        self._cipher = AESGCM(key)
        self._known: dict[str, str] = {}

    @classmethod
    def new(cls, key_phrase: str) -> "Vault":
        """Make a vault for a new state."""
        return cls(key_phrase, secrets.token_bytes(16))

    @classmethod
    def open(cls, key_phrase: str, header: dict[str, str]) -> "Vault":
        """Open the vault of a state.

        Raises:
            UserError: The state has another passphrase.
        """
        vault = cls(key_phrase, base64.b64decode(header["salt"]))
        vault.decrypt(header["check"])
        return vault

    def header(self) -> dict[str, str]:
        """Return the input of `open` other than the passphrase."""
        return {"salt": base64.b64encode(self.salt).decode(), "check": self.encrypt(_CHECK)}

    def encrypt(self, value: object) -> str:
        """Encrypt a JSON value.

        Within a run, equal values give equal texts, so that a state changes only if its values do.
        """
        text = json.dumps(value, sort_keys=True)
        if text not in self._known:
            nonce = secrets.token_bytes(_NONCE_BYTES)
            sealed = nonce + self._cipher.encrypt(nonce, text.encode(), None)
            self._known[text] = base64.b64encode(sealed).decode()
        return self._known[text]

    def decrypt(self, sealed: str) -> object:
        """Return the value of an encrypted text."""
        data = base64.b64decode(sealed)
        try:
            text = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], None).decode()
        except InvalidTag:
            raise UserError(
                "the state was encrypted with another passphrase. Set PULUMI_CONFIG_PASSPHRASE or "
                "PULUMI_CONFIG_PASSPHRASE_FILE to that of the run that made the state."
            ) from None
        self._known[text] = sealed
        return json.loads(text)
