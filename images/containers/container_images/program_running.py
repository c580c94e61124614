"""Programs that bring images: they run as the user, report their progress, and end with this process."""

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence

from container_images.image_reference import ImageError, RegistryUnreachableError
from container_images.image_store import STORE

_DIES_WITH_IMPORTER = ("setpriv", "--pdeathsig", "KILL")
"""Start of a command that the kernel kills when this process dies."""

_PROGRESS_SECONDS = 10

_REFUSED = r"unauthorized|authentication required|denied|\b40[13]\b"
_UNREACHABLE = (
    r"dial tcp|connection (refused|reset)|timeout|deadline exceeded|unreachable|no route to host|\bEOF\b|"
    r"toomanyrequests|status ?(code)?( from registry)?:? (429|5\d\d)\b"
)

_NOT_FOR_NODE = r"no image found in (image index|manifest list)"
_FOR_NODE = "The image has no variant for the processors of this node."

_LIMITED, _FULL, _UNKNOWN = r"toomanyrequests|\b429\b", r"no space left|quota", r"x509|certificate"

USER_HINTS = {
    _REFUSED: "Is the name right, and are credentials for the registry "
    "in ~/.docker/config.json, ~/.config/containers/auth.json or ~/.config/enroot/.credentials?",
    _LIMITED: "The registry limits pulls: wait, or log in to it.",
    _FULL: f"The home is full: remove what is not needed, such as folders in ~/{STORE}/images.",
    _NOT_FOR_NODE: _FOR_NODE,
    _UNKNOWN: "Neither the jail's certificates (/etc/ssl) nor the cluster's settings "
    "(containers.registries) know the registry's authority.",
}
"""Next steps for a user, by text in a failed program's output. The first match counts."""

ADMIN_HINTS = {
    _REFUSED: "Is the name right, and are credentials for the registry in the Secret "
    "that containers.images_secret names?",
    _LIMITED: "The registry limits pulls: wait, or put a login into the Secret that containers.images_secret names.",
    _FULL: "The jail's volume is full: make it larger (jail.storage.size_gib), remove files in homes, or take images "
    "out of containers.images.",
    _NOT_FOR_NODE: _FOR_NODE,
    _UNKNOWN: "Neither the certificates of the workers' image nor containers.registries know the registry's authority.",
}
"""The same for the admin, who publishes images."""


def run_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    progress: Callable[[], None] | None = None,
    harmless: re.Pattern[str] | None = None,
    hints: Mapping[str, str] = USER_HINTS,
) -> bytes:
    """Return the output of a program.

    Args:
        command: The program and its arguments.
        environment: Its variables.
        progress: Called every 10 s as long as it runs. What it raises kills the program.
        harmless: Lines of errors that are no failure if the program exits with a code above 0 and prints some of them,
            and no others.
        hints: Next steps for words of a failure. Default: those of a user.

    Raises:
        ImageError: The program has failed.

    """
    with (
        tempfile.TemporaryFile() as errors,
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            [*_DIES_WITH_IMPORTER, *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            close_fds=False,  # it has the file with credentials, and the store's lock as long as it lives
        ) as process,
    ):
        _await_end(process, progress)
        if process.returncode:
            errors.seek(0)
            words = errors.read().decode(errors="replace")
            lines = words.strip().splitlines()
            if process.returncode < 0 or not harmless or not lines or not all(map(harmless.search, lines)):
                raise _failure(command[0], words, hints)
        output.seek(0)
        return output.read()


def _await_end(process: subprocess.Popen[bytes], progress: Callable[[], None] | None) -> None:
    while True:
        try:
            process.wait(_PROGRESS_SECONDS)
        except subprocess.TimeoutExpired:
            try:
                (progress or (lambda: None))()
            except BaseException:
                process.kill()
                raise
        else:
            return


def _failure(program: str, errors: str, hints: Mapping[str, str]) -> ImageError:
    words = in_words(program, errors, hints)
    unreachable = re.search(_UNREACHABLE, words, re.IGNORECASE) and not re.search(_REFUSED, words, re.IGNORECASE)
    return RegistryUnreachableError(words) if unreachable else ImageError(words)


def in_words(program: str, errors: str, hints: Mapping[str, str] = USER_HINTS) -> str:
    """Return the last line of a program's errors without log marks, and the next step."""
    lines = [line for line in errors.splitlines() if line.strip()] or ["it said nothing"]
    last = re.sub(r'^(FATA\[\d+\]\s*|time="[^"]*" level=\w+ msg=)', "", lines[-1]).strip().strip('"')
    hint = next((words for pattern, words in hints.items() if re.search(pattern, last, re.IGNORECASE)), "")
    return f"{program}: {last}{'.' if hint else ''} {hint}".strip()
