"""The plan for a growing population follows from what was measured, and the simulated hour from its seed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench import capacity

MEASURED = Path(__file__).parents[2] / "benchmarks" / "capacity.json"


@pytest.fixture
def costs() -> Any:
    """Round figures: ten milliseconds of a server an exchange, 20 on a cluster, 1,000 bytes a message."""
    one = {
        name: capacity.Cost(server, 5.0, 10.0, 1000)
        for name, server in (("exchange", 4), ("context", 2), ("digest", 4))
    }
    many = {name: replace(cost, server_ms=2 * cost.server_ms) for name, cost in one.items()}
    return capacity.Costs(10.0, 1000.0, one, many)


def test_the_arithmetic_is_that_of_the_page(costs: Any) -> None:
    found = capacity.need(8_640_000, costs)

    assert found.messages == 8_640_000 * 400
    assert found.disk_tb == pytest.approx(3.456)
    assert found.exchanges_per_s == pytest.approx(300)  # a tenth of them, ten each, three times the mean
    assert found.nodes == 2  # 3.456 TB in 2.4 TB that may be filled of each
    assert found.bound_by == "disk"
    assert found.exchanges_per_s_a_node == pytest.approx(16 * 0.5 / 0.020)
    assert found.app_cores == math.ceil(300 * 0.010 / 0.5)
    assert found.worker_cores == math.ceil(300 * 0.005 / 0.5)
    assert found.busy_connections == 9
    assert found.calls_per_day == pytest.approx(8_640_000 * 2 / 100 * 15.4)


def test_one_server_is_not_charged_for_a_cluster(costs: Any) -> None:
    assert capacity.need(1_000_000, costs).exchanges_per_s_a_node == pytest.approx(800)
    assert capacity.need(1_000_000, costs).nodes == 1


@pytest.mark.parametrize("users", [10_000, 10_000_000, 1_000_000_000])
def test_ten_times_the_users_need_ten_times_as_much(costs: Any, users: int) -> None:
    one, ten = capacity.need(users, costs), capacity.need(10 * users, costs)

    assert ten.disk_tb == pytest.approx(10 * one.disk_tb)
    assert ten.exchanges_per_s == pytest.approx(10 * one.exchanges_per_s)
    assert ten.nodes >= one.nodes


def test_the_same_seed_gives_the_same_hour_and_another_one_another(costs: Any) -> None:
    hours = [capacity.simulate(30_000_000, costs, seed=seed, faults=capacity.Faults(seconds=900)) for seed in (7, 7, 8)]
    first, again, other = ((h.refused, h.busiest, h.skew, tuple(h.load)) for h in hours)

    assert first == again
    assert first != other


def test_all_work_that_comes_is_placed(costs: Any) -> None:
    """The shards' rates add up to the population's, hot users among them."""
    rng = capacity.np.random.default_rng(1)
    rates, hottest = capacity.shard_rates(rng, 8_640_000, capacity.Habits(), 64)

    assert rates.sum() == pytest.approx(300)
    assert rates.min() > 0
    assert hottest < rates.max()


def test_a_quiet_hour_is_as_busy_as_the_plan_says(costs: Any) -> None:
    quiet = capacity.Faults(seconds=900, node_dies=None, workers_die=None, nodes_added=None)
    hour = capacity.simulate(86_400_000, costs, seed=1, faults=quiet)
    wanted = capacity.need(86_400_000, costs)

    assert hour.mean_busy == pytest.approx(wanted.exchanges_per_s * 0.020 / (wanted.nodes * 16), rel=0.02)
    assert (hour.refused, hour.moved) == (0, 0)
    assert hour.longest_wait_s < 1


def test_a_dead_node_refuses_its_own_users_only_until_its_standby_is_there(costs: Any) -> None:
    faults = capacity.Faults(seconds=900, workers_die=None, nodes_added=None)
    hour = capacity.simulate(86_400_000, costs, seed=1, faults=faults)
    wanted = capacity.need(86_400_000, costs)

    assert hour.refused == pytest.approx(wanted.exchanges_per_s / wanted.nodes * faults.standby_after, rel=0.2)


def test_more_nodes_take_their_share(costs: Any) -> None:
    faults = capacity.Faults(seconds=1_800, node_dies=None, workers_die=None, nodes_added=300, move_s=1.0)
    hour = capacity.simulate(86_400_000, costs, seed=1, faults=faults)

    assert hour.moved > 0
    assert hour.busiest_after < hour.busiest


def test_dead_workers_make_digests_wait_and_nothing_else(costs: Any) -> None:
    faults = capacity.Faults(seconds=1_200, node_dies=None, nodes_added=None, workers_die=300, workers_lost=0.75)
    hour = capacity.simulate(86_400_000, costs, seed=1, faults=faults)

    assert hour.digest_wait_s > 10
    assert hour.refused == 0


def test_the_plan_is_made_from_what_was_measured() -> None:
    data = json.loads(MEASURED.read_text(encoding="utf-8"))
    costs = capacity.Costs.of(data)

    assert all(part["command"].startswith("python benchmarks/capacity.py --measure") for part in data.values())
    assert 3 < costs.rows < 10
    assert capacity.need(1_000_000_000, costs).nodes > capacity.need(1_000_000, costs).nodes
