"""One peer on the simulator's socket: its frames, its role, and what has yet to be sent to it."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from collections.abc import Iterator

from phantora_py.frames import FrameReader, ProtocolError

_READ_BYTES = 1 << 20
MAX_UNSENT_BYTES = 2 << 30
"""A peer that lets more than this pile up is not reading."""


class Connection:
    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.pid = _peer_pid(sock)
        self.rank: int | None = None
        self.is_launcher = False
        self.is_turned_away = False
        self._reader = FrameReader()
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0

    def __str__(self) -> str:
        role = "launcher" if self.is_launcher else "unknown peer" if self.rank is None else f"rank {self.rank}"
        return f"{role} (pid {self.pid})"

    @property
    def is_known(self) -> bool:
        """Whether the peer has said who it is."""
        return self.is_launcher or self.rank is not None

    @property
    def is_idle(self) -> bool:
        """No part of a frame is under way in either direction."""
        return not self._unsent and not self._reader.pending_bytes

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def receive(self) -> Iterator[tuple[int, bytes]] | None:
        """Frames that have come in full; None at the end of the stream. Raises ProtocolError, OSError."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return iter(())
        if not data:
            return None
        return self._reader.feed(data)

    def send(self, frame: bytes) -> None:
        """Sends now what the socket takes and keeps the rest for flush(). Raises ProtocolError, OSError."""
        self._unsent.append(memoryview(frame))
        self._unsent_bytes += len(frame)
        if len(self._unsent) == 1:
            self.flush()
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            raise ProtocolError(f"does not read what it is sent: {self._unsent_bytes} bytes wait")

    def send_last(self, frame: bytes) -> None:
        """As much of a last word as the peer takes at once; never raises."""
        with contextlib.suppress(OSError):
            self.flush()
            if not self._unsent:
                self.socket.send(frame, socket.MSG_NOSIGNAL)

    def flush(self) -> None:
        """Sends as much as the socket takes. Raises OSError."""
        while self._unsent:
            head = self._unsent[0]
            try:
                sent = self.socket.send(head, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            self._unsent_bytes -= sent
            if sent < len(head):
                self._unsent[0] = head[sent:]
            else:
                self._unsent.popleft()

    def end_sending(self) -> None:
        """The peer finds the end of the stream behind what it has been sent, and may still talk."""
        with contextlib.suppress(OSError):  # it has gone
            self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()


def _peer_pid(sock: socket.socket) -> int:
    """The process that connected, as this process's /proc names it."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _uid, _gid = struct.unpack("3i", credentials)
    return int(pid)
