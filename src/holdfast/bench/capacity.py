"""
The arithmetic of a growing population: the machines that it needs, and the simulation of a cluster with faults.

Everything rests on costs that were measured (`Costs`) and on assumptions that are written down (`Habits`,
`Machine`); nothing here measures anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..text import dataclass

DAY_S = 86_400.0
OPERATIONS = ("exchange", "context", "digest")


@dataclass(frozen=True)
class Cost:
    """The cost of an operation: processor milliseconds of the server and of the caller, milliseconds it takes, bytes of log."""

    server_ms: float
    client_ms: float
    wall_ms: float
    log_bytes: float


@dataclass(frozen=True)
class Costs:
    """The measured costs; rows and bytes (indexes among them) are those of one stored message."""

    rows: float
    bytes: float
    operations: Mapping[str, Cost]
    on_a_cluster: Mapping[str, Cost]

    @staticmethod
    def of(data: Mapping[str, Any]) -> Costs:
        """Read the output of ``capacity.py --measure``."""
        one, many = (
            {name: Cost(**values) for name, values in data[key]["operations"].items()}
            for key in ("one server", "cluster")
        )
        return Costs(data["one server"]["rows_per_message"], data["one server"]["bytes_per_message"], one, many)


@dataclass(frozen=True)
class Habits:
    """The habits of users: an exchange is a user's message and its reply, with a context before and a digest after."""

    kept: int = 400  # messages that a user has stored, in the mean of all users
    active: float = 0.1  # share of users who write on a day
    exchanges: float = 10.0  # of an active user on that day
    peak: float = 3.0  # the busiest hour against the mean of the day
    calls_per_100: float = 15.4  # of a model, see model_calls.py; 7.4 with Config(economy=True)
    tokens_per_100: float = 27_501.0  # of their prompts; 15,768 with economy


@dataclass(frozen=True)
class Machine:
    """A database node, and the share of it that may be used so that a fault leaves room."""

    cores: int = 16
    disk_tb: float = 4.0
    busy: float = 0.5
    full: float = 0.6


@dataclass(frozen=True)
class Need:
    """The needs of a population."""

    users: int
    messages: float
    disk_tb: float
    exchanges_per_s: float
    exchanges_per_s_a_node: float
    nodes: int
    bound_by: str
    app_cores: int
    worker_cores: int
    busy_connections: int
    log_mb_per_s: float
    hot_gb: float
    calls_per_day: float
    tokens_per_day: float


def need(users: int, costs: Costs, habits: Habits | None = None, machine: Machine | None = None) -> Need:
    """Compute the needs of *users* at the busiest hour; from the second node on, each statement passes a coordinator."""
    habits, machine = habits or Habits(), machine or Machine()
    messages = users * float(habits.kept)
    disk_tb = messages * costs.bytes / 1e12
    mean = users * habits.active * habits.exchanges / DAY_S
    peak = mean * habits.peak
    one = costs.operations
    server_s = sum(one[name].server_ms for name in OPERATIONS) / 1e3
    by_disk = math.ceil(disk_tb / (machine.disk_tb * machine.full))
    by_cores = math.ceil(peak * server_s / (machine.cores * machine.busy))
    if max(by_disk, by_cores) > 1:
        one = costs.on_a_cluster
        server_s = sum(one[name].server_ms for name in OPERATIONS) / 1e3
        by_cores = math.ceil(peak * server_s / (machine.cores * machine.busy))
    foreground = (one["exchange"].client_ms + one["context"].client_ms) / 1e3
    return Need(
        users=users,
        messages=messages,
        disk_tb=disk_tb,
        exchanges_per_s=peak,
        exchanges_per_s_a_node=machine.cores * machine.busy / server_s,
        nodes=max(1, by_disk, by_cores),
        bound_by="disk" if by_disk >= by_cores else "processors",
        app_cores=math.ceil(peak * foreground / machine.busy),
        worker_cores=math.ceil(peak * one["digest"].client_ms / 1e3 / machine.busy),
        busy_connections=math.ceil(peak * sum(one[name].wall_ms for name in OPERATIONS) / 1e3),
        log_mb_per_s=peak * sum(one[name].log_bytes for name in OPERATIONS) / 1e6,
        hot_gb=users * habits.active * habits.kept * costs.bytes / 1e9,
        calls_per_day=mean * DAY_S * 2 / 100 * habits.calls_per_100,
        tokens_per_day=mean * DAY_S * 2 / 100 * habits.tokens_per_100,
    )


@dataclass(frozen=True)
class Faults:
    """The faults of the simulated hour, in seconds from its beginning; ``None``: that fault does not happen."""

    seconds: int = 3_600
    node_dies: int | None = 600
    standby_after: int = 30  # until a standby has taken over
    workers_die: int | None = 1_500
    workers_lost: float = 0.5  # share of them
    workers_back: int = 300
    lease: int = 60  # until what a dead worker had begun is taken up again
    nodes_added: int | None = 2_400
    share_added: float = 0.25
    move_s: float = 5.0  # a shard moves in so many seconds, one at a time, and counts twice meanwhile


@dataclass
class Outcome:
    """The course of the simulated hour."""

    mean_busy: float = 0.0
    busiest: float = 0.0  # the busiest node in its busiest minute before anything was added
    busiest_after: float = 0.0  # and after the shards were shared out anew
    skew: float = 0.0  # the most loaded shard against the mean
    hottest_user: float = 0.0  # exchanges a second of one user
    refused: int = 0  # requests that came while their node had no standby
    longest_wait_s: float = 0.0
    digest_wait_s: float = 0.0
    moved: int = 0
    seconds_over: int = 0
    nodes: int = 0
    load: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)


