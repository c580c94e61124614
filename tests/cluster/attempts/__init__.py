"""Attempts to get out of the jail, tried inside it by its own Python (3.9 or later, standard library alone).

`python3 -m attempts NAME...` makes each attempt in a process of its own and prints a line of it: "NAME blocked: ..."
when the kernel refused, "NAME absent: ..." when there is nothing to attack, "NAME ESCAPED: ..." when it worked.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"

ATTEMPTS: dict[str, Callable[[], object]] = {}


def attempt(function: Callable[[], object]) -> Callable[[], object]:
    """Add an attempt under its function's name."""
    ATTEMPTS[function.__name__] = function
    return function


def call(function: Callable[..., int], *arguments: object) -> int:
    """Call a function of libc; a failure is an OSError."""
    result = function(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(number: int, *arguments: object) -> int:
    """Call the kernel by number."""
    long = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return call(LIBC.syscall, ctypes.c_long(number), *long)


def others() -> Iterator[Path]:
    """Give the /proc folders of processes that are not this user's, seen there or not (hidepid)."""
    ours = {os.getpid(), os.getppid()}
    for pid in range(1, 1 << 15):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        except PermissionError:
            yield Path(f"/proc/{pid}")
        else:
            if os.getuid() == 0 and pid not in ours:
                yield Path(f"/proc/{pid}")


def of_each(look: Callable[[Path], object]) -> str:
    """Try something on each process of others; raise what refused when all of them did."""
    refusal: OSError | None = None
    for process in others():
        try:
            return f"{process}: {look(process)!r}"
        except FileNotFoundError:
            refusal = PermissionError(errno.EACCES, f"{process} runs, and is hidden")
        except OSError as error:
            if error.errno != errno.ESRCH:  # it has ended meanwhile
                refusal = error
    if refusal is None:
        raise FileNotFoundError(errno.ENOENT, "no process of anybody else is there")
    raise refusal


def write(path: str, content: str = "1") -> str:
    """Write into a file that is there."""
    descriptor = os.open(path, os.O_WRONLY)  # without O_CREAT: nothing is left behind
    os.write(descriptor, content.encode())
    return path


def first_writable(pattern: str, content: str) -> str:
    """Write into the first of many files that lets itself be written."""
    refusal: OSError = FileNotFoundError(errno.ENOENT, "none is there")
    for path in Path("/").glob(pattern):
        try:
            return write(str(path), content)
        except OSError as error:
            refusal = error
    raise refusal


def names(path: Path | str) -> list[str]:
    """List a folder."""
    return [entry.name for entry in Path(path).iterdir()]


def outcome(name: str) -> str:
    """Make an attempt and say in a line what came of it."""
    try:
        return f"ESCAPED: {ATTEMPTS[name]()!r}"
    except FileNotFoundError as error:
        return f"absent: {error}"
    except OSError as error:
        return f"blocked: {errno.errorcode.get(error.errno or 0, error.errno)} {error}"
