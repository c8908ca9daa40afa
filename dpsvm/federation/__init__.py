"""The distributed algorithms across real organisations: state machines, messages, runners.

A :class:`Party` holds data that never leave it and answers messages; a :class:`Coordinator` asks
them, round by round; a runner moves the messages and knows nothing of what they mean. Sites keep
their ledger, their answers and their snapshots on their own disks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.job import Job
from dpsvm.federation.messages import FIELDS, Message, MessageError
from dpsvm.federation.party import Party
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import MemoryStore, RunFolder, StoreError
from dpsvm.federation.turn import Turn

if TYPE_CHECKING:
    from dpsvm.federation.mpi import MpiRunner
    from dpsvm.federation.network import Node
    from dpsvm.federation.nvflare_runner import NVFlareRunner

_LATER = {"MpiRunner": "mpi", "NVFlareRunner": "nvflare_runner", "Node": "network"}


def __getattr__(name: str) -> Any:
    """What needs an engine, or takes long to import, is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dpsvm.federation.{_LATER[name]}"), name)


__all__ = [
    "FIELDS",
    "Coordinator",
    "InProcessRunner",
    "Job",
    "MemoryStore",
    "Message",
    "MessageError",
    "MpiRunner",
    "NVFlareRunner",
    "Node",
    "Party",
    "Refusal",
    "RunFolder",
    "Site",
    "StoreError",
    "Turn",
]
