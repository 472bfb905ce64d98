"""Carries DATA frames (small NCCL messages) between ranks; never looks at what they hold."""

from __future__ import annotations

from collections import defaultdict

from phantora_py.definitions import Communicator, Definitions
from phantora_py.frames import EVERYONE, FrameType, ProtocolError, data_address, frame
from phantora_py.outbox import Outbox

MAX_KEPT_BYTES = 1 << 30
"""Of all frames for members that have not defined their communicator yet."""


class Mail:
    def __init__(self, definitions: Definitions, outbox: Outbox) -> None:
        self._definitions = definitions
        self._outbox = outbox
        self._kept: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)
        self._kept_bytes = 0

    def carry(self, rank: int, payload: bytes) -> None:
        """Forwards one DATA payload, or keeps it until its target is known. Raises ProtocolError."""
        number, source, target = data_address(payload)
        comm = self._definitions.communicator(number)
        if comm is None:
            raise ProtocolError(f"DATA on communicator {number:#x}, which no rank has defined")
        if comm.members.get(source, (None,))[0] != rank:
            raise ProtocolError(f"DATA as member {source} of communicator {number:#x}, which is another rank")
        if target != EVERYONE and target >= comm.size:
            raise ProtocolError(f"DATA to member {target} of a communicator of {comm.size}")
        sealed = frame(FrameType.DATA, payload)
        if target == EVERYONE:
            self._deliver_to_all(comm, source, sealed)
        else:
            self._deliver(comm, target, sealed)

    def collect(self) -> None:
        """Delivers what was kept for members that have come since."""
        for number, index in list(self._kept):
            comm = self._definitions.communicator(number)
            if comm is not None and index in comm.members:
                for sealed in self._kept.pop((number, index)):
                    self._kept_bytes -= len(sealed)
                    self._outbox.send(comm.members[index][0], sealed)

    def _deliver_to_all(self, comm: Communicator, source: int, sealed: bytes) -> None:
        """Once to each process, though several members may live in one."""
        others = [index for index in range(comm.size) if index != source]
        for rank in sorted({comm.members[index][0] for index in others if index in comm.members}):
            self._outbox.send(rank, sealed)
        for index in others:
            if index not in comm.members:
                self._keep(comm, index, sealed)

    def _deliver(self, comm: Communicator, index: int, sealed: bytes) -> None:
        if index in comm.members:
            self._outbox.send(comm.members[index][0], sealed)
        else:
            self._keep(comm, index, sealed)

    def _keep(self, comm: Communicator, index: int, sealed: bytes) -> None:
        self._kept_bytes += len(sealed)
        if self._kept_bytes > MAX_KEPT_BYTES:
            raise ProtocolError(f"more than {MAX_KEPT_BYTES} bytes of DATA wait for members that never came")
        self._kept[comm.data, index].append(sealed)
