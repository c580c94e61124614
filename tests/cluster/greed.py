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

NEVER_READ = """
import glob, os, re, select, socket, subprocess, time
home = os.path.expanduser("~/own-conf")
os.makedirs(home, exist_ok=True)
for path in glob.glob("/var/spool/slurmd/conf-cache/*"):
    text = open(path).read()
    text = re.sub("(?m)^SlurmctldHost=.*", f"SlurmctldHost={socket.gethostname()}(127.0.0.1)", text)
    text = re.sub("(?m)^SlurmctldPort=.*", "SlurmctldPort=7001", text)
    open(f"{home}/{os.path.basename(path)}", "w").write(text)
listener = socket.create_server(("127.0.0.1", 7001), backlog=100)
held = []
asks = [subprocess.Popen(["squeue"], env={**os.environ, "SLURM_CONF": f"{home}/slurm.conf"}, stdout=-3, stderr=-3)
        for _ in range(12)]
for _ in asks:
    client, _ = listener.accept()
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    slow.connect((socket.gethostbyname("controller-0"), 6817))
    slow.sendall(client.recv(1 << 20))
    held.append((client, slow))
poll = select.poll()
for _, slow in held:
    poll.register(slow, 0)
end = time.monotonic() + 60
while len(poll.poll(0)) < 4 and time.monotonic() < end:
    time.sleep(0.5)
    subprocess.run(["scontrol", "ping"], stdout=-3)
print("cut off" if len(poll.poll(0)) >= 4 else f"held: {len(held) - len(poll.poll(0))}", flush=True)
for ask in asks:
    ask.kill()
"""
"""Ask slurmctld for all jobs by 12 connections, read no answer, and print if a third has been cut off within 60 s."""


def large_jobs(count: int) -> str:
    """Return a script that submits held jobs, which have the longest texts that Slurm takes."""
    return f"""
printf '#!/bin/sh\\n' > large.sh
long=$(printf %01000d 0) path=$HOME
while [ ${{#path}} -lt 3700 ]; do path=$path/$(printf %0200d 0); done
for _ in $(seq {count}); do
    sbatch -H -J $long --comment=$long --extra=$long --mail-user=$long -o $path -e $path -i $path large.sh > /dev/null
done
"""


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
