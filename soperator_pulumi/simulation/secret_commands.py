"""Commands that make the Secrets which manifests leave out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MAKING = {
    "password": "head -c 24 /dev/urandom | base64 | tr -d '\\n' > {file} && [ -s {file} ]",
    "munge.key": "head -c 128 /dev/urandom > {file}",
    "jwt.key": "head -c 48 /dev/urandom | base64 | tr -d '\\n' > {file} && [ -s {file} ]",
    "ssh_host_ed25519_key": "ssh-keygen -q -t ed25519 -N '' -C '' -f {file}",
}
"""Command that makes the file for a Secret's key.

A pipe hides that its first program failed; the file is empty then.
"""

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
    where = f" --namespace {note.namespace}" if note.namespace else ""
    kind = note.body["kind"]
    heading = f"## {kind} {note.name}{f' in {note.namespace}' if note.namespace else ''}\n"
    keys = f"Keys: {', '.join(f'`{key}`' for key in note.keys)}.\n"
    if kind != "Secret" or any(key not in _MAKING and key not in note.files for key in note.keys):
        return f"{heading}\n{keys}\nThe values are those of your program: create it with them.\n"
    return "\n".join([heading, keys, "```sh", *_commands(note, password, f"{note.name}{where}", labels), "```\n"])


def _commands(note: SecretNote, password: tuple[str, str], target: str, labels: str) -> list[str]:
    """Return the commands that make a Secret, in a shell of their own, from files in a folder that it removes.

    The first command that fails ends them: a Secret is made with all of its values, or not at all. They run in the
    user's folder, as KUBECONFIG may be a path in it.
    """
    files = " ".join(f"--from-file={_file(key)}" for key in note.keys)
    steps = [
        *(_reading(note, password) if SLURMDBD_CONF in note.files else []),
        *(step for key in note.keys for step in _making(note, key)),
        [f"kubectl create secret generic {target} {files}"],
        *([[f"kubectl label secret {target} {labels}"]] if labels else []),
    ]
    lines = [line for command, *file in steps[:-1] for line in (f"{command} &&", *file)]
    return ["(", "umask 077", "folder=$(mktemp -d) || exit", "trap 'rm -rf \"$folder\"' EXIT", *lines, *steps[-1], ")"]


def _file(key: str) -> str:
    """Return the path of a key's file, for the shell."""
    return f'"$folder"/{key}'


def _reading(note: SecretNote, password: tuple[str, str]) -> list[list[str]]:
    """Return the commands that read the password of the database, and write it as slurmdbd.conf has it."""
    secret, key = password
    template = f"'{{{{index .data \"{key}\" | base64decode}}}}'"
    return [
        [f"password=$(kubectl get secret {secret} --namespace {note.namespace} --output go-template={template})"],
        [f': "${{password:?the Secret {secret} has an empty {key}}}"'],
        ["password=$(printf %s \"$password\" | sed 's/[\\\\#]/\\\\&/g')"],
        ['case $password in *\' \'*) password="\\"$password\\"" ;; esac'],
    ]


def _making(note: SecretNote, key: str) -> list[list[str]]:
    """Return the commands that make a file, with the lines that follow them."""
    if key not in note.files:
        return [[_MAKING[key].format(file=_file(key))]]
    written = [f"cat > {_file(key)} <<'{_END}'", *note.files[key].splitlines(), _END]
    with_password = f"printf '{_PASSWORD_LINE}%s\\n' \"$password\" >> {_file(key)}"
    return [written, *([[with_password]] if key == SLURMDBD_CONF else [])]
