"""The distributed algorithms across real organisations: state machines, messages, runners.

A :class:`Party` holds data that never leave it and answers messages; a :class:`Coordinator` asks
them, round by round; a runner moves the messages and knows nothing of what they mean. Sites keep
their ledger, their answers and their snapshots on their own disks.
"""

from dpsvm.federation.coordinator import Coordinator, Turn
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.job import Job
from dpsvm.federation.messages import FIELDS, Message, MessageError
from dpsvm.federation.party import Party
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import MemoryStore, RunFolder, StoreError

__all__ = [
    "FIELDS",
    "Coordinator",
    "InProcessRunner",
    "Job",
    "MemoryStore",
    "Message",
    "MessageError",
    "Party",
    "Refusal",
    "RunFolder",
    "Site",
    "StoreError",
    "Turn",
]
