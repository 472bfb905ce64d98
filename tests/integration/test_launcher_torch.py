"""`phantora run` with PyTorch's own rendezvous, on made-up nodes; no GPU work."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from launched import Workplace

pytest.importorskip("torch")

SCRIPT = """
import json, os, socket, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
names = [None] * dist.get_world_size()
dist.all_gather_object(names, socket.gethostname())
dist.barrier()
start = time.time()
time.sleep(100)
slept = time.time() - start
if rank == 3:
    print("facts " + json.dumps({
        "names": names,
        "slept": round(slept, 6),
        "resolves": socket.gethostbyname(socket.gethostname()),
        "owner": os.environ["PHANTORA_RANK_PID"] == str(os.getpid()),
    }), flush=True)
dist.destroy_process_group()
"""


def test_gloo_rendezvous_across_nodes(torch_workplace: Workplace) -> None:
    torch_workplace.script("job.py", SCRIPT)
    command = (sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2", "job.py")
    done = torch_workplace.run(*command)
    assert done.code == 0, done.stderr
    [facts] = [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("facts ")]
    assert facts == {
        "names": ["dgx-h100-0", "dgx-h100-0", "dgx-h100-1", "dgx-h100-1"],
        "slept": 100.0,
        "resolves": "127.0.0.1",
        "owner": True,
    }
    torch_workplace.assert_nothing_is_left()


def test_spawned_and_forked_children_are_no_ranks(torch_workplace: Workplace) -> None:
    torch_workplace.script(
        "job.py",
        "import multiprocessing, os, sys, time\n"
        "import torch\n"
        "def child(queue):\n"
        "    start = time.monotonic(); time.sleep(0.02)\n"
        "    queue.put((0.02 <= time.monotonic() - start < 30, os.environ['PHANTORA_RANK_PID'] == str(os.getpid())))\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn', 'forkserver'):\n"
        "        context = multiprocessing.get_context(method)\n"
        "        queue = context.Queue()\n"
        "        process = context.Process(target=child, args=(queue,))\n"
        "        process.start(); print(method, *queue.get()); process.join()\n",
    )
    done = torch_workplace.run(sys.executable, "job.py", cluster="dgx-h100")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("fork", "spawn"))]
    assert lines == ["fork True False", "spawn True False", "forkserver True False"], done.stderr
    assert done.code == 0
    torch_workplace.assert_nothing_is_left()


def test_doctor_finds_torch(torch_workplace: Workplace) -> None:
    line = [sys.executable, "-m", "phantora_launcher", "doctor", "--json"]
    done = subprocess.run(line, env=os.environ, capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(done.stdout)
    assert report["schema"] == "phantora.doctor/1"
    assert report["good"] == (done.returncode == 0)
    assert {"library", "name", "version", "policy"} == set(report["symbols"][0])
    assert any(symbol["name"] == "cudaMalloc" and symbol["policy"] == "emulated" for symbol in report["symbols"])
