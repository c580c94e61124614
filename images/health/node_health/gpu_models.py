"""Models of NVIDIA's GPUs by their product names: a node set's type, boards and cards, generations of memory."""

import re
from itertools import pairwise

from node_health.patterns import pattern

_WORD = pattern(r"[a-z0-9]+")

_MADE_UP = pattern(r"nvidia|tesla|gpu|hgx|dgx|shared|board|\d+x|sxm\d*")
"""Parts of a type that product names lack: an H100 on a board is an `NVIDIA H100 80GB HBM3`."""

_FORM = pattern(r"(sxm\d?|pcie|nvl(?!ink))")
"""Form factors that types append without a hyphen: `h100pcie`."""

_SIZE = pattern(r"\d+gb?")

_CARD = pattern(r"PCIe|\bNVL\b|\bActive\b|\bFHHL\b", re.IGNORECASE)
_BOARD = pattern(r"\bSXM|\bHBM3|\b(?:H20|H200|H800|B200|B300|GB200|GB300)\b")
_WITH_FABRIC = pattern(r"\b(?:H20|H100|H200|H800|B200|B300|GB200|GB300)\b")
_RETIRES_PAGES = pattern(r"\b(?:Kepler|Maxwell|Pascal|Volta|Turing|V100S?|T4G?|[KMP]\d{1,3}0?|RTX 20\d\d|Quadro)\b")


def is_of_type(wanted: str, product: str) -> bool:
    """Return True for a product whose name has all parts of a type as whole words.

    Args:
        wanted: Type of a node set: `h100`, `h100-sxm5-80gb`, `rtx6000`, `nvidia_a100-pcie`.
        product: Name of a product: `NVIDIA H100 80GB HBM3`.
    """
    words = _WORD.findall(product.lower())
    known = {*words, *(first + second for first, second in pairwise(words))}
    has_size = any(_SIZE.fullmatch(word) for word in words)
    for part in _WORD.findall(_FORM.sub(r"-\1-", wanted.lower())):
        fits = part in known or _MADE_UP.fullmatch(part) or (_SIZE.fullmatch(part) and not has_size)
        if not fits or (part.startswith("sxm") and is_card(product)):
            return False
    return True


def is_card(product: str) -> bool:
    """Return True for a PCIe or NVL card. Its NVLinks need a bridge, which may be missing."""
    return bool(_CARD.search(product))


def is_board(product: str) -> bool:
    """Return True for a GPU that shares a board with others, all with the same number of NVLinks."""
    return bool(_BOARD.search(product)) and not is_card(product)


def has_fabric(product: str) -> bool:
    """Return True for a GPU of a board whose NVLink fabric has a state of its own: Hopper and newer."""
    return bool(_WITH_FABRIC.search(product)) and is_board(product)


def retires_pages(product_and_architecture: str) -> bool:
    """Return True for GPUs before Ampere: an uncorrectable error of their DRAM is neither contained nor remapped."""
    return bool(_RETIRES_PAGES.search(product_and_architecture))
