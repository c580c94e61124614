"""Acts of a user who takes all that there is, as programs of the jail, in words without a single quote."""

LEAVE = """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
made = [libc.shmget(77, 4096, 0o1600), libc.semget(78, 1, 0o1600), libc.msgget(79, 0o1600)]
assert min(made) >= 0, made
os.open("/dev/mqueue/left", os.O_CREAT | os.O_WRONLY)
os.makedirs("/tmp/left/deeper", mode=0o700)
open("/tmp/left/deeper/file", "w").write("x")
os.chmod("/tmp/left", 0)
open("/dev/shm/left", "w").write("x")
subprocess.Popen(["sleep", "3600"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
print("left")
"""
"""Leave something of everything, and a process that its step does not know."""

LEFT = """
find /tmp /dev/shm /dev/mqueue -user 2666
for process in /proc/[0-9]*; do
    [ "$(stat -c %u $process 2>/dev/null)" != 2666 ] || cat $process/comm
done
awk "\\$5 == 2666 || \\$8 == 2666" /proc/sysvipc/*
"""
"""Print what is left of user 2666 on a worker: lines of /proc/sysvipc have the owner in field 5 or 8."""

HOLD_MUNGE = """
import socket, time
held = []
said = False
end = time.monotonic() + 60
while time.monotonic() < end:
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)
    try:
        connection.connect("/run/munge/munge.socket.2")
        held = [*held[-599:], connection]
        refused = False
    except OSError:
        refused = True
    if refused or len(held) == 600:
        if not said:
            print("held", flush=True)
        said = True
        time.sleep(0.01)
"""
"""Ask munged nothing by as many connections as it takes, and renew those that it gives up."""

FILL_TMP = "head -c 4G /dev/zero > /tmp/fill"


def forks(*, hold_seconds: int) -> str:
    """Return a program that forks until it cannot, prints how often it could and why not, and holds what it has."""
    return f"""
import errno, os, time
count = 0
try:
    while os.fork():
        count += 1
    time.sleep({hold_seconds})
except OSError as error:
    print(count, errno.errorcode[error.errno], flush=True)
    time.sleep({hold_seconds})
"""
