"""Tables of nvidia-smi, parsed: links between GPUs, their errors, and pairs of GPUs."""

import re
from collections.abc import Iterator

from node_health.gpu_models import is_board
from node_health.patterns import pattern

_OF_GPU = pattern(r"GPU (\d{1,3}): (.*)")
_LINK = pattern(r"\s*Link (\d{1,3}): (.*)")
_COUNTER = pattern(r"\s*Link (\d{1,3}): (.+): (\d{1,15})\s*$")
_IS_ERROR = pattern(r"Error|recovery failed|integrity", re.IGNORECASE)
_IS_CORRECTED = pattern(r"\b(?:FEC|Raw|BER|PLR)\b")
_ESCAPE = pattern(r"\x1b\[[\d;]*m")


def parse_links(output: str) -> dict[str, dict[int, bool]]:
    """Return the active links of GPUs on boards, from `nvidia-smi nvlink --status`.

    If all links of a GPU are down, nvidia-smi lists none: it gets the list of the others. If no GPU has an active link,
    no GPU has a list.
    """
    return _links(output, of_boards=True)


def parse_bridges(output: str) -> dict[str, dict[int, bool]]:
    """Return the active links of other cards. Without a bridge, or on an NVL pair, some or all are missing."""
    return _links(output, of_boards=False)


def _links(output: str, *, of_boards: bool) -> dict[str, dict[int, bool]]:
    found: dict[str, dict[int, bool]] = {}
    for gpu, product, line in _by_gpu(output):
        if is_board(product) is of_boards:
            links = found.setdefault(gpu, {})
            if link := _LINK.match(line):
                links[int(link[1])] = bool(re.match(r"[\d.]+ GB/s", link[2]))
    every = {number for links in found.values() if any(links.values()) for number in links}
    return {gpu: links or dict.fromkeys(every, False) for gpu, links in found.items()}


def parse_link_errors(output: str) -> dict[str, float]:
    """Return counters of errors by place, `GPU 0 link 3 Replay Errors`, from `nvidia-smi nvlink -e`.

    NVLink 5 counts more: the histogram of FEC has good codewords as well, raw and bit error rates are those before the
    correction, and traffic is no error.
    """
    return {
        f"{gpu} link {counter[1]} {counter[2]}": float(counter[3])
        for gpu, _, line in _by_gpu(output)
        if (counter := _COUNTER.match(line)) and _IS_ERROR.search(counter[2]) and not _IS_CORRECTED.search(counter[2])
    }


def parse_peers(output: str) -> list[str]:
    """Return pairs of GPUs without access to each other's memory, from `nvidia-smi topo -p2p r`.

    Raises:
        ValueError: The output has no such table.
    """
    rows = [line.split() for line in _ESCAPE.sub("", output).splitlines() if re.match(r"\s*GPU\d+\s", line)]
    rows = [row for row in rows if len(row) > 1 and not row[1].startswith("GPU")]
    if not rows or any(len(row) != len(rows) + 1 for row in rows):
        raise ValueError("no table of pairs")
    return [
        f"{row[0]}-GPU{column} {status}"
        for row in rows
        for column, status in enumerate(row[1:])
        if status not in {"X", "OK"}
    ]


def _by_gpu(output: str) -> Iterator[tuple[str, str, str]]:
    """Yield the lines of every GPU, with its name and product."""
    gpu, product = "", ""
    for line in output.splitlines():
        if head := _OF_GPU.match(line):
            gpu, product = f"GPU {int(head[1])}", head[2]
        if gpu:
            yield gpu, product, line
