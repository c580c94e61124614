"""Answers of Slurm 24.11.5, recorded from a cluster; GPUs are added, as the test cluster has none."""

import json

from slurm_exporter.job_rows import _WIDTHS

_NODE = (
    "Arch=x86_64 CoresPerSocket=1  CPUAlloc={alloc} CPUEfctv=2 CPUTot=2 CPULoad=0.81 AvailableFeatures=gpu "
    "ActiveFeatures=gpu Gres=gpu:h100:8(S:0-1),shard:h100:16(S:0) GresDrain=N/A GresUsed={used} NodeAddr=10.244.0.166 "
    "NodeHostName={name} Version=24.11.5 OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1024 AllocMem={memory} "
    "FreeMem=17151 Sockets=2 Boards=1 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=2 Owner=N/A MCS_label=N/A "
    "Partitions=main  BootTime=1795446123 SlurmdStartTime=1795446123 LastBusyTime=1795446124 ResumeAfterTime=None "
    "CfgTRES=cpu=2,mem=1G,billing=2 AllocTRES={tres} CurrentWatts=0 AveWatts=0 "
)
NODES = "\n".join(
    f"NodeName={name} "
    + _NODE.format(name=name, alloc=alloc, memory=memory, state=state, tres=tres, used=used).rstrip()
    + reason
    for name, alloc, memory, state, tres, used, reason in (
        (
            *("gpu-1", 0, 0, "IDLE+DRAIN+DYNAMIC_NORM", "", "gpu:h100:0(IDX:N/A),shard:h100:0"),
            "  Reason=health gpu_count: 7, allowed 8 [slurm@1795446127]  Extra=health:gpu_slowdown,clock",
        ),
        ("gpu-0", 1, 512, "MIXED+DYNAMIC_NORM", "cpu=1,mem=512M", "gpu:h100:3(IDX:0-1,4),shard:h100:0(0/16)", ""),
    )
)

_JOB = {
    "JobID": "7",
    "UserName": "alice",
    "Account": "physics",
    "Partition": "main",
    "State": "RUNNING",
    "Reason": "None",
    "SubmitTime": "1795446126",
    "StartTime": "1795446130",
    "EndTime": "1826982126",
    "NumCPUs": "384",
    "NumNodes": "2",
    "tres-alloc": "cpu=384,mem=1.5T,node=2,billing=384,gres/gpu=16",
    "NodeList": "gpu-[0,3]",
    "JobArrayID": "7",
    "Name": "a b=c|d",
}


def job_line(**changes: str) -> bytes:
    """Return a line of squeue. `tres-alloc` is given as `**{"tres-alloc": ...}`."""
    columns = {**_JOB, **changes}
    return "".join(f"{columns[name][:width]:<{width}}" for name, width in _WIDTHS.items()).encode() + b"\n"


DIAG = json.dumps(
    {
        "statistics": {
            "server_thread_count": 1,
            "agent_queue_size": 0,
            "dbd_agent_queue_size": 0,
            "schedule_cycle_max": 235,
            "schedule_cycle_last": 235,
            "schedule_queue_length": 1,
            "jobs_submitted": 11,
            "jobs_started": 1,
            "jobs_completed": 0,
            "jobs_canceled": 0,
            "jobs_failed": 0,
            "bf_backfilled_jobs": 1,
            "bf_cycle_last": 2024,
            "bf_cycle_max": 2024,
            "bf_last_depth": 1,
        }
    }
)
