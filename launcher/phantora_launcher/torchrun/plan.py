"""Which ranks a torchrun command starts, with the environment that torchrun gives each."""

from __future__ import annotations

import os
import uuid
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from phantora_launcher import environment
from phantora_launcher.errors import LaunchError
from phantora_launcher.job_environment import rank_variables
from phantora_launcher.node_names import node_name


@dataclass(frozen=True)
class Machine:
    """The cluster, as far as the front needs to know it."""

    cluster: str
    nodes: int
    gpus_per_node: int


@dataclass(frozen=True)
class RankPlan:
    """One rank's process, before it is started."""

    rank: int
    node: int
    local_rank: int
    hostname: str
    command: Sequence[str]
    variables: Mapping[str, str]
    """What is set over the front's own environment."""


@dataclass(frozen=True)
class Plan:
    nodes: int
    ranks_per_node: int
    role: str
    run_id: str
    ranks: Sequence[RankPlan]

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node


def make_plan(
    options: Namespace, machine: Machine, python: str, master_port: int, inherited: Mapping[str, str]
) -> Plan:
    """Raises LaunchError for what torchrun refuses, what is not emulated, and what the cluster is too small for."""
    _refuse_what_is_not_emulated(options)
    nodes = _node_count(options.nnodes)
    per_node = _ranks_per_node(options.nproc_per_node, machine)
    _check_size(nodes, per_node, machine)
    asked = int(inherited.get(environment.RANKS_PER_NODE, machine.gpus_per_node))
    if asked not in (per_node, machine.gpus_per_node):
        raise LaunchError(
            f"phantora run --ranks-per-node {asked}, but torchrun starts {per_node} ranks on a node",
            "the option is for MPI programs; torchrun has --nproc-per-node",
        )
    run_id = _run_id(options, nodes)
    shared = {
        "LOCAL_WORLD_SIZE": str(per_node),
        "WORLD_SIZE": str(nodes * per_node),
        "ROLE_NAME": options.role,
        "ROLE_WORLD_SIZE": str(nodes * per_node),
        "GROUP_WORLD_SIZE": str(nodes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(master_port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts),
        "TORCHELASTIC_RUN_ID": run_id,
        # torchrun's agent may host the store; here rank 0 does.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": inherited.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }
    if "OMP_NUM_THREADS" not in inherited and per_node > 1:
        shared["OMP_NUM_THREADS"] = "1"
    ranks = []
    for rank in range(nodes * per_node):
        node, local = divmod(rank, per_node)
        hostname = node_name(machine.cluster, node)
        own = {"RANK": str(rank), "ROLE_RANK": str(rank), "GROUP_RANK": str(node)}
        own |= _device_variables(options, local, inherited)
        own |= rank_variables(rank, node, local, hostname)
        command = _command(options, python, local, inherited)
        ranks.append(RankPlan(rank, node, local, hostname, command, shared | own))
    return Plan(nodes, per_node, options.role, run_id, ranks)


def _refuse_what_is_not_emulated(options: Namespace) -> None:
    if options.logs_specs:
        raise LaunchError("--logs-specs is not emulated", "use --redirects, --tee and --log-dir")
    if options.node_rank != 0:
        raise LaunchError(
            f"this command is for node {options.node_rank} (--node-rank {options.node_rank})",
            "one command starts the ranks of all nodes here: run it once, with --node-rank 0 or without the option",
        )
    if options.no_python and options.module and not options.run_path:
        raise LaunchError("--no-python and --module exclude each other", "leave out one of them")
    if options.no_python and getattr(options, "use_env", True) is False:
        raise LaunchError("--no-python needs --use-env in torch.distributed.launch", "add --use-env")
    if options.max_restarts < 0:
        raise LaunchError(f"--max-restarts is {options.max_restarts}", "it must be 0 or more")


def _node_count(text: str) -> int:
    """Nodes of "4" or "1:4"; an elastic job is emulated at its full size."""
    parts = text.split(":")
    try:
        least, most = int(parts[0]), int(parts[-1])
    except ValueError:
        least, most = 0, 0
    if len(parts) > 2 or not 0 < least <= most:
        raise LaunchError(f"--nnodes is {text!r}", "it must be N or MIN:MAX with 0 < MIN <= MAX")
    return most


def _ranks_per_node(text: str, machine: Machine) -> int:
    if text in ("auto", "gpu"):
        return machine.gpus_per_node
    if text == "cpu":
        return os.cpu_count() or 1
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise LaunchError(f"--nproc-per-node is {text!r}", "it must be a number from 1, or gpu, auto or cpu")
    return count


def _check_size(nodes: int, per_node: int, machine: Machine) -> None:
    if nodes <= machine.nodes and per_node <= machine.gpus_per_node:
        return
    hint = "start fewer ranks, or describe a larger cluster"
    if per_node <= machine.gpus_per_node:
        hint = f"phantora run --cluster {machine.cluster}:{nodes} gives it enough nodes"
    raise LaunchError(
        f"the job wants {nodes} x {per_node} ranks (nodes x ranks a node), but cluster {machine.cluster} has "
        f"{machine.nodes} x {machine.gpus_per_node} GPUs",
        hint,
    )


def _run_id(options: Namespace, nodes: int) -> str:
    plain_single_node = (
        options.rdzv_backend == "static" and not options.rdzv_endpoint and options.master_port is None and nodes == 1
    )
    return str(uuid.uuid4()) if options.standalone or plain_single_node else str(options.rdzv_id)


def _device_variables(options: Namespace, local: int, inherited: Mapping[str, str]) -> dict[str, str]:
    if not options.virtual_local_rank:
        return {"LOCAL_RANK": str(local)}
    visible = inherited.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return {"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": str(local)}
    devices = visible.split(",")
    if local >= len(devices):
        raise LaunchError(
            f"local rank {local} has no device in CUDA_VISIBLE_DEVICES={visible}",
            "list more devices, or unset the variable",
        )
    return {"LOCAL_RANK": "0", "CUDA_VISIBLE_DEVICES": devices[local].strip()}


def _command(options: Namespace, python: str, local: int, inherited: Mapping[str, str]) -> list[str]:
    is_direct = options.no_python and not options.run_path
    command = [] if is_direct else [inherited.get("PYTHON_EXEC", python), "-u"]
    if options.module and not options.run_path:
        command.append("-m")
    command.append(options.training_script)
    if getattr(options, "use_env", True) is False:
        command.append(f"--local-rank={local}")
    return command + [Template(text).safe_substitute(local_rank=local) for text in options.training_script_args]


def rank_environment(rank: RankPlan, inherited: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a rank's process."""
    dropped = (environment.RANK_PID, environment.RANKS_PER_NODE)
    variables = {name: value for name, value in inherited.items() if name not in dropped}
    return variables | dict(rank.variables)
