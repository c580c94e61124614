"""Next steps for the user after a drain stopped, from the jobs and nodes that it waited for."""

from collections.abc import Iterable, Iterator

from soperator_pulumi.slurm.drain.formatting import named
from soperator_pulumi.slurm.drain.plan import Plan
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.wording import listed

_JOBS_IN_A_LINE = 3


def next_steps(plan: Plan, jobs: Iterable[Job], cluster: str) -> Iterator[str]:
    """Yield the next steps, one per line.

    Args:
        plan: Plan that stopped.
        jobs: Jobs that hold nodes.
        cluster: Name of the cluster.
    """
    running = [job for job in jobs if "COMPLETING" not in job.state]
    completing = [job for job in jobs if "COMPLETING" in job.state]
    if running:
        numbers = " ".join(job.reference for job in running[:_JOBS_IN_A_LINE])
        yield (
            f"Wait for the jobs and run again; or cancel them (scancel {numbers}) or requeue them "
            f"(scontrol requeue {numbers.replace(' ', ',')}); or raise the node set's drain.timeout."
        )
        yield (
            f"For one run only: SOPERATOR_DRAIN='{cluster}: {{timeout: 1d}}' before the command, "
            f"or SOPERATOR_DRAIN='{cluster}: {{on_timeout: requeue}}' ({{on_timeout: cancel}} cancels the jobs)."
        )
    if completing:
        nodes = compress(
            name for name, held in plan.waiting.items() if any("COMPLETING" in job.state for job in held.jobs)
        )
        yield (
            f"Still completing: {listed(map(named, completing), _JOBS_IN_A_LINE)}. Their processes or the epilog do "
            f"not end: look at {nodes}; to give up processes that can't be ended: scontrol update "
            f"nodename={nodes} state=down reason=..."
        )
    lost = [name for name, waiting in plan.waiting.items() if not waiting.jobs]
    if lost:
        yield (
            f"{compress(lost)}: see scontrol show node. A node that slurmctld has lost registers again after slurmd "
            "restarts: delete its pod if nothing runs in it."
        )
