"""Attempts on devices, cgroups, the kernel and the machine."""

import ctypes
import errno
import os
import socket
import stat
import time
from pathlib import Path

from . import LIBC, X86, attempt, call, first_writable, syscall, write

BPF = 321 if X86 else 280
PERF_EVENT_OPEN = 298 if X86 else 241
INIT_MODULE = 175 if X86 else 105
KEXEC_LOAD = 246 if X86 else 104


@attempt
def make_a_raw_device() -> object:
    os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(253, 0))
    return "made"


@attempt
def make_a_device_of_memory() -> object:
    os.mknod("/tmp/memory", stat.S_IFCHR | 0o600, os.makedev(1, 1))
    return "made"


@attempt
def read_a_raw_device() -> object:
    refusal: OSError = FileNotFoundError(errno.ENOENT, "no block device is there")
    for path in Path("/dev").rglob("*"):
        if path.is_block_device():
            try:
                return os.read(os.open(path, os.O_RDONLY), 512)
            except OSError as error:
                refusal = error
    raise refusal


@attempt
def read_memory_of_the_kernel() -> object:
    if data := Path("/proc/kcore").read_bytes():
        return len(data)
    raise PermissionError(errno.EPERM, "masked: it is empty")


@attempt
def read_memory_of_the_machine() -> object:
    return os.open("/dev/mem", os.O_RDONLY)


@attempt
def read_messages_of_the_kernel() -> object:
    return os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)


@attempt
def set_the_release_agent_of_a_cgroup() -> object:
    return first_writable("sys/fs/cgroup/**/release_agent", "/tmp/agent")


@attempt
def leave_the_cgroup() -> object:
    return first_writable("sys/fs/cgroup/**/cgroup.procs", str(os.getpid()))


@attempt
def make_a_cgroup() -> object:
    refusal: OSError = FileNotFoundError(errno.ENOENT, "no cgroups are there")
    root = Path("/sys/fs/cgroup")
    for folder in [root, *filter(Path.is_dir, root.glob("**/*"))]:
        try:
            (folder / "escape").mkdir()
        except OSError as error:
            refusal = error
        else:
            if (folder / "escape" / "cgroup.procs").exists():
                return str(folder)
            (folder / "escape").rmdir()  # no cgroup: the folder in which the container's cgroups are mounted
    raise refusal


@attempt
def let_the_kernel_run_a_program_at_crashes() -> object:
    return write("/proc/sys/kernel/core_pattern", "|/tmp/agent")


@attempt
def let_the_kernel_run_a_program_for_devices() -> object:
    return write("/sys/kernel/uevent_helper", "/tmp/agent")


@attempt
def let_the_kernel_load_modules_from_here() -> object:
    return write("/proc/sys/kernel/modprobe", "/tmp/agent")


@attempt
def press_the_magic_key() -> object:
    return write("/proc/sysrq-trigger", "h")


@attempt
def load_a_module() -> object:
    return syscall(INIT_MODULE, ctypes.c_char_p(b""), 0, ctypes.c_char_p(b""))


@attempt
def load_another_kernel() -> object:
    return syscall(KEXEC_LOAD, 0, 0, None, 0)


@attempt
def load_a_bpf_program() -> object:
    array_of_one = (ctypes.c_uint32 * 5)(2, 4, 4, 1, 0)
    return syscall(BPF, 0, array_of_one, ctypes.sizeof(array_of_one))


@attempt
def watch_the_machine_by_performance_events() -> object:
    clock_of_a_processor = (ctypes.c_uint32 * 32)(1, 128)
    return syscall(PERF_EVENT_OPEN, clock_of_a_processor, -1, 0, -1, 0)


@attempt
def restart_the_machine() -> object:
    return call(LIBC.reboot, 0)  # CAD off: harmless where it works


@attempt
def set_the_clock() -> object:
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return "set"


@attempt
def name_the_host() -> object:
    socket.sethostname(socket.gethostname())
    return "named"


@attempt
def listen_to_all_packets() -> object:
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno()


@attempt
def send_raw_packets() -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).fileno()
