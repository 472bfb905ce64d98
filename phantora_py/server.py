"""The simulator's event loop: connections in, frames to the job, replies out; speculation when nothing moves.

A peer that breaks the protocol is closed with a line in the log; no other peer notices.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from phantora_py.connection import Connection
from phantora_py.endings import noted_endings
from phantora_py.fields import Fields
from phantora_py.frames import FrameType, ProtocolError, abort
from phantora_py.job import Job, JobError
from phantora_py.outbox import Outbox
from phantora_py.placement import Placement
from phantora_py.quiescence import Quiescence
from phantora_py.recording import Recorder

PROTOCOL = 1
SOCKET_NAME = "sim.sock"
_SCAN_GAP_S = 0.003
"""Between two scans for quiescence. The runtime's flusher sleeps 1 ms before it sends what it holds; with a gap of
three it is seen to wake up."""
_SCAN_SHARE = 4
"""A scan may take one part in so many of the time: on a busy machine the ranks need it more."""
_STUCK_GAP_S = 0.25
_OUTSIDE_PATIENCE = 60
"""A rank that sleeps for a reason unknown to the simulator (a download, a child process) may wake up; before a job with
such a rank is called stuck, it gets so many times the usual patience."""


class _Handler(NamedTuple):
    """Who takes an event. Older connections come first: a launcher connects, and says JOB, before its ranks do."""

    order: int
    take: Callable[[int], None]


JobMaker = Callable[[Sequence[Placement], Outbox], Job]
PlacementReader = Callable[[Fields], Sequence[Placement]]


@dataclass(frozen=True)
class Patience:
    """Real seconds before the loop stops believing that something will happen."""

    stuck_s: float = 5.0
    """Every rank has ended or waits for others, nothing moves, and no speculation helps: the job is stuck."""
    spinning_s: float = 30.0
    """Some thread runs but nothing reaches the simulator, while ranks wait: speculate as if at quiescence."""


class Server:
    """Serves one job. Also the job's Outbox."""

    def __init__(
        self,
        run_dir: Path,
        make_job: JobMaker,
        read_placements: PlacementReader,
        patience: Patience | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.job: Job | None = None
        self.failure: str | None = None
        self._make_job = make_job
        self._read_placements = read_placements
        self._patience = patience or Patience()
        self._recorder = recorder
        self._run_dir = run_dir
        self._selector = selectors.DefaultSelector()
        self._connections: set[Connection] = set()
        self._ranks: dict[int, Connection] = {}
        self._refused_first: Connection | None = None
        self._refused_too: list[Connection] = []
        self._rank_pids: dict[int, int] = {}
        self._told_codes: dict[int, int] = {}
        self._quiescence = Quiescence()
        self._last_input_s = time.monotonic()
        self._stuck_since_s: float | None = None
        self._gap_s = _SCAN_GAP_S
        self._accepted = 0
        self._stop_pipe = os.pipe()
        self._stopping = False
        self._is_aborted = False
        self._is_idle = True

    @property
    def has_refused(self) -> bool:
        """Whether the job was one that the cluster cannot take."""
        return self._refused_first is not None

    @property
    def exit_codes(self) -> dict[int, int]:
        """By rank, as its launcher told it; a launcher that is not ours is only known to have seen failures."""
        noted = noted_endings(self._run_dir)
        seen = {rank: noted[pid] for rank, pid in self._rank_pids.items() if pid in noted}
        return seen | self._told_codes

    def serve(self) -> None:
        """Runs until stop() is called or a watched file ends."""
        listener = self._listen()
        self._register(listener, 0, lambda _mask: self._accept(listener))
        self._register(self._stop_pipe[0], 0, self._stopped)
        try:
            while not self._stopping:
                self._turn()
            self._drain_sockets()
        finally:
            for connection in list(self._connections):
                self._forget(connection)
            self._selector.close()
            listener.close()
            (self._run_dir / SOCKET_NAME).unlink(missing_ok=True)

    def stop_at_end_of(self, file: int) -> None:
        """Stops when the pipe `file` ends: whoever holds its other end says so that the job is over, or has died."""

        def take(_mask: int) -> None:
            if not os.read(file, 4096):
                self._stopping = True

        self._register(file, 0, take)

    def stop(self) -> None:
        """Makes serve() return; may be called from a signal handler."""
        with contextlib.suppress(OSError):
            os.write(self._stop_pipe[1], b"x")

    # --- Outbox

    def send(self, rank: int, frame: bytes) -> None:
        connection = self._ranks.get(rank)
        if connection is not None:
            self._send(connection, frame)

    def refuse(self, rank: int, reason: str) -> None:
        connection = self._ranks.get(rank)
        if connection is not None:
            self._close(connection, reason)

    # --- the loop

    def _turn(self) -> None:
        events = self._selector.select(self._timeout_s())
        if not events:
            self._look_for_quiescence()
            return
        self._take(events)
        self._last_input_s = time.monotonic()
        self._moved()
        self._pump()

    @staticmethod
    def _take(events: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, mask in sorted(events, key=lambda event: event[0].data.order):
            key.data.take(mask)

    def _register(self, file: int | socket.socket, order: int, take: Callable[[int], None]) -> None:
        self._selector.register(file, selectors.EVENT_READ, _Handler(order, take))

    def _timeout_s(self) -> float | None:
        """None while no answer is wanted: then only input can bring the job on."""
        return None if self.job is None or self._is_aborted or self._is_idle else self._gap_s

    def _moved(self) -> None:
        self._is_idle = False
        self._quiescence.disturbed()
        self._stuck_since_s = None
        self._gap_s = _SCAN_GAP_S

    def _pump(self) -> None:
        if self.job is None or self._is_aborted:
            return
        try:
            self.job.pump()
        except JobError as failure:
            self._abort(str(failure))

    def _look_for_quiescence(self) -> None:
        """Nothing has come for a moment. Does anybody wait for it in vain?"""
        assert self.job is not None
        if not self.job.is_waiting():
            self._is_idle = True
            return
        try:
            self.job.check_agreement()
        except JobError as failure:
            self._abort(str(failure))
            return
        self._scan()

    def _scan(self) -> None:
        assert self.job is not None
        started_s = time.monotonic()
        launchers = self._launcher_pids()
        still = self._quiescence.look(launchers.union(self._rank_pids.values()), launchers)
        if not launchers:
            still = still and len(self._rank_pids) == self.job.world_size  # the others may be starting
        now_s = time.monotonic()
        self._gap_s = max(_SCAN_GAP_S, _SCAN_SHARE * (now_s - started_s))
        is_spinning = not still and now_s - self._last_input_s > self._patience.spinning_s
        is_at_an_end = self.job.is_at_an_end()
        if not (still or is_spinning) or not self._is_silent():
            if not (still or is_at_an_end):
                self._stuck_since_s = None
            return
        if is_spinning:
            _log(
                f"nothing has come from the job for {self._patience.spinning_s:g} s although some of it runs; "
                "answering from a speculation"
            )
            self._last_input_s = now_s
        if self.job.speculate():
            self._moved()
        elif still or is_at_an_end:
            self._wait_for_a_miracle(now_s)

    def _wait_for_a_miracle(self, now_s: float) -> None:
        """Nothing can move and no answer can be given: only a timer or the world outside can help."""
        assert self.job is not None
        self._gap_s = max(self._gap_s, _STUCK_GAP_S)
        if self._stuck_since_s is None:
            self._stuck_since_s = now_s
        patience_s = self._patience.stuck_s * (1 if self.job.is_at_an_end() else _OUTSIDE_PATIENCE)
        if now_s - self._stuck_since_s >= patience_s:
            self._abort(
                f"the job is stuck: nothing in it has moved for {patience_s:g} s and nothing can\n  "
                + self.job.diagnosis(self.exit_codes)
                + "\n  hint: on real GPUs this job would hang until NCCL's timeout; compare what the ranks wait for"
            )

    def _is_silent(self) -> bool:
        """No byte is under way between the job and the simulator."""
        return all(peer.is_idle for peer in self._connections if peer.is_known) and not self._selector.select(0)

    def _launcher_pids(self) -> set[int]:
        return {connection.pid for connection in self._connections if connection.is_launcher}

    def _drain_sockets(self) -> None:
        """Takes what had been sent before the end, for a moment at the most."""
        deadline_s = time.monotonic() + 1.0
        while time.monotonic() < deadline_s:
            events = [(key, mask) for key, mask in self._selector.select(0) if key.data.order > 0]
            if not events:
                return
            self._take(events)

    # --- connections

    def _listen(self) -> socket.socket:
        """The socket appears under its name only once it can be connected to."""
        path, fresh = self._run_dir / SOCKET_NAME, self._run_dir / f"{SOCKET_NAME}.new"
        os.chmod(self._run_dir, 0o700)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(fresh))
        os.chmod(fresh, 0o600)
        listener.listen(1024)
        listener.setblocking(False)
        fresh.rename(path)
        return listener

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection = Connection(listener.accept()[0])
        except OSError as error:  # the peer has gone again, or no file descriptors are left
            _log(f"cannot accept a connection: {error}")
            return
        self._connections.add(connection)
        self._accepted += 1
        self._register(connection.socket, self._accepted, lambda mask: self._serve_peer(connection, mask))

    def _stopped(self, _mask: int) -> None:
        self._stopping = True

    def _serve_peer(self, connection: Connection, mask: int) -> None:
        if connection not in self._connections:
            return  # closed earlier in this turn
        try:
            if mask & selectors.EVENT_WRITE:
                connection.flush()
                self._watch_writing(connection)
            if mask & selectors.EVENT_READ:
                self._read(connection)
        except ProtocolError as error:
            self._close(connection, str(error))
        except OSError as error:
            self._close(connection, f"connection lost: {error}")

    def _read(self, connection: Connection) -> None:
        frames = connection.receive()
        if frames is None:
            self._close(connection, None)
            return
        for kind, payload in frames:
            self._frame(connection, kind, payload)
            if connection not in self._connections:
                return

    def _send(self, connection: Connection, frame: bytes) -> None:
        if connection not in self._connections:
            return
        try:
            connection.send(frame)
            self._watch_writing(connection)
        except (ProtocolError, OSError) as error:
            self._close(connection, str(error))

    def _watch_writing(self, connection: Connection) -> None:
        if connection.is_turned_away and not connection.has_unsent:
            connection.end_sending()
        key = self._selector.get_key(connection.socket)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.has_unsent else 0)
        if key.events != wanted:
            self._selector.modify(connection.socket, wanted, key.data)

    def _close(self, connection: Connection, reason: str | None) -> None:
        """Ends a connection; `reason` says what the peer did wrong."""
        if connection not in self._connections:
            return
        if reason is not None:
            _log(f"closing the connection of {connection}: {reason}")
            if connection.rank is not None:
                connection.send_last(abort(f"the simulator cannot understand this rank: {reason}"))
        self._forget(connection)
        if connection is self._refused_first:
            self._turn_away_the_others()
        rank = connection.rank
        if rank is None or self.job is None:
            return
        if rank not in self.job.farewells:
            _log(f"rank {rank} (pid {connection.pid}) has gone without a farewell")
        self.job.close(rank)

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._selector.unregister(connection.socket)
        connection.close()

    # --- frames

    def _frame(self, connection: Connection, kind: int, payload: bytes) -> None:
        if connection.is_turned_away:
            return
        if connection.rank is not None:
            assert self.job is not None
            if self._recorder is not None:
                self._recorder.frame(connection.rank, kind, payload)
            self.job.frame(connection.rank, kind, payload)
        elif connection.is_launcher:
            self._launcher_frame(kind, payload)
        elif kind == FrameType.HELLO:
            self._hello(connection, payload)
        else:
            raise ProtocolError(f"a frame of type {kind} before HELLO")

    def _hello(self, connection: Connection, payload: bytes) -> None:
        fields = Fields.decode(payload, "HELLO")
        if fields.integer("protocol") != PROTOCOL:
            raise ProtocolError(f"protocol {fields.integer('protocol')}, this simulator speaks {PROTOCOL}")
        role = fields.text("role")
        if role == "launcher":
            connection.is_launcher = True
        elif role == "rank":
            self._claim(connection, fields, payload)
        else:
            raise ProtocolError(f"role {role!r}, not 'rank' or 'launcher'")

    def _claim(self, connection: Connection, hello: Fields, payload: bytes) -> None:
        rank = hello.integer("rank")
        if self.job is None:
            try:
                self._begin(self._read_placements(hello))
            except ProtocolError as error:
                self._refuse_job(connection, str(error))
                return
        assert self.job is not None
        owner = self._rank_pids.get(rank) if rank in self._ranks else None
        if rank >= self.job.world_size or owner is not None or rank in self.job.closed_ranks:
            reason = (
                f"a job of {self.job.world_size} ranks has no rank {rank}"
                if rank >= self.job.world_size
                else f"rank {rank} is process {owner or self._rank_pids.get(rank)} already, not {connection.pid}"
            )
            self._turn_away(connection, f"{reason}\n  hint: one `phantora run` simulates one job")
            return
        connection.rank = rank
        self._ranks[rank] = connection
        self._rank_pids[rank] = connection.pid
        if self._recorder is not None:
            self._recorder.frame(rank, FrameType.HELLO, payload)
        if self.failure is not None:
            self._send(connection, abort(self.failure))

    def _turn_away(self, connection: Connection, reason: str) -> None:
        _log(f"turning away pid {connection.pid}: {reason}")
        connection.is_turned_away = True  # it goes by itself when it has told
        self._send(connection, abort(reason))

    def _refuse_job(self, connection: Connection, reason: str) -> None:
        """Every rank brings the same job: the first tells why it cannot be, and when it has, the others just end."""
        connection.is_turned_away = True
        if self._refused_first is None:
            self._refused_first = connection
            self._turn_away(connection, reason)
        elif self._refused_first in self._connections:
            self._refused_too.append(connection)
        else:
            self._turn_away(connection, "")

    def _turn_away_the_others(self) -> None:
        for connection in self._refused_too:
            self._turn_away(connection, "")
        self._refused_too.clear()

    def _launcher_frame(self, kind: int, payload: bytes) -> None:
        if kind == FrameType.JOB:
            self._job(self._read_placements(Fields.decode(payload, "JOB")))
        elif kind == FrameType.EXITED:
            self._exited(Fields.decode(payload, "EXITED"))
        else:
            raise ProtocolError(f"a frame of type {kind}, which launchers do not send")

    def _job(self, placements: Sequence[Placement]) -> None:
        """The first JOB begins the job; a later one may only tell pids that were not known yet."""
        if self.job is None:
            self._begin(placements)
        elif [place[:3] for place in placements] != [place[:3] for place in self.job.placements]:
            raise ProtocolError("a second JOB that places the ranks differently")
        self._rank_pids |= {
            place.rank: place.pid for place in placements if place.pid and place.rank not in self._ranks
        }

    def _begin(self, placements: Sequence[Placement]) -> None:
        self.job = self._make_job(placements, self)
        if self._recorder is not None:
            self._recorder.job(placements)

    def _exited(self, fields: Fields) -> None:
        if self.job is None:
            raise ProtocolError("EXITED before JOB")
        rank = fields.integer("rank", 0, self.job.world_size - 1)
        self._told_codes[rank] = fields.integer("code", -(2**31), 2**31)
        if rank not in self._ranks or self._ranks[rank] not in self._connections:
            self.job.close(rank)

    def _abort(self, reason: str) -> None:
        """Tells every rank that the job cannot go on."""
        self._is_aborted = True
        self.failure = reason
        _log(reason)
        for connection in list(self._connections):
            self._send(connection, abort(reason))


def _log(text: str) -> None:
    print(f"phantora: simulator: {text}", file=sys.stderr, flush=True)
