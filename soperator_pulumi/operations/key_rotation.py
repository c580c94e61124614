"""Rotation of keys while jobs run: the munge key in all pods at the same moment, and the host key of sshd.

munged reads its key when it starts, and daemons with different keys refuse each other. A refused message can cost a
job: if slurmctld refuses the message that a batch job has ended, it shows the job as running for ever (measured). So
the rotation has steps:

1. Wait until the kubelets have delivered the new key to every pod. Until then no munged changes.
2. Start a munged with the new key in every pod, on a private socket, and ask it for a credential.
3. Give all pods the moment at which it replaces the former one, by `Schedule`. slurmctld, slurmd and the steps of jobs
   keep running: they connect to munged for every message, and retry for two seconds.

If a step fails in one pod, nothing changes in any pod, and the next run starts again. If a run is killed while it
distributes the moment, some pods keep the former key, and the next run changes only these.
"""

import base64
import hashlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from soperator_pulumi.errors import NotReadyError, TransportError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Kube, secret_path
from soperator_pulumi.operations.configuration.activations import Sshd
from soperator_pulumi.operations.configuration.transaction import SYNC_SECONDS, ask_kubelet
from soperator_pulumi.operations.progress import Clock, Report, saying, unless_cancelled, until
from soperator_pulumi.render import layout
from soperator_pulumi.wording import counted, listed

T = TypeVar("T")

MUNGED = "munged"
"""Name of the container that runs munged, in every pod of Slurm."""

MOUNTED_KEY = "/etc/munge-secret/munge.key"
"""Munge key as delivered by the kubelet."""

KEY_IN_USE = "/run/munge-key/munge.key"
"""Copy of the munge key that munged has read."""

SOCKET = "/run/munge/munge.socket.2"
NEXT_SOCKET = "/run/munge/next.socket"

CLOCK_SECONDS = 0.5
"""Difference between the machines' clocks that the schedule tolerates, apart from the time that reading them takes."""

ATTEMPTS = 3
"""Attempts to give all pods the moment in time; every attempt allows more time than the one before."""

_SLEEP_UNTIL = """
sleep_until() {
    left=$(($1 - $(date +%s%3N)))
    [ "$left" -le 0 ] || sleep "$((left / 1000)).$(printf %03d "$((left % 1000))")"
}
"""
"""Shell function that sleeps until a time in milliseconds since 1970."""

PREPARE = f"""set -eu
cd /run/munge-key
[ ! -e next.pid ] || kill -9 "$(cat next.pid)" || true # it may have ended
rm -f {NEXT_SOCKET} {NEXT_SOCKET}.lock
install -m 0400 {MOUNTED_KEY} next.key
setsid munged --foreground --force --key-file=/run/munge-key/next.key --socket={NEXT_SOCKET} \\
    --pid-file=/run/munge-key/next.pid --seed-file=/run/munge-key/munged.seed --num-threads=4 \\
    </dev/null >/proc/1/fd/1 2>/proc/1/fd/2 &
left=100
until munge -n --socket={NEXT_SOCKET} >/dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || exit 1
    sleep 0.1
done
echo ready
"""
"""Script that starts the next munged, asks it for a credential, and prints `ready`."""

ARM = """set -eu
echo "$1" > /run/munge-key/armed
setsid /bin/sh -c "$0" munge-switch "$1" "$2" </dev/null >/proc/1/fd/1 2>/proc/1/fd/2 &
echo armed
"""
"""Script that starts `SWITCH`, which waits for its times, and prints `armed`."""

DISARM = "rm -f /run/munge-key/armed"
"""Command that makes a waiting `SWITCH` change nothing."""

