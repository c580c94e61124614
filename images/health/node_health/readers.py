"""Takes the readings that a round needs: starts all programs at once, and reads kernel files meanwhile."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from node_health import earlier_rounds, file_systems, kernel_files, kernel_log, smi, smi_tables
from node_health.bounded import BoundedCall, BoundedProgram, BoundedWork, ProgramEnd, is_there
from node_health.check_settings import NodeSettings, PodVolume
from node_health.readings import Port, Readings, VolumeUse

SMI_PLACES = ("/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi")
"""Paths of nvidia-smi: of NVIDIA's container toolkit, and of a driver folder, as on GKE."""

_SMI_LIBRARIES = {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}

_INFOROM_STATUS = 14
"""Exit status of nvidia-smi that warns of a damaged infoROM but describes all GPUs (nvidia-smi(1))."""


class Readers:
    """Readings of one round.

    Args:
        settings: Settings of the node.
        memory: Memory of earlier rounds, changed in place.
        seconds: Bound of each program and of each question to a file system.
        now: Time in seconds.
        smi_seconds: Bound of nvidia-smi. Default: that of each program.
        root: Folder with the kernel's files, for tests.
    """

    def __init__(
        self,
        settings: NodeSettings,
        memory: dict[str, Any],
        seconds: float,
        now: float,
        *,
        smi_seconds: float | None = None,
        root: str = "",
    ) -> None:
        self._settings, self._memory, self._seconds, self._now, self._root = settings, memory, seconds, now, root
        self._smi_seconds = smi_seconds or seconds
        self._left: dict[str, int] = memory.setdefault("left", {})
        self._started: dict[str, BoundedWork | None] = {}

    def take(self, wanted: set[str]) -> Readings:
        """Return the readings of the wanted sources."""
        readings = Readings(self._settings)
        readings.busy = kernel_files.is_busy(self._root)
        readings.has_smi = bool(_smi_place(self._root))
        programs, files = self._programs(readings), self._files(readings)
        for name in wanted & programs.keys():
            programs[name][0]()
        for name in wanted & files.keys():
            files[name]()
        for name in wanted & programs.keys():
            programs[name][1]()
        if "kernel" in wanted:
            self._read_kernel(readings)  # after nvidia-smi, which shows what is over
        return readings

    def _programs(self, readings: Readings) -> dict[str, tuple[Callable[[], None], Callable[[], None]]]:
        """Return how the programs of every source are started, and how their output becomes readings."""
        return {
            "smi": (lambda: self._smi("smi", "-q", "-x"), lambda: self._read_smi(readings)),
            "links": (self._start_links, lambda: self._read_links(readings)),
            "peers": (lambda: self._smi("peers", "topo", "-p2p", "r"), lambda: self._read_peers(readings)),
            "volumes": (self._start_volumes, lambda: self._read_volumes(readings)),
            "slurmd": (
                lambda: self._start("slurmd", "scontrol", "show", "slurmd"),
                lambda: self._read_slurmd(readings),
            ),
            "program": (self._start_program, lambda: self._read_program(readings)),
        }

    def _files(self, readings: Readings) -> dict[str, Callable[[], None]]:
        return {
            "ports": lambda: self._read_ports(readings),
            "machine": lambda: self._read_machine(readings),
            "clock": lambda: setattr(readings, "clock_error_seconds", kernel_files.clock_error_seconds()),
        }

    def _start(
        self, name: str, *command: str, seconds: float | None = None, variables: Mapping[str, str] | None = None
    ) -> None:
        """Start a program, unless an earlier round left one that could not be ended."""
        self._begin(name, lambda: BoundedProgram(command, seconds or self._seconds, variables))

    def _call(self, name: str, function: Callable[[], Iterable[str]]) -> None:
        """Start a function, unless an earlier round left one that could not be ended."""
        self._begin(name, lambda: BoundedCall(function, self._seconds))

    def _begin(self, name: str, begin: Callable[[], BoundedWork]) -> None:
        hangs = self._left.pop(name, 0)
        if hangs and is_there(hangs):
            self._left[name] = hangs
            self._started[name] = None
        else:
            self._started[name] = begin()

    def _finish(self, name: str) -> ProgramEnd | None:
        """Return the end of a program; None for one that was not started."""
        if name not in self._started:
            return None
        program = self._started[name]
        outcome = program.finish() if program else ProgramEnd(None)
        if outcome.left:
            self._left[name] = outcome.left
        return outcome

    def _smi(self, name: str, *arguments: str, seconds: float | None = None) -> None:
        if place := _smi_place(self._root):
            variables = None if place == SMI_PLACES[0] else _SMI_LIBRARIES
            self._start(name, place, *arguments, seconds=seconds or self._smi_seconds, variables=variables)

    def _read_smi(self, readings: Readings) -> None:
        outcome = self._finish("smi")
        if outcome is None:
            return
        readings.smi_warnings = smi.warnings(outcome.output)
        readings.smi_problem = self._smi_problem(outcome)
        try:
            # nvidia-smi ends with a status for one lost GPU and describes the others all the same.
            readings.gpus = self._gpus(outcome.output) if outcome.status is not None else None
        except ValueError as error:
            readings.smi_problem = readings.smi_problem or str(error)
        if readings.gpus is None:
            return
        replays = {gpu.name: gpu.replays for gpu in readings.gpus if gpu.replays is not None}
        readings.replays = earlier_rounds.increases(self._snapshots("replays"), self._now, replays)
        # By their slots: the index of a GPU changes when one before it is lost.
        widths = {gpu.address: gpu.width for gpu in readings.gpus if gpu.width is not None}
        best = earlier_rounds.keep(self._memory.setdefault("widths", {}), widths)
        readings.best_widths = {gpu.name: best.get(gpu.address, 0) for gpu in readings.gpus}

    def _gpus(self, output: str) -> tuple[smi.Gpu, ...]:
        """Return the GPUs in an answer. If it contains forged GPUs, ask for every GPU separately."""
        try:
            return smi.parse_query(output)
        except smi.ForgedAnswerError as error:
            numbers = range(error.attached)
        for number in numbers:
            self._smi(f"smi {number}", "-q", "-x", "-i", str(number), seconds=self._seconds)
        ends = [self._finish(f"smi {number}") for number in numbers]
        return tuple(smi.parse_alone(end.output if end else "", number) for number, end in enumerate(ends))

    def _smi_problem(self, outcome: ProgramEnd) -> str:
        """Return the failure of nvidia-smi in words; empty if it succeeded, or warned about the infoROM only."""
        if outcome.status is None:
            return f"no answer in {self._smi_seconds:g} s"
        if outcome.status in {0, _INFOROM_STATUS}:
            return ""
        return smi.first_words(f"{outcome.errors}\n{outcome.output}") or f"status {outcome.status}"

    def _start_links(self) -> None:
        self._smi("links", "nvlink", "--status")
        self._smi("link_errors", "nvlink", "--errorcounters")

    def _read_links(self, readings: Readings) -> None:
        links, errors = self._finish("links"), self._finish("link_errors")
        if links is not None and links.status == 0:
            readings.links, readings.bridges = (
                smi_tables.parse_links(links.output),
                smi_tables.parse_bridges(links.output),
            )
            active = {gpu: float(sum(state.values())) for gpu, state in {**readings.links, **readings.bridges}.items()}
            readings.best_links = earlier_rounds.keep(self._memory.setdefault("links", {}), active)
        if errors is not None and errors.status == 0:
            counted = smi_tables.parse_link_errors(errors.output)
            readings.link_errors = earlier_rounds.increases(self._snapshots("links"), self._now, counted)

    def _read_peers(self, readings: Readings) -> None:
        outcome = self._finish("peers")
        if outcome is not None and outcome.status == 0 and self._settings.gpus > 1:
            try:
                readings.peers = smi_tables.parse_peers(outcome.output)
            except ValueError:
                readings.peers = None

    def _start_volumes(self) -> None:
        for volume in self._settings.volumes:
            writing = not volume.shared and not volume.read_only
            self._call(volume.path, partial(file_systems.use, volume.path, writing=writing))
        self._call("jail", partial(file_systems.active_tree, self._settings.jail))

    def _read_volumes(self, readings: Readings) -> None:
        mounted, read_only = kernel_files.mounted(self._root), kernel_files.read_only(self._root)
        readings.volumes = {}
        for volume in self._settings.volumes:
            use, problem = self._use(volume)
            if volume.path not in mounted:
                use = use._replace(problem="is not mounted")
            elif volume.path in read_only and not volume.read_only:
                use = use._replace(problem="is read-only")
            elif problem and not use.problem and not (readings.busy and use.is_full):
                use = use._replace(problem=f"cannot be written: {problem}")
            readings.volumes[volume.path] = use
        jail = self._finish("jail")
        if jail is not None:
            readings.jail_problem = self._hangs if jail.status is None else "no active tree" if jail.status else ""

    def _use(self, volume: PodVolume) -> tuple[VolumeUse, str]:
        """Return the use of the volume's file system, and the problem with writing; empty if there was none."""
        outcome = self._finish(volume.path)
        if outcome is None:
            return VolumeUse(volume.shared), ""
        fields = outcome.output.split()
        if not fields:
            return VolumeUse(volume.shared, problem=self._problem(outcome)), ""
        blocks, available, inodes, free = map(int, fields)
        use = VolumeUse(
            volume.shared,
            space=100 * (blocks - available) / blocks if blocks else 0,
            inodes=100 * (inodes - free) / inodes if inodes else 0,
        )
        return use, self._problem(outcome)

    def _start_slurmd(self) -> None:
        self._start("slurmd", "scontrol", "show", "slurmd")

    def _read_slurmd(self, readings: Readings) -> None:
        outcome = self._finish("slurmd")
        if outcome is not None:
            readings.slurmd_problem = self._problem(outcome)

    def _start_program(self) -> None:
        if self._settings.program:
            self._start("program", *self._settings.program, seconds=self._settings.program_seconds)

    def _read_program(self, readings: Readings) -> None:
        outcome = self._finish("program")
        if outcome is None:
            return
        if outcome.status is None:
            readings.program_problem = f"no answer in {self._settings.program_seconds:g} s"
        else:
            status = f"status {outcome.status}"
            problem = status if outcome.words == status else f"{status}: {outcome.words}"
            readings.program_problem = problem if outcome.status else ""

    def _read_ports(self, readings: Readings) -> None:
        found = kernel_files.ports(self._root)
        best: dict[str, float] = self._memory.setdefault("ports", {})
        lost = [name for name in best if name not in found or not found[name].active]
        slow = [
            f"{name} {port.rate_gbps:g} Gb/s" for name, port in found.items() if _is_slower(port, best.get(name, 0))
        ]
        best.update({name: max(best.get(name, 0), port.rate_gbps) for name, port in found.items() if port.active})
        counters = {
            f"{name} {counter}": value for name, port in found.items() for counter, value in port.counters.items()
        }
        readings.ports, readings.lost_ports, readings.slow_ports = found, lost, slow
        readings.port_errors = earlier_rounds.increases(self._snapshots("ports"), self._now, counters)

    def _read_machine(self, readings: Readings) -> None:
        readings.available_mib = kernel_files.available_mib(self._root)
        limit = self._settings.process_limit
        readings.process_ids, readings.users_process_ids = kernel_files.process_ids(self._root, limit)
        readings.memory_errors = kernel_files.memory_errors("ue_count", self._root)
        corrected = kernel_files.memory_errors("ce_count", self._root)
        readings.corrected_memory_errors = earlier_rounds.increases(self._snapshots("memory"), self._now, corrected)

    def _read_kernel(self, readings: Readings) -> None:
        log = kernel_log.KernelLog(self._memory.setdefault("kernel", {}), kernel_files.boot(self._root))
        gpus = readings.gpus or ()
        log.settle(gpu.address for gpu in gpus if gpu.asks_nothing)
        if gpus and all(gpu.asks_nothing and not gpu.fabric_problems for gpu in gpus):
            log.settle_switches()
        try:
            log.add(kernel_log.records(f"{self._root}/dev/kmsg"))
        except OSError:
            return  # most containers have none
        readings.kernel = log.failures(kernel_files.uptime_seconds(self._root))

    def _snapshots(self, name: str) -> list[Any]:
        snapshots: list[Any] = self._memory.setdefault("counters", {}).setdefault(name, [])
        return snapshots

    @property
    def _hangs(self) -> str:
        return f"no answer in {self._seconds:g} s"

    def _problem(self, outcome: ProgramEnd) -> str:
        """Return the failure of a program in words; empty if it succeeded."""
        if outcome.status is None:
            return self._hangs
        return outcome.words if outcome.status else ""


def _is_slower(port: Port, before: float | None) -> bool:
    return port.active and before is not None and port.rate_gbps < before


def _smi_place(root: str) -> str:
    return next((f"{root}{place}" for place in SMI_PLACES if os.access(f"{root}{place}", os.X_OK)), "")