def shard_rates(
    rng: np.random.Generator, users: int, habits: Habits, shards: int, hot: int = 10_000
) -> tuple[Any, float]:
    """
    Exchanges a second of each shard at the peak, and of the most active user.

    How much a user writes is Pareto (alpha 1.5): the *hot* most active are placed one by one, all others make up the rest.
    """
    total = users * habits.active * habits.exchanges / DAY_S * habits.peak
    alpha, active = 1.5, max(1, int(users * habits.active))
    hot = min(hot, active)
    least = habits.exchanges * (alpha - 1) / alpha  # so that the mean is habits.exchanges
    ranks = np.arange(1, hot + 1)
    capped = np.minimum(least * (active / ranks) ** (1 / alpha), 5_000.0)  # nobody writes more in a day
    single = capped / DAY_S * habits.peak
    single *= min(1.0, total / single.sum())
    others = max(0.0, total - float(single.sum()))
    spread = rng.poisson(max(1.0, active / shards), shards).astype(np.float64)
    rates = others * spread / spread.sum() if spread.sum() else np.full(shards, others / shards)
    np.add.at(rates, rng.integers(0, shards, hot), single)
    return rates, float(single[0])


def simulate(
    users: int,
    costs: Costs,
    *,
    seed: int,
    shards: int = 0,
    habits: Habits | None = None,
    machine: Machine | None = None,
    faults: Faults | None = None,
) -> Outcome:
    """Simulate a busy hour, second by second; the same seed gives the same hour."""
    habits, machine, faults = habits or Habits(), machine or Machine(), faults or Faults()
    rng = np.random.default_rng(seed)
    wanted = need(users, costs, habits, machine)
    nodes = wanted.nodes
    shards = shards or max(32, 16 * nodes)
    rates, hottest = shard_rates(rng, users, habits, shards)
    place = np.arange(shards) % nodes
    one = costs.on_a_cluster if nodes > 1 else costs.operations
    each_s = (one["exchange"].server_ms + one["context"].server_ms) / 1e3
    later_s = one["digest"].server_ms / 1e3
    out = Outcome(nodes=nodes, skew=float(rates.max() / rates.mean()), hottest_user=hottest)
    waiting = np.zeros(nodes)  # processor seconds that have come and are not done
    busy, queue = [], 0.0  # exchanges whose digest is to be done
    rate = float(rates.sum())
    able = rate / machine.busy  # digests a second of all workers
    moving: list[int] = []
    moved_until = 0.0
    for second in range(faults.seconds):
        if second == faults.nodes_added and nodes > 1:
            nodes, place, moving = _add_nodes(rates, place, nodes, faults)
            waiting = np.concatenate([waiting, np.zeros(nodes - len(waiting))])
        if moving and second >= moved_until:
            shard = moving.pop()
            place[shard] = np.argmin(np.bincount(place, rates, nodes))
            out.moved += 1
            moved_until = second + faults.move_s
        came = rng.poisson(rates)
        dead = faults.node_dies is not None and 0 <= second - faults.node_dies < faults.standby_after and nodes > 1
        if dead:
            out.refused += int(came[place == 0].sum())
            came = np.where(place == 0, 0, came)
        lost = faults.workers_die is not None and 0 <= second - faults.workers_die < faults.workers_back
        if faults.workers_die is not None and second == faults.workers_die + faults.lease:
            queue += rate * one["digest"].wall_ms / 1e3 * faults.workers_lost  # what the dead had begun
        queue += float(came.sum())
        done = min(queue, able * (1 - faults.workers_lost if lost else 1.0))
        queue -= done
        work = np.bincount(place, came * each_s, nodes) + done * later_s * np.bincount(place, rates, nodes) / rate
        if moving:
            work[place[moving[-1]]] += rates[moving[-1]] * each_s
        waiting, used = _serve(waiting, work, machine.cores, dead)
        busy.append(used / machine.cores)
        out.longest_wait_s = max(out.longest_wait_s, float((waiting / machine.cores).max()))
        out.digest_wait_s = max(out.digest_wait_s, queue / able)
        out.seconds_over += int(bool((waiting > 0).any()))
    return _summarize_hour(out, busy, faults)


def _serve(
    waiting: NDArray[np.float64], work: NDArray[np.float64], cores: int, first_is_dead: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add a second's work to what waits on each node; return what still waits after it, and the seconds used."""
    room = np.full(len(work), float(cores))
    if first_is_dead:
        room[0] = work[0] = 0.0
    used = np.minimum(waiting + work, room)
    return waiting + work - used, used


def _add_nodes(
    rates: NDArray[np.float64], place: NDArray[np.int64], nodes: int, faults: Faults
) -> tuple[int, NDArray[np.int64], list[int]]:
    """Add nodes, and choose the shards that move there: those of the fullest nodes first."""
    more = nodes + max(1, round(nodes * faults.share_added))
    share = rates.sum() / more
    moving: list[int] = []
    for node in range(nodes):
        mine = sorted(np.flatnonzero(place == node), key=lambda shard: rates[shard])
        load = float(rates[mine].sum())
        while mine and load - rates[mine[0]] > share * 0.98:
            shard = mine.pop(0)
            load -= float(rates[shard])
            moving.append(int(shard))
    return more, place, moving


def _summarize_hour(out: Outcome, busy: list[NDArray[np.float64]], faults: Faults) -> Outcome:
    before = len(busy) if faults.nodes_added is None else faults.nodes_added
    first = np.array(busy[:before])
    minutes = first[: len(first) // 60 * 60].reshape(-1, 60, first.shape[1]).mean(axis=1)
    out.load = first.mean(axis=0)
    out.mean_busy, out.busiest = float(first.mean()), float(minutes.max())
    last = np.array(busy[-60:])
    out.busiest_after = float(last.mean(axis=0).max())
    return out
