"""The plan for a growing population follows from what was measured, and the simulated hour from its seed."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("support.growth")


@pytest.fixture
def costs(growth: Any) -> Any:
    """Round figures: ten milliseconds of a server an exchange, 20 on a cluster, 1,000 bytes a message."""
    one = {
        name: growth.Cost(server, 5.0, 10.0, 1000) for name, server in (("exchange", 4), ("context", 2), ("digest", 4))
    }
    many = {name: replace(cost, server_ms=2 * cost.server_ms) for name, cost in one.items()}
    return growth.Costs(10.0, 1000.0, one, many)


def test_the_arithmetic_is_that_of_the_page(growth: Any, costs: Any) -> None:
    found = growth.need(8_640_000, costs)

    assert found.messages == 8_640_000 * 400
    assert found.disk_tb == pytest.approx(3.456)
    assert found.exchanges_per_s == pytest.approx(300)  # a tenth of them, ten each, three times the mean
    assert found.nodes == 2  # 3.456 TB in 2.4 TB that may be filled of each
    assert found.bound_by == "disk"
    assert found.exchanges_per_s_a_node == pytest.approx(16 * 0.5 / 0.020)
    assert found.app_cores == math.ceil(300 * 0.010 / 0.5)
    assert found.worker_cores == math.ceil(300 * 0.005 / 0.5)
    assert found.busy_connections == 9
    assert found.calls_per_day == pytest.approx(8_640_000 * 2 / 100 * 34.9)


def test_one_server_is_not_charged_for_a_cluster(growth: Any, costs: Any) -> None:
    assert growth.need(1_000_000, costs).exchanges_per_s_a_node == pytest.approx(800)
    assert growth.need(1_000_000, costs).nodes == 1


@pytest.mark.parametrize("users", [10_000, 10_000_000, 1_000_000_000])
def test_ten_times_the_users_need_ten_times_as_much(growth: Any, costs: Any, users: int) -> None:
    one, ten = growth.need(users, costs), growth.need(10 * users, costs)

    assert ten.disk_tb == pytest.approx(10 * one.disk_tb)
    assert ten.exchanges_per_s == pytest.approx(10 * one.exchanges_per_s)
    assert ten.nodes >= one.nodes


def test_the_same_seed_gives_the_same_hour_and_another_one_another(growth: Any, costs: Any) -> None:
    hours = [growth.simulate(30_000_000, costs, seed=seed, faults=growth.Faults(seconds=900)) for seed in (7, 7, 8)]
    first, again, other = ((h.refused, h.busiest, h.skew, tuple(h.load)) for h in hours)

    assert first == again
    assert first != other


def test_all_work_that_comes_is_placed(growth: Any, costs: Any) -> None:
    """The shards' rates add up to the population's, hot users among them."""
    rng = growth.np.random.default_rng(1)
    rates, hottest = growth.shard_rates(rng, 8_640_000, growth.Habits(), 64)

    assert rates.sum() == pytest.approx(300)
    assert rates.min() > 0
    assert hottest < rates.max()


def test_a_quiet_hour_is_as_busy_as_the_plan_says(growth: Any, costs: Any) -> None:
    quiet = growth.Faults(seconds=900, node_dies=None, workers_die=None, nodes_added=None)
    hour = growth.simulate(86_400_000, costs, seed=1, faults=quiet)
    wanted = growth.need(86_400_000, costs)

    assert hour.mean_busy == pytest.approx(wanted.exchanges_per_s * 0.020 / (wanted.nodes * 16), rel=0.02)
    assert (hour.refused, hour.moved) == (0, 0)
    assert hour.longest_wait_s < 1


def test_a_dead_node_refuses_its_own_people_only_until_its_standby_is_there(growth: Any, costs: Any) -> None:
    faults = growth.Faults(seconds=900, workers_die=None, nodes_added=None)
    hour = growth.simulate(86_400_000, costs, seed=1, faults=faults)
    wanted = growth.need(86_400_000, costs)

    assert hour.refused == pytest.approx(wanted.exchanges_per_s / wanted.nodes * faults.standby_after, rel=0.2)


def test_more_nodes_take_their_share(growth: Any, costs: Any) -> None:
    faults = growth.Faults(seconds=1_800, node_dies=None, workers_die=None, nodes_added=300, move_s=1.0)
    hour = growth.simulate(86_400_000, costs, seed=1, faults=faults)

    assert hour.moved > 0
    assert hour.busiest_after < hour.busiest


def test_dead_workers_make_digests_wait_and_nothing_else(growth: Any, costs: Any) -> None:
    faults = growth.Faults(seconds=1_200, node_dies=None, nodes_added=None, workers_die=300, workers_lost=0.75)
    hour = growth.simulate(86_400_000, costs, seed=1, faults=faults)

    assert hour.digest_wait_s > 10
    assert hour.refused == 0


def test_the_plan_is_made_from_what_was_measured(growth: Any) -> None:
    data = json.loads((BENCHMARKS / "capacity.json").read_text(encoding="utf-8"))
    costs = growth.Costs.of(data)

    assert all(part["command"].startswith("python benchmarks/capacity.py --measure") for part in data.values())
    assert 10 < costs.rows < 100
    assert growth.need(1_000_000_000, costs).nodes > growth.need(1_000_000, costs).nodes
