"""Jobs shaped like training: what a framework's ranks issue, without the framework."""

from __future__ import annotations

from job import RECORDING, STREAM, Collective, Group, Job, Kind, RankJob, Record, Transfer

LAUNCH_NS = 4_000  # host time of a launch
COMPUTE, COMMUNICATE = 0, 1  # streams
FORWARD, BACKWARD, STEP = 1, 2, 3  # kernels


class Script:
    """The main thread of one rank."""

    def __init__(self, kernels: dict[int, int]) -> None:
        self.job = RankJob(
            streams={COMPUTE: 0, COMMUNICATE: 0}, kernels={number: (ns, 2_000, 1024) for number, ns in kernels.items()}
        )
        self.delta_ns = 0
        self.names = 0

    def issue(self, kind: Kind, stream: int = COMPUTE, a: int = 0, b: int = 0, flags: int = 0) -> None:
        self.delta_ns += LAUNCH_NS
        self.job.records.append(Record(kind, stream=stream, delta_ns=self.delta_ns, a=a, b=b, flags=flags))

    def kernel(self, number: int) -> None:
        self.issue(Kind.KERNEL, a=number)

    def communicate(self, call: Collective | Group) -> int:
        """Issued after what was computed; gives the recording of its end."""
        number = len(self.job.calls) + 1
        self.job.calls[number] = call
        self.wait(COMMUNICATE, self.record(COMPUTE))
        self.issue(Kind.COLLECTIVE, COMMUNICATE, a=number)
        return self.record(COMMUNICATE)

    def record(self, stream: int) -> int:
        self.names += 1
        self.issue(Kind.EVENT_RECORD, stream, a=self.names)
        return self.names

    def wait(self, stream: int, recording: int) -> None:
        self.issue(Kind.STREAM_WAIT, stream, a=recording)
        self.issue(Kind.EVENT_FORGET, a=recording)

    def synchronize(self, recording: int | None = None) -> None:
        self.names += 1
        if recording is None:
            self.issue(Kind.SYNC, COMPUTE, b=self.names, flags=STREAM)
        else:
            self.issue(Kind.SYNC, a=recording, b=self.names, flags=RECORDING)
        self.delta_ns = 0


def fsdp_job(ranks: int = 8, layers: int = 6, steps: int = 3) -> Job:
    """Every layer gathered ahead, scattered behind, on two overlapping kinds of links; ranks not quite alike."""
    everyone = {1: ranks}
    wire = (*((link, 1.75) for link in range(ranks)), (ranks, 1.0))
    gather = Transfer(40_000_000, 20_000, wire)
    scatter = Transfer(80_000_000, 25_000, wire, max_rate=300e9)
    scripts = [
        Script({FORWARD: 150_000 + 777 * rank, BACKWARD: 310_000 - 33 * rank, STEP: 90_000}) for rank in range(ranks)
    ]
    for rank, script in enumerate(scripts):
        for _ in range(steps):
            for kernel, moves in ((FORWARD, (gather,)), (BACKWARD, (gather, scatter))):
                ahead = script.communicate(Collective(1, rank, 1, moves[0]))
                for _ in range(layers):
                    here, ahead = ahead, script.communicate(Collective(1, rank, 1, moves[0]))
                    script.wait(COMPUTE, here)
                    for _ in range(3):
                        script.kernel(kernel)
                    for move in moves[1:]:
                        script.issue(Kind.EVENT_FORGET, a=script.communicate(Collective(1, rank, 2, move)))
                script.wait(COMPUTE, ahead)
            script.kernel(STEP)
            script.issue(Kind.MARK, a=1)
            script.synchronize()
    return Job([150_000_000_000] * ranks + [400_000_000_000], everyone, [script.job for script in scripts])


def pipeline_job(stages: int = 4, micro_batches: int = 8, steps: int = 3) -> Job:
    """Stages in a row that pass activations on and gradients back, one message a micro-batch, over shared links."""
    scripts = [Script({FORWARD: 200_000 + 5_000 * stage, BACKWARD: 400_000, STEP: 50_000}) for stage in range(stages)]
    for stage, script in enumerate(scripts):
        for _ in range(steps):
            _pass(script, stage, FORWARD, micro_batches, stage - 1, stage + 1, stages)
            _pass(script, stage, BACKWARD, micro_batches, stage + 1, stage - 1, stages)
            script.kernel(STEP)
            script.issue(Kind.MARK, a=1)
            script.synchronize()
    return Job([20_000_000_000] * 2, {1: stages}, [script.job for script in scripts])


def _pass(script: Script, stage: int, kernel: int, count: int, source: int, target: int, stages: int) -> None:
    message = Transfer(1_500_000, 10_000, ((kernel % 2, 1.0),))
    for number in range(count):
        if 0 <= source < stages:
            got = script.communicate(Group(1, stage, (), (source,)))
            if number % 3 == 1:
                script.synchronize(got)
            script.wait(COMPUTE, got)
        for _ in range(8):
            script.kernel(kernel)
        if 0 <= target < stages:
            script.issue(Kind.EVENT_FORGET, a=script.communicate(Group(1, stage, ((target, message),), ())))