SWITCH = f"""set -eu
{_SLEEP_UNTIL}
sleep_until "$1"
[ "$(cat /run/munge-key/armed)" = "$1" ] || exit 0
mv -f /run/munge-key/next.key {KEY_IN_USE}
rm -f {SOCKET} {layout.MUNGE_OF_JOBS}/munge.socket.2
sleep_until "$2"
[ ! -e {layout.MUNGE_OF_JOBS_PID} ] || kill -9 "$(cat {layout.MUNGE_OF_JOBS_PID})" || true # it may have ended
mv -f {NEXT_SOCKET} {SOCKET}
rm -f /run/munge-key/armed
former=$(cat /run/munge-key/served_by 2>/dev/null || true)
mv -f /run/munge-key/next.pid /run/munge-key/served_by
[ -z "$former" ] || kill "$former"
"""
"""Script that removes munged's socket at its first argument and puts the next munged's in its place at its second.

The container's own munged keeps running without a socket, because the container would end with it. A munged of an
earlier rotation ends. The one for jobs restarts with the key that is in use by then.
"""

PAUSE = f"""set -u
{_SLEEP_UNTIL}
sleep_until "$1"
paused=""
for partition in $(scontrol show partitions --oneliner | sed -n 's/^PartitionName=\\([^ ]*\\) .* State=UP .*/\\1/p'); do
    scontrol update "partitionname=$partition" state=DOWN && paused="$paused $partition"
done
sleep_until "$2"
for try in $(seq 60); do
    left=""
    for partition in $paused; do scontrol update "partitionname=$partition" state=UP || left="$left $partition"; done
    paused=$left
    [ -n "$paused" ] || break
    sleep 1
done
"""
"""Script that starts no job between its two arguments. It ends on its own, whatever happens to the run that started it;
if slurmctld restarts meanwhile, it takes the state of partitions from slurm.conf."""

_IN_BACKGROUND = 'setsid /bin/sh -c "$0" key-rotation "$1" "$2" </dev/null >/proc/1/fd/1 2>/proc/1/fd/2 &'

_LISTENERS = ("controller", "accounting")
"""Components whose daemons read the messages that must not be lost."""

_OVER_SECONDS = 6.0
"""Seconds from the start of a schedule until it is over."""
_CALLS_AT_ONCE = 32
_AGAIN_SECONDS = 10
_SHOWN = 10


@dataclass(frozen=True)
class Schedule:
    """Times of a change of munged, in milliseconds since 1970 by the clocks of the cluster's machines."""

    start: int

    @property
    def pause(self) -> tuple[int, int]:
        """Time in which no job starts, as messages about jobs come from slurmctld, whose munged changes last."""
        return self.start, self.start + 4400

    @property
    def senders(self) -> tuple[int, int]:
        """Time without munged in workers and login pods. Their last messages arrive in its first half."""
        return self.start + 1000, self.start + 2400

    @property
    def listeners(self) -> tuple[int, int]:
        """Moment at which munged changes for slurmctld and slurmdbd, in the middle of the time without the others."""
        return self.start + 1700, self.start + 1700


@dataclass(frozen=True)
class _File:
    """A file in a container of several pods, and its wanted content."""

    container: str
    path: str
    sum: str
    """SHA-256 sum of the content, in hexadecimal digits."""

    def holds_in(self, kube: Kube, pod: Pod) -> bool:
        """Return True if the pod has this content; False also if the container does not answer."""
        try:
            place = kube.transport(pod.body["metadata"]["namespace"], pod.name, self.container)
            answer = place.run(["sha256sum", self.path], timeout_seconds=20)
        except TransportError:
            return False  # the container restarts, or the pod is going: the next look shows it
        return answer.returncode == 0 and answer.stdout.startswith(f"{self.sum} ")


