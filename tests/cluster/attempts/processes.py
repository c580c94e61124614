"""Attempts on the processes of others, and to become someone else."""

import ctypes
import errno
import fcntl
import os
from pathlib import Path

from . import LIBC, X86, attempt, call, names, of_each, syscall

PROCESS_VM_READV = 310 if X86 else 270
PTRACE_ATTACH = 16
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 38, 39, 47, 2
CAP_SYS_ADMIN = 21
TIOCSTI = 0x5412


@attempt
def see_the_root_of_the_first_process() -> object:
    if Path("/proc/1").stat().st_uid == os.getuid() != 0:
        raise PermissionError(errno.EPERM, "the first process is the job's own")
    return names("/proc/1/root/")


@attempt
def see_the_root_of_another_process() -> object:
    return of_each(lambda process: names(process / "root"))


@attempt
def see_the_folder_of_another_process() -> object:
    return of_each(lambda process: names(process / "cwd"))


@attempt
def see_the_files_of_another_process() -> object:
    return of_each(lambda process: names(process / "fd"))


@attempt
def read_the_environment_of_another_process() -> object:
    return of_each(lambda process: (process / "environ").read_bytes())


@attempt
def read_the_memory_of_another_process() -> object:
    return of_each(lambda process: os.open(process / "mem", os.O_RDONLY))


@attempt
def read_memory_by_system_call() -> object:
    def read(process: Path) -> int:
        buffer = ctypes.create_string_buffer(8)
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
        return syscall(PROCESS_VM_READV, int(process.name), vector, 1, vector, 1, 0)

    return of_each(read)


@attempt
def trace_another_process() -> object:
    return of_each(lambda process: call(LIBC.ptrace, PTRACE_ATTACH, int(process.name), None, None))


@attempt
def signal_another_process() -> object:
    return of_each(lambda process: call(LIBC.kill, int(process.name), 0))


@attempt
def see_who_else_is_there() -> object:
    """The list of processes shows one's own alone."""
    mine = os.getuid()
    seen = [folder for folder in Path("/proc").iterdir() if folder.name.isdigit() and folder.stat().st_uid != mine]
    if seen:
        return seen
    raise PermissionError(errno.EPERM, "all others are hidden")


@attempt
def become_root() -> object:
    os.setuid(0)
    return os.getuid()


@attempt
def become_another_user() -> object:
    os.setuid(2002)
    return os.getuid()


@attempt
def join_another_group() -> object:
    os.setgroups([0])
    return os.getgroups()


@attempt
def give_a_file_away() -> object:
    Path("/tmp/mine").touch()
    os.chown("/tmp/mine", 0, 0)
    return "given"


@attempt
def allow_new_privileges_again() -> object:
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)
    if LIBC.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1:
        raise PermissionError(errno.EPERM, "the flag stays")
    return "allowed"


@attempt
def raise_a_capability() -> object:
    return call(LIBC.prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0)


@attempt
def type_into_the_terminal_of_slurmstepd() -> object:
    refusal: OSError = FileNotFoundError(errno.ENOENT, "no terminal")
    for terminal in Path("/dev/pts").glob("[0-9]*"):
        try:
            fcntl.ioctl(os.open(terminal, os.O_RDWR | os.O_NOCTTY), TIOCSTI, b"x")
        except OSError as error:
            refusal = error
        else:
            return str(terminal)
    raise refusal
