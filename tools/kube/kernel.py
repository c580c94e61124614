"""Features of the running kernel, built in or as modules."""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

from tools.kube.debs import tool


@dataclass(frozen=True)
class Feature:
    """Feature of the kernel that is required."""

    what: str
    option: str
    """CONFIG_ name, for a person who builds kernels."""

    module: str
    """Module, if it is one."""


FEATURES = (
    Feature("overlay file system", "CONFIG_OVERLAY_FS", "overlay"),
    Feature("bridges", "CONFIG_BRIDGE", "bridge"),
    Feature("netfilter for bridged packets", "CONFIG_BRIDGE_NETFILTER", "br_netfilter"),
    Feature("virtual ethernet pairs", "CONFIG_VETH", "veth"),
    Feature("nftables", "CONFIG_NF_TABLES", "nf_tables"),
    Feature("nftables for IPv4 and IPv6 together", "CONFIG_NF_TABLES_INET", "nf_tables"),
    Feature("nftables NAT", "CONFIG_NFT_NAT", "nft_nat"),
    Feature("nftables masquerading", "CONFIG_NFT_MASQ", "nft_masq"),
    Feature("nftables connection tracking", "CONFIG_NFT_CT", "nft_ct"),
    Feature("nftables routing lookups", "CONFIG_NFT_FIB_IPV4", "nft_fib_ipv4"),
    Feature("nftables number generators", "CONFIG_NFT_NUMGEN", "nft_numgen"),
    Feature("nftables rejects", "CONFIG_NFT_REJECT", "nft_reject"),
)
"""Features that containers, kube-proxy's nftables mode and this project's tables use."""

TO_LOAD = ("overlay", "br_netfilter")
"""Modules that are not loaded on demand."""


@dataclass(frozen=True)
class Kernel:
    """Description of a kernel. Empty text means unknown."""

    config: str
    """Lines such as CONFIG_X=y."""

    modules: str
    """Content of modules.builtin and modules.dep of its release."""

    def missing(self) -> list[Feature]:
        """Return the features that are definitely missing."""
        return [feature for feature in FEATURES if self._has(feature) is False]

    def _has(self, feature: Feature) -> bool | None:
        if self.config:
            lines = self.config.splitlines()
            if f"{feature.option}=y" in lines:
                return True
            if f"{feature.option}=m" not in lines:
                return False
        if self.modules:
            return f"/{feature.module}.ko" in self.modules
        return None

    def can_load(self, module: str) -> bool:
        """Return True if `module` can be loaded, or is built in under that name."""
        return f"/{module}.ko" in self.modules


def running() -> Kernel:
    """Return the running kernel's description."""
    release = os.uname().release
    return Kernel(
        config=_first(Path("/proc/config.gz"), Path(f"/boot/config-{release}")),
        modules="".join(_first(Path(f"/lib/modules/{release}/{name}")) for name in ("modules.builtin", "modules.dep")),
    )


def load_modules() -> None:
    """Load the modules of TO_LOAD that exist and are not loaded."""
    kernel = running()
    for module in TO_LOAD:
        if kernel.can_load(module) and not (Path("/sys/module") / module).exists():
            tool("modprobe").run(module, what=f"loading the kernel module {module}")


def _first(*files: Path) -> str:
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:  # missing, or not readable for us
            continue
        return (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
    return ""