@dataclass(frozen=True)
class KeyRotation:
    """Changes the keys of a running cluster."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]
    """Labels of all pods of the cluster."""
    report: Report
    clock: Clock

    def munge_pods(self) -> list[Pod]:
        """Return the pods in which munged runs."""
        pods = find_pods(self.kube, self.namespace, {**self.selector})
        return [pod for pod in pods if not pod.going and pod.runs(MUNGED)]

    def munge(self, secret: str, key: str) -> None:
        """Make every running pod use the munge key of a Secret, while jobs run.

        Raises:
            NotReadyError: a pod did not get the key, or cannot use it. munged has changed nowhere.
        """
        for attempt in range(1, ATTEMPTS + 1):
            running = self.munge_pods()
            if not running:
                return
            wanted = self._sum(secret, key)
            pods = self._without(_File(MUNGED, KEY_IN_USE, wanted), running)
            if not pods:
                return
            self._require_mount(pods, secret)
            self._await_mounted(_File(MUNGED, MOUNTED_KEY, wanted), pods, "the new munge key")
            unless_cancelled()
            self._switch(self._still(pods), lead_factor=attempt)
        raise NotReadyError(
            f"The munge key of namespace {self.namespace} is not the same in all pods after {ATTEMPTS} attempts: "
            f"{_names(pods)} still use the former one, so other daemons refuse their messages. Run again at once."
        )

    def _require_mount(self, pods: Sequence[Pod], secret: str) -> None:
        """Refuse a Secret that the pods don't mount: they would never receive the new key.

        Raises:
            NotReadyError: the pods mount another Secret.
        """
        for pod in pods:
            mounted = pod.secrets()
            if secret not in mounted:
                raise NotReadyError(
                    f"The pods of namespace {self.namespace} do not read the Secret {secret}, so it cannot change "
                    "the munge key while they run. Copy the current key into it, run again, and change its key "
                    "after that."
                )

    def ssh_host(self, secret: str, key: str) -> None:
        """Make every sshd read the host key of a Secret. Open sessions stay.

        Raises:
            NotReadyError: login pods did not get the key in time, or have no sshd.
        """
        sshd = Sshd(self.kube, self.namespace, self.selector)
        if not (running := sshd.running()):
            return
        file = _File("sshd", layout.SSH_HOST_KEY, self._sum(secret, key))
        self._await_mounted(file, running, "the new host key")
        sshd.activate({}, {})

    def _sum(self, secret: str, key: str) -> str:
        found = self.kube.get(secret_path(self.namespace, secret)) or {}
        data = (found.get("data") or {}).get(key)
        if data is None:
            raise NotReadyError(
                f"Secret {self.namespace}/{secret} has no key {key}, so no pod can get it. Create it and run again."
            )
        return hashlib.sha256(base64.b64decode(data)).hexdigest()

    def _await_mounted(self, file: _File, pods: Sequence[Pod], what: str) -> None:
        """Wait until the kubelets have delivered the file."""
        self._await(file, pods, what, SYNC_SECONDS, self._ask_kubelets)

    def _await(
        self, file: _File, pods: Sequence[Pod], what: str, seconds: float, act: Callable[[Sequence[Pod]], float]
    ) -> None:
        """Act until all pods that still exist have the file. `act` returns the seconds until it is due again."""
        waiting, due = [*pods], float("-inf")
        for left in until(self.clock.now() + seconds, self.clock):
            waiting = self._without(file, self._still(waiting))
            if not waiting:
                return
            if self.clock.now() >= due:
                self.report(f"waits for {what} in {_names(waiting)}, {left:.0f} s left")
                due = act(waiting) + self.clock.now()
        raise NotReadyError(
            f"{what} is not in {_names(waiting)} of namespace {self.namespace} after {seconds:.0f} s. Check the "
            "kubelets of their machines, or delete the pods of a machine that is gone. Run again to continue."
        )

    def _ask_kubelets(self, pods: Sequence[Pod]) -> float:
        self._in_all(pods, lambda pod: ask_kubelet(self.kube, pod))
        return _AGAIN_SECONDS

    def _switch(self, pods: Sequence[Pod], *, lead_factor: int) -> None:
        """Change munged in these pods at one moment, and wait until that is over. An earlier failure changes nothing.

        Raises:
            NotReadyError: munged does not start with the new key in a pod, or a clock is off.
        """
        if not pods:
            return
        self.report(f"starts munged with the new key in {_names(pods)}")
        began = self.clock.wall()
        ready = self._in_all(pods, lambda pod: self._run(pod, MUNGED, ["/bin/sh", "-c", PREPARE]).strip() == "ready")
        if unready := [pod for pod, is_ready in zip(pods, ready, strict=True) if not is_ready]:
            raise NotReadyError(
                f"munged does not start with the new key in {_names(unready)} of namespace {self.namespace}, so no pod "
                "changes to it. A munge key has 32 to 1024 bytes. Look at the log of the container munged, and run "
                "again."
            )
        offset = self._offset(pods)
        ahead = lead_factor * (2 + self.clock.wall() - began)
        schedule = Schedule(int((self.clock.wall() + offset + ahead) * 1000))
        until_start = self.clock.now() + ahead
        armed = self._in_all(pods, lambda pod: self._arm(pod, schedule))
        if not all(armed) or self.clock.now() > until_start:
            self._in_all(pods, lambda pod: self._run(pod, MUNGED, ["/bin/sh", "-c", DISARM]))
            self.report("not all pods were ready in time: nothing has changed, tries again")
            return
        for pod in pods:
            if pod.component == "controller":
                self._run(pod, "slurmctld", ["/bin/sh", "-c", _IN_BACKGROUND, PAUSE, *map(str, schedule.pause)])
        self.report(f"all {len(pods)} pods change to the new munge key in {until_start - self.clock.now():.0f} s")
        say = saying(self.report, "all pods change to the new munge key")
        for _ in until(until_start + _OVER_SECONDS, self.clock, first=1.0, say=say):
            pass

    def _offset(self, pods: Sequence[Pod]) -> float:
        """Return by how many seconds the machines' clocks are ahead of this machine's clock.

        Raises:
            NotReadyError: they differ from each other by more than the schedule tolerates.
        """
        looks = self._in_all(pods, self._clock)
        middle = statistics.median(offset for offset, _ in looks)
        far = [
            pod
            for pod, (offset, error) in zip(pods, looks, strict=True)
            if abs(offset - middle) > CLOCK_SECONDS + error
        ]
        if far:
            raise NotReadyError(
                f"The clocks of the machines of {_names(far)} differ from the others' by more than {CLOCK_SECONDS} s, "
                "so no pod changes to the new munge key. Synchronize them with a time server, and run again."
            )
        return middle

    def _clock(self, pod: Pod) -> tuple[float, float]:
        """Return by how many seconds a pod's clock is ahead of this machine's, and the largest error of that figure."""
        asked = self.clock.wall()
        text = self._run(pod, MUNGED, ["date", "+%s%3N"]).strip()
        answered = self.clock.wall()
        offset = int(text) / 1000 - (asked + answered) / 2 if text.isdecimal() else 0.0
        return offset, (answered - asked) / 2 if text.isdecimal() else math.inf

    def _arm(self, pod: Pod, schedule: Schedule) -> bool:
        times = schedule.listeners if pod.component in _LISTENERS else schedule.senders
        return self._run(pod, MUNGED, ["/bin/sh", "-c", ARM, SWITCH, *map(str, times)]).strip() == "armed"

    def _still(self, pods: Sequence[Pod]) -> list[Pod]:
        """Return the pods that still exist. A new pod starts with the new key."""
        uids = {pod.uid for pod in pods}
        found = find_pods(self.kube, self.namespace, {**self.selector})
        return [pod for pod in found if pod.uid in uids and not pod.going and not pod.ended]

    def _without(self, file: _File, pods: Sequence[Pod]) -> list[Pod]:
        found = self._in_all(pods, lambda pod: file.holds_in(self.kube, pod))
        return [pod for pod, holds in zip(pods, found, strict=True) if not holds]

    def _run(self, pod: Pod, container: str, command: Sequence[str]) -> str:
        """Return the output of a command; empty if the pod is being deleted, which the next look shows."""
        try:
            return self.kube.transport(self.namespace, pod.name, container).run(command, timeout_seconds=20).stdout
        except TransportError:
            return ""

    def _in_all(self, pods: Sequence[Pod], call: Callable[[Pod], T]) -> list[T]:
        """Return the answers of all pods, which are called concurrently."""
        with ThreadPoolExecutor(_CALLS_AT_ONCE) as threads:
            return [*threads.map(call, pods)]


def _names(pods: Sequence[Pod]) -> str:
    return f"{counted(len(pods), 'pod')} ({listed((pod.name for pod in pods), _SHOWN)})"
