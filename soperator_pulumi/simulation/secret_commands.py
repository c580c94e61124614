"""Commands that make the Secrets which manifests leave out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MAKING = {
    "password": "head -c 24 /dev/urandom | base64 | tr -d '\\n' > password",
    "munge.key": "head -c 128 /dev/urandom > munge.key",
    "jwt.key": "head -c 48 /dev/urandom | base64 | tr -d '\\n' > jwt.key",
    "ssh_host_ed25519_key": "ssh-keygen -q -t ed25519 -N '' -C '' -f ssh_host_ed25519_key",
}
"""Command that makes the file for a Secret's key."""

SLURMDBD_CONF = "slurmdbd.conf"
"""Key of the only file that has a password."""

_PASSWORD_LINE = "StoragePass="  # noqa: S105 the name of a parameter
"""Start of the line of slurmdbd.conf that has the password of the database."""

_END = "end-of-file"
"""Word that ends a file in the commands. No configuration file has it as a line."""


@dataclass(frozen=True)
class SecretNote:
    """An object that is left out because its values are secret."""

    body: Mapping[str, Any]
    """Kind and metadata."""
    keys: tuple[str, ...]
    """Keys of its data."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Text of files, by key, without the line of a password; default: none is known."""

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.body["metadata"].get("name", ""))

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return str(self.body["metadata"].get("namespace", ""))


def without_password(text: str) -> str:
    """Return slurmdbd.conf without the line of its password."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_PASSWORD_LINE))


def secret_section(note: SecretNote, password: tuple[str, str]) -> str:
    """Return the section of the page about a Secret, with the commands that make it.

    Args:
        note: The Secret.
        password: Secret that has the password of the database in the same namespace, and its key.
    """
    metadata = note.body["metadata"]
    labels = " ".join(f"{key}={value}" for key, value in sorted(metadata.get("labels", {}).items()))
    files = " ".join(f"--from-file={key}" for key in note.keys)
    where = f" --namespace {note.namespace}" if note.namespace else ""
    kind = note.body["kind"]
    heading = f"## {kind} {note.name}{f' in {note.namespace}' if note.namespace else ''}\n"
    keys = f"Keys: {', '.join(f'`{key}`' for key in note.keys)}.\n"
    if kind != "Secret" or any(key not in _MAKING and key not in note.files for key in note.keys):
        return f"{heading}\n{keys}\nThe values are those of your program: create it with them.\n"
    commands = [
        *(line for key in note.keys for line in _making(note, key, password)),
        f"kubectl create secret generic {note.name}{where} {files}",
        *([f"kubectl label secret {note.name}{where} {labels}"] if labels else []),
    ]
    return "\n".join([heading, keys, "```sh", *commands, "```\n"])


def _making(note: SecretNote, key: str, password: tuple[str, str]) -> list[str]:
    """Return the commands that make a file. A password comes from its Secret, with the escapes of slurmdbd.conf."""
    if key not in note.files:
        return [_MAKING[key]]
    lines = [f"cat > {key} <<'{_END}'", *note.files[key].splitlines(), _END]
    if key != SLURMDBD_CONF:
        return lines
    secret, field_ = password
    template = f"'{{{{index .data \"{field_}\" | base64decode}}}}'"
    read = f"kubectl get secret {secret} --namespace {note.namespace} --output go-template={template}"
    return [
        *lines,
        f"password=$({read} | sed 's/[\\\\#]/\\\\&/g')",
        'case $password in *\' \'*) password="\\"$password\\"" ;; esac',
        f"printf '{_PASSWORD_LINE}%s\\n' \"$password\" >> {key}",
    ]
