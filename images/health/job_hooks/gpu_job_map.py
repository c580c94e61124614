"""Files that tell dcgm-exporter the job of every GPU: named by the GPU's index, with the job's id as content.

Source: dcgm-exporter's README, "Enabling HPC job mapping on DCGM-Exporter". The folder is the machine's, mounted in the
worker's container alone: no job sees it. A job has its GPUs alone, so a file has one line, and what an earlier job may
have left is overwritten.
"""

import re
from pathlib import Path

from job_hooks.job_on_node import JobOnNode

FOLDER = "/var/lib/soperator/gpu-jobs"
"""Folder in the worker's container (`soperator_pulumi/render/layout.py`)."""

_DRIVER = "/proc/driver/nvidia/gpus"


def write(job: JobOnNode, folder: str = FOLDER, driver: str = _DRIVER) -> str:
    """Write the job's id into the files of its GPUs. Return the reason of a failure; empty if it succeeded."""
    try:
        for index in _indexes(job, driver):
            (Path(folder) / str(index)).write_text(f"{job.job_id}\n")
    except OSError as error:
        return _words(error, folder)
    return ""


def remove(job: JobOnNode, folder: str = FOLDER, driver: str = _DRIVER) -> str:
    """Remove the files of the job's GPUs, unless another job has written them since."""
    try:
        for index in _indexes(job, driver):
            file = Path(folder) / str(index)
            if file.exists() and file.read_text().strip() == job.job_id:
                file.unlink()
    except OSError as error:
        return _words(error, folder)
    return ""


def _indexes(job: JobOnNode, driver: str) -> list[int]:
    """Return the driver's indexes of the job's GPUs: their places in the order of PCI addresses.

    Slurm counts by minor numbers, which some machines give in another order. Without the driver's files, minor
    numbers are used.
    """
    minors = [_minor(path) for path in sorted(Path(driver).glob("*/information"))]
    return [minors.index(gpu) if gpu in minors else gpu for gpu in job.gpus]


def _minor(information: Path) -> int:
    found = re.search(r"Device Minor:\s*(\d+)", information.read_text(errors="replace"))
    return int(found[1]) if found else -1


def _words(error: OSError, folder: str) -> str:
    if not Path(folder).is_dir():
        return f"{folder} is missing: this pod is older than hooks.job_mapping"
    return f"{error.filename}: {error.strerror}"
