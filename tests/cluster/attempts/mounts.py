"""Attempts on mounts, namespaces and the root."""

import ctypes
import errno
import os
import signal
import stat
from pathlib import Path

from . import LIBC, X86, attempt, call, names, of_each, syscall

# System calls by number, as glibc has no functions for them in every release. From 424 on they are the same on all
# architectures.
OPEN_TREE, MOVE_MOUNT, FSOPEN, CLONE3, MOUNT_SETATTR = 428, 429, 430, 435, 442
CLONE = 56 if X86 else 220
PIVOT_ROOT = 155 if X86 else 41
OPEN_BY_HANDLE_AT = 304 if X86 else 265
SETNS = 308 if X86 else 268

MS_REMOUNT, MS_BIND, MS_PRIVATE = 0x20, 0x1000, 0x40000
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000


def mount(source: str, target: str, kind: str | None, flags: int = 0) -> int:
    """Mount something."""
    return call(LIBC.mount, source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), None)


@attempt
def mount_a_file_system() -> object:
    return mount("none", "/mnt", "tmpfs")


@attempt
def mount_proc_anew() -> object:
    return mount("proc", "/mnt", "proc")


@attempt
def bind_a_folder_elsewhere() -> object:
    return mount("/", "/mnt", None, MS_BIND)


@attempt
def make_the_clients_writable() -> object:
    return mount("none", "/opt", None, MS_REMOUNT | MS_BIND)


@attempt
def let_setuid_programs_work() -> object:
    return mount("none", "/home", None, MS_REMOUNT | MS_BIND)


@attempt
def change_propagation() -> object:
    return mount("none", "/", None, MS_PRIVATE)


@attempt
def unmount_a_folder() -> object:
    return call(LIBC.umount2, b"/home", MNT_DETACH)


@attempt
def unmount_the_root() -> object:
    return call(LIBC.umount2, b"/", MNT_DETACH)


@attempt
def mount_by_the_new_system_calls() -> object:
    return syscall(FSOPEN, ctypes.c_char_p(b"tmpfs"), 0)


@attempt
def clone_a_tree_of_mounts() -> object:
    return syscall(OPEN_TREE, -100, ctypes.c_char_p(b"/"), 1)


@attempt
def move_a_mount() -> object:
    return syscall(MOVE_MOUNT, -100, ctypes.c_char_p(b"/home"), -100, ctypes.c_char_p(b"/mnt"), 0)


@attempt
def change_attributes_of_a_mount() -> object:
    return syscall(MOUNT_SETATTR, -100, ctypes.c_char_p(b"/opt/slurm"), 0, ctypes.create_string_buffer(32), 32)


@attempt
def unshare_mounts() -> object:
    return call(LIBC.unshare, CLONE_NEWNS)


@attempt
def unshare_users() -> object:
    return call(LIBC.unshare, CLONE_NEWUSER)


@attempt
def unshare_the_network_with_users() -> object:
    return call(LIBC.unshare, CLONE_NEWUSER | CLONE_NEWNET)


@attempt
def clone_into_new_users() -> object:
    child = syscall(CLONE, CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return child


@attempt
def clone3_into_new_users() -> object:
    arguments = (ctypes.c_uint64 * 8)(CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = syscall(CLONE3, arguments, ctypes.sizeof(arguments))
    if child == 0:
        os._exit(0)
    return child


@attempt
def enter_the_namespaces_of_another_process() -> object:
    def enter(process: Path) -> int:
        namespace = os.open(process / "ns" / "mnt", os.O_RDONLY)
        return syscall(SETNS, namespace, 0)

    return of_each(enter)


@attempt
def chroot_elsewhere() -> object:
    os.chroot("/tmp")
    return "chroot"


@attempt
def chroot_out_through_an_open_folder() -> object:
    outside = os.open("/", os.O_RDONLY)
    Path("/tmp/inner").mkdir(exist_ok=True)
    os.chroot("/tmp/inner")
    os.fchdir(outside)
    os.chroot("../../../..")
    return names("/")


@attempt
def pivot_the_root() -> object:
    return syscall(PIVOT_ROOT, ctypes.c_char_p(b"/tmp"), ctypes.c_char_p(b"/tmp"))


@attempt
def climb_above_the_root() -> object:
    os.chdir("/" + "../" * 64)
    here, root = Path().stat(), Path("/").stat()
    if (here.st_dev, here.st_ino) == (root.st_dev, root.st_ino):
        raise PermissionError(errno.EPERM, "the top is the jail's")
    return names(".")


@attempt
def open_a_file_by_its_handle() -> object:
    """As the exploit "shocker" did: handle 2 is the root of most file systems."""
    handle = (ctypes.c_uint32 * 4)(8, 1, 2, 0)
    return syscall(OPEN_BY_HANDLE_AT, os.open("/home", os.O_RDONLY), handle, 0)


@attempt
def use_an_inherited_folder() -> object:
    """A descriptor of a folder outside would lead there whatever the root is."""
    found = []
    for number in map(int, names("/proc/self/fd")):
        try:
            if number > 2 and stat.S_ISDIR(os.fstat(number).st_mode):
                where = str(Path(f"/proc/self/fd/{number}").readlink())
                if where != f"/proc/{os.getpid()}/fd":
                    found.append(where)
        except OSError:  # the listing's own
            continue
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no folder was inherited")
    return found
