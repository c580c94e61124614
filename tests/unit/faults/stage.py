"""The real providers, on the model: their cluster, their clock and what they print are the trace's."""

import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest import mock

from soperator_pulumi import lifecycle
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.node_drain import NodeDrainProvider
from soperator_pulumi.lifecycle.nodes_ready import NodesReadyProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.removed_node_sets import RemovedNodeSetsProvider
from soperator_pulumi.lifecycle.shown_lines import SHOWN
from soperator_pulumi.lifecycle.superseded import CREATED
from soperator_pulumi.operations.nodes import lease
from tests.unit.faults.faults import Faults, FaultyKube

PROVIDERS: Mapping[str, type[LiveProvider]] = {
    "RemovedNodeSets": RemovedNodeSetsProvider,
    "NodeDrain": NodeDrainProvider,
    "NodesReady": NodesReadyProvider,
    "DrainGate": DrainGateProvider,
}


@dataclass
class Stage:
    """World that the providers are connected to now."""

    faults: Faults | None = None
    _kube: FaultyKube | None = None

    def begin(self, faults: Faults | None) -> None:
        """Begin a run: a new process, which has seen nothing yet."""
        self.faults = faults
        self._kube = FaultyKube(faults) if faults else None
        CREATED.clear()
        SHOWN.clear()
        lease._held.clear()

    @property
    def now_on(self) -> Faults:
        assert self.faults is not None
        return self.faults

    def clock(self) -> Any:
        return self.now_on.world

    def report(self, text: str) -> None:
        self.now_on.world.report(text)

    def kube(self, _provider: LiveProvider, _props: Mapping[str, Any]) -> Kube:
        assert self._kube is not None
        return self._kube


STAGE = Stage()


def _kube(provider: LiveProvider, props: Mapping[str, Any]) -> Kube:
    return STAGE.kube(provider, props)


def provider(kind: str) -> LiveProvider:
    """Return a provider of a kind, as in a new process of its plugin."""
    return PROVIDERS[kind]()


@contextmanager
def set_up() -> Iterator[Stage]:
    """Put the model in the place of machine and cluster, in all modules that use them."""
    found = pkgutil.iter_modules(lifecycle.__path__, f"{lifecycle.__name__}.")
    modules: list[ModuleType] = [import_module(module_info.name) for module_info in found]
    replaced = {"MachineClock": STAGE.clock, "report": STAGE.report}
    patches = [
        mock.patch.object(module, name, new)
        for module in modules
        for name, new in replaced.items()
        if hasattr(module, name)
    ]
    patches.append(mock.patch.object(LiveProvider, "kube", _kube))
    for patch in patches:
        patch.start()
    try:
        yield STAGE
    finally:
        for patch in patches:
            patch.stop()
        STAGE.begin(None)
