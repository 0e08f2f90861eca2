"""Frames of the answer that cannot wait: infeasible is no count, shares multiply, replays keep what they are given."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.evidence import waiting
from analysis.inputs import InputError
from analysis.model import queueing


def test_no_number_of_nodes_helps_below_the_floor():
    """A node keeps a budget at some rate exactly where its quickest split is quicker alone."""
    frame = waiting.by_budget(names=["70B", "8B", "8B diffusion 4"])
    assert ((frame["node_req_per_s"] > 0) == (frame["floor_s"] < frame["budget_s"])).all()
    assert frame["node_req_per_s"].eq(0).any()
    for _, of_one in frame.groupby("name"):
        assert of_one["node_req_per_s"].is_monotonic_increasing
    nodes = waiting.by_rate([1e-3, 1e6]).set_index(["name", "rate"])["nodes"]
    assert np.isnan(nodes["70B", 1e6])
    assert np.isnan(nodes["70B", 1e-3])
    assert nodes["8B", 1e-3] == 1


def test_nodes_are_whole_and_spares_come_on_top():
    """By hand: 10 requests at 4 a node are 3 nodes, and one more that may fail."""
    assert waiting.nodes_for([10.0, 8.0], 4.0).tolist() == [3.0, 2.0]
    assert waiting.nodes_for([10.0, 8.0], 4.0, spares=1).tolist() == [4.0, 3.0]
    assert np.isnan(waiting.nodes_for(10.0, 0.0, spares=1))
    # three tenths over one tenth is 3.0000000000000004 in the computer
    assert (0.1 + 0.2) / 0.1 > 3
    assert waiting.nodes_for(0.1 + 0.2, 0.1) == 3


def test_a_node_is_split_where_it_carries_most_and_where_nothing_does_as_is_quickest(monkeypatch):
    """Four replicas of 1 request/s beat one of 3 within two seconds; within one only the whole node is in time.

    Within half a second nobody is: the quickest alone is told. What holds no request is endless alone.
    """
    table = [(2, 4, 1.5, 9.0, 1.0), (8, 1, 0.8, 9.0, 3.0), (1, 8, 0.1, 0.5, 9.0)]
    services = tuple(
        (
            SimpleNamespace(copies=copies, replica=SimpleNamespace(gpus=gpus)),
            SimpleNamespace(floor_s=lambda metric, floor=floor: floor, room=room, rate=rate),
        )
        for gpus, copies, floor, room, rate in table
    )
    asked = []

    def rate_within_budget(service, budgets, **how):
        asked.append(how)
        return np.where(budgets > service.floor_s(""), service.rate, 0.0)

    monkeypatch.setattr(waiting, "_services", lambda each, weights, prompt, answer: services)
    monkeypatch.setattr(waiting.queueing, "rate_within_budget", rate_within_budget)
    each = waiting.contestants("8B")[0]
    found = waiting._within(each, [0.5, 1.0, 2.0], cv=2.0, metric="ttft")
    assert found["gpus"].tolist() == [8, 8, 2]
    assert found["node_req_per_s"].tolist() == [0, 3, 4]
    assert found["floor_s"].tolist() == [0.8] * 3
    assert set(found["name"] + found["kind"]) == {"8Bautoregressive"}
    assert asked == [{"percentile": 95.0, "metric": "ttft", "cv": 2.0}] * 2


def test_hours_and_the_busiest_day_of_a_trace_by_hand(monkeypatch):
    """Windows of half an hour: means of two and two, the odd one left out, over their own mean.

    Of two days of four windows of six hours the second has the highest one, though the first has more requests.
    """
    windows = SimpleNamespace(window_s=1800.0, req_per_s=np.array([1.0, 3.0, 5.0, 7.0, 99.0]))
    monkeypatch.setattr(waiting.traces, "shipped_windows", lambda name: windows)
    assert waiting.hours_of("x") == pytest.approx((0.5, 1.5))
    windows.window_s, windows.req_per_s = 21_600.0, np.array([5.0, 5, 5, 5, 1, 2, 9, 3, 100])
    assert waiting.busiest_day("x").tolist() == [1, 2, 9, 3]


def test_pairs_by_hand(monkeypatch):
    """Ten requests: three nodes of four against one of ten, more; where only blocks are in time only they can."""
    rates = {"8B diffusion 4": 4.0, "70B": 0.0, "8B": 10.0, "8B drafts": 1.0}
    frame = pd.DataFrame(
        [(name, budget, rate) for name, rate in rates.items() for budget in waiting.BUDGETS_S],
        columns=["name", "budget_s", "node_req_per_s"],
    )
    asked = []
    monkeypatch.setattr(waiting, "by_budget", lambda **of: asked.append({k: list(v) for k, v in of.items()}) or frame)
    table = waiting.pairs([10.0], weights="bf16", spares=1)
    assert asked == [{"weights": list("bf16"), "names": list(rates)}]
    assert len(table) == 3 * len(waiting.BUDGETS_S)
    once = table[table["budget_s"] == 1.0].set_index("pair")
    assert once["class"].tolist() == ["only diffusion can", "more", "fewer"]
    assert once["nodes"].tolist() == [4, 4, 4]
    assert once["rival_nodes"].tolist() == pytest.approx([np.nan, 2, 11], nan_ok=True)


def test_classes_of_a_comparison_by_hand():
    nan = float("nan")
    cases = {
        (1.0, 3.0): "at most a third",
        (2.0, 3.0): "fewer",
        (1.0, 1.0): "the same",
        (4.0, 3.0): "more",
        (1.0, nan): "only diffusion can",
        (nan, nan): "neither can",
    }
    for (nodes, others), word in cases.items():
        assert waiting._class(nodes, others) == word
        assert word in waiting.CLASSES


def test_a_spare_moves_the_ratio_of_small_counts():
    """One node against three is a third; with a spare each it is a half."""
    assert waiting._class(1.0, 3.0) == "at most a third"
    assert waiting._class(2.0, 4.0) == "fewer"


def test_the_shares_multiply_to_what_the_bill_says():
    """Utilization is useful requests over what the nodes could do; cost times it is the cost of full nodes."""
    frame = waiting.taken_apart(["70B", "8B diffusion 4"], rate_req_per_s=10.0, price_usd_per_node_hour=50.0)
    row = frame.set_index("name").loc["8B diffusion 4"]
    product = row["day"] * row["integer"] * row["latency"] * row["goodput"]
    assert row["utilization"] == pytest.approx(product, rel=1e-12)
    assert row["usd"] * row["utilization"] == pytest.approx(row["full_usd"], rel=1e-9)
    # the bill by hand: dollars of an hour over answers of an hour, late ones not counted
    assert row["usd"] == pytest.approx(1000 * 50.0 * row["nodes"] / (3600 * 10.0 * row["goodput"]), rel=1e-9)
    assert frame.set_index("name").loc["70B", "reason"].startswith("an empty replica takes")
    falls = waiting.falls(frame)
    assert falls["left"].iloc[-1] == pytest.approx(product)
    assert set(falls["name"]) == {"8B diffusion 4"}


def test_drafts_keep_the_budget_from_the_found_acceptance_on():
    """At the measured acceptance a 70B model with drafts misses the second; at the found one it takes just that."""
    needed = waiting.drafts_that_keep(1.0)
    measured = waiting.acceptances().set_index("way").loc["70B drafts", "acceptance"]
    assert measured < needed < 1
    assert np.isnan(waiting.drafts_that_keep(0.05))


def test_closed_form_and_simulation_agree_at_a_named_point():
    frame = waiting.checks(["8B diffusion 4"], count=3000)
    assert abs(frame["error"].iloc[0]) < 0.1
    _, service = waiting._split(waiting.contestants("8B diffusion 4")[0])
    largest = queueing.rate_within_budget(service, waiting.BUDGET_S, percentile=95.0)
    assert frame["replica_req_per_s"].iloc[0] == pytest.approx(0.9 * largest)
    assert frame["node_p95_s"].iloc[0] <= frame["simulated_p95_s"].iloc[0]


def test_replays_serve_every_request_of_the_trace():
    frame = waiting.replays(["8B"], ["azure-2023-code"])
    assert frame["requests"].tolist() == [8819]
    assert 0 < frame["within"].iloc[0] <= 1
    client = waiting.arrivals("servegen-m-mid-chunk-52")
    assert set(client.input_tokens) == {2159}
    assert set(client.output_tokens) == {32}
    assert len(waiting.arrivals("servegen-m-large")) == 86_400


def test_longer_prompts_never_need_fewer_nodes():
    frame = waiting.by_prompt(["8B diffusion 4"], rate_req_per_s=10.0)
    assert frame["nodes"].is_monotonic_increasing
    assert frame["reading_s"].is_monotonic_increasing


def test_unknown_names_and_budgets_are_refused():
    with pytest.raises(InputError, match="contestant: got '9B'"):
        waiting.contestants("9B")
    with pytest.raises(InputError, match=r"budget_s: got 1\.1"):
        waiting.by_rate([1.0], budget_s=1.1)
