"""slurmctld as its client programs show it: command lines in, Slurm's JSON and words (24.11) out.

It takes the very command lines that `ScontrolClient` sends.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence

from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.clock import EPOCH
from tests.fakes.slurmctld import SLOTS, UNKNOWN, Job, Record, Slurmctld

_UNREACHABLE = Answer(1, "", "Unable to contact slurm controller (connect failure)")
_UNEXPECTED = Answer(1, "", "Unexpected message received")
_YEAR_SECONDS = 365 * 24 * 3600
"""After so long a job without a limit ends, slurmctld says."""


class Programs:
    """scontrol, squeue and scancel of one slurmctld."""

    def __init__(self, slurm: Slurmctld) -> None:
        self._slurm = slurm
        self.commands: list[str] = []
        """Command lines in the order in which they were run."""

    def run(self, command: Sequence[str]) -> Answer:
        """Answer a command line."""
        self.commands.append(" ".join(command))
        if self._slurm.up:
            return self._answer([*command])
        return _UNEXPECTED if command[1] == "requeue" else _UNREACHABLE

    def _answer(self, command: list[str]) -> Answer:
        match command:
            case ["scontrol", "ping"]:
                return Answer(0, "", "")
            case ["scontrol", "reconfigure"]:
                self._slurm.on_reconfigure()
                return Answer(0, "", "")
            case ["scontrol", "show", "nodes", "--json"]:
                return self._said("nodes", map(self._node, self._slurm.nodes.values()))
            case ["scontrol", "show", "reservations", "--json"]:
                return self._said("reservations", map(self._reservation, self._slurm.reservations))
            case ["squeue", "--json", "--all"]:
                return self._said("jobs", map(self._job, self._slurm.jobs.values()))
            case ["scontrol", "update", where, what, *more] if where.startswith("nodename="):
                return self._update(expand(where[9:]), what, more)
            case ["scontrol", "delete", where] if where.startswith("nodename="):
                return self._delete(expand(where[9:]))
            case ["scontrol", "requeue", "Incomplete", ids]:
                return self._each("requeue", ids, self._requeue)
            case ["scancel", *ids]:
                return self._each("cancel", ",".join(ids), self._cancel)
        raise AssertionError(f"the model knows no {command!r}")

    def _said(self, key: str, entries: Iterable[Json]) -> Answer:
        update = {"set": True, "infinite": False, "number": int(EPOCH + self._slurm.changed_at)}
        return Answer(0, json.dumps({key: list(entries), "last_update": update, "errors": [], "warnings": []}), "")

    def _update(self, names: Sequence[str], what: str, more: Sequence[str]) -> Answer:
        reason = next((word[7:] for word in more if word.startswith("reason=")), None)
        verb = what.removeprefix("state=").lower()
        assert verb in {"drain", "resume", "undrain"}, what
        unknown = set(names) - self._slurm.nodes.keys()
        names = [name for name in names if name in self._slurm.nodes]
        self._slurm.reason = reason or ""
        self._slurm.on_command("drain" if verb == "drain" else "resume", frozenset(names))
        if verb == "drain":
            assert reason, "Slurm wants a reason"
            self._slurm.drain(names, reason)
        else:
            self._slurm.resume(names, undrain=verb == "undrain")
            for name in names:
                self._slurm.nodes[name].reason = self._slurm.nodes[name].reason if reason is None else reason
        self._slurm.schedule()
        return Answer(1, "", f"slurm_update error: {UNKNOWN}") if unknown else Answer(0, "", "")

    def _delete(self, names: Sequence[str]) -> Answer:
        self._slurm.on_command("delete", frozenset(names) & frozenset(self._slurm.nodes))
        # Slurm goes through a list from its end.
        failures = {name: words for name in reversed(names) if (words := self._slurm.delete(name))}
        if not failures:
            return Answer(0, "", "")
        left, last = ",".join(name for name in names if name in failures), [*failures.values()][-1]
        words = f"scontrol: error: failed to delete nodes {left}\ndelete_node nodename={','.join(names)}: {last}"
        return Answer(1, "", words)

    def _each(self, verb: str, ids: str, act: Callable[[Job | None], str]) -> Answer:
        wanted = [int(number) for number in ids.split(",")]
        touched = (self._slurm.jobs[number] for number in wanted if number in self._slurm.jobs)
        self._slurm.on_command(verb, frozenset(str(job.job_id) for job in touched if job.nodes and not job.completing))
        words = [reported for number in wanted if (reported := act(self._slurm.jobs.get(number)))]
        self._slurm.schedule()
        return Answer(1 if words else 0, "", "\n".join(words))

    def _requeue(self, job: Job | None) -> str:
        if job is None:
            return "Invalid job id specified for job 0"
        if not job.nodes or job.completing:
            return ""  # "Incomplete" passes over what has ended, and what waits
        if not (job.requeue and job.batch):
            return f"Requested operation is presently disabled for job {job.job_id}"
        if self._slurm.requeue_fails:
            self._slurm.requeues_refused.add(job.job_id)
            return f"Unspecified error for job {job.job_id}"
        self._slurm.end(job, "PENDING", requeue=True)
        return ""

    def _cancel(self, job: Job | None) -> str:
        if job is not None and not job.finished and not job.completing:
            self._slurm.end(job, "CANCELLED")
        return ""

    def _node(self, record: Record) -> Json:
        jobs = self._slurm.on(record.name)
        working = sum(1 for job in jobs if job.state == "RUNNING")
        base = "ALLOCATED" if working >= SLOTS else "MIXED" if working else "IDLE"
        flags = {
            "DRAIN": record.drain,
            "FAIL": record.fail,
            "NOT_RESPONDING": record.name in self._slurm.silent_since or self._slurm.now < record.pinged_at,
            "COMPLETING": any(job.completing for job in jobs),
            "RESERVED": any(record.name in names for names in self._slurm.reservations.values()),
        }
        state = ["DOWN" if record.down else base, *(flag for flag, is_set in flags.items() if is_set), "DYNAMIC_NORM"]
        return {
            "name": record.name,
            "state": [*record.shown] or state,
            "reason": record.reason,
            "reason_changed_at": {"set": True, "infinite": False, "number": int(EPOCH + record.set_at)},
            "features": [record.name.rpartition("-")[0]],
            "active_features": [record.name.rpartition("-")[0]],
            "weight": record.weight,
            "real_memory": record.memory_mib,
            "effective_cpus": record.cpus,
            "partitions": ["main"],
            "gres": record.gres,
            "extra": record.extra,
        }

    def _job(self, job: Job) -> Json:
        flags = [flag for flag in ("CONFIGURING", "COMPLETING") if getattr(job, flag.lower())]
        limit_seconds = _YEAR_SECONDS if job.limit_seconds is None else job.limit_seconds
        ends = int(EPOCH + job.started_at + limit_seconds) if job.nodes else 0
        return {
            "job_id": job.job_id,
            "user_name": "alice",
            "name": f"job{job.job_id}",
            "partition": job.partition,
            "job_state": [job.state, *flags],
            "nodes": ",".join(job.nodes),
            "node_count": {"set": True, "infinite": False, "number": job.width},
            "memory_per_node": {"set": True, "infinite": False, "number": job.memory_mib},
            "minimum_cpus_per_node": {"set": True, "infinite": False, "number": job.cpus},
            "required_nodes": ",".join(sorted(job.required)),
            "time_limit": {
                "set": job.limit_seconds is not None,
                "infinite": job.limit_seconds is None,
                "number": int((job.limit_seconds or 0) // 60),
            },
            "end_time": {"set": ends > 0, "infinite": False, "number": ends},
            "requeue": job.requeue,
            "batch_flag": job.batch,
        }

    def _reservation(self, name: str) -> Json:
        return {
            "name": name,
            "node_list": ",".join(sorted(self._slurm.reservations[name])),
            "start_time": {"set": True, "infinite": False, "number": int(EPOCH)},
            "end_time": {"set": True, "infinite": False, "number": int(EPOCH + 10_000_000)},
            "users": "root",
            "accounts": "",
        }


def expand(expression: str) -> list[str]:
    """Return the names of a hostlist expression: written for the model, so that an error in the product's shows."""
    names = []
    for prefix, ranges in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", expression):
        if not ranges:
            names.append(prefix)
        for word in filter(None, ranges.split(",")):
            first, _, last = word.partition("-")
            names += [f"{prefix}{number}" for number in range(int(first), int(last or first) + 1)]
    return names
