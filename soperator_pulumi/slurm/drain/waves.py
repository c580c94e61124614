"""Which nodes are renewed next when the pods of a node set have changed."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from soperator_pulumi.spec.types.int_or_percent import Share


def next_wave(
    outdated: Sequence[str],
    unavailable: AbstractSet[str],
    total: int,
    max_unavailable: Share,
    busy: Mapping[str, float],
) -> tuple[str, ...]:
    """Return the nodes to drain and renew now; empty while as many are out of service as may be.

    Nodes that are out of service anyway and hold no job come first and at once, as renewing them takes nothing away;
    then idle ones; then those whose jobs end first. A node that is out of service while jobs go on on it is waited for
    when nothing else is left to do.

    Args:
        outdated: The nodes whose pods are of an older template, those that are being renewed among them.
        unavailable: The node set's nodes that no job can start on: missing, not ready, draining or drained.
        total: How many nodes the node set is to have.
        max_unavailable: How many may be unavailable at a time; one always may.
        busy: By name, when the last job of a node ends, in seconds since 1970; infinity without a time limit. Nodes
            without jobs are not in it.
    """
    room = max(1, max_unavailable.of(total)) - len(unavailable)
    out = [name for name in outdated if name in unavailable]
    in_service = [name for name in outdated if name not in unavailable]
    in_service.sort(key=lambda name: busy.get(name, 0.0))
    wave = [name for name in out if name not in busy] + in_service[: max(0, room)]
    return tuple(wave or out)
