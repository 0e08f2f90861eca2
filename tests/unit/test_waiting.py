"""The answer that cannot wait: choices by the closed form, counts by simulation, real arrivals, the error map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.evidence import waiting
from analysis.evidence.fleets import shapes
from analysis.inputs import InputError
from analysis.model import capacity
from analysis.reference.specs import Workload
from analysis.reference.tables import SNAPSHOT

WAYS = {way.name: way for way in waiting.ways(as_of=SNAPSHOT)}
WORK = Workload(20.0, 1500.0, 200.0, budget_s=2.0)
FEW = [WAYS["8B plain"], WAYS["8B diffusion, 4 a pass"]]


def test_the_choice_is_the_best_of_the_closed_form() -> None:
    """What takes the most requests per node needs the fewest nodes at any rate."""
    for name in ("8B plain", "70B diffusion, 8 a pass"):
        way = WAYS[name]
        choice, of_one = waiting.choose(way, WORK)
        fleets = capacity.fleets(way.shapes, way.decoders[0], replace(WORK, rate_req_per_s=500.0))
        assert choice.shape.replica.gpus == capacity.best(fleets)
        assert of_one == pytest.approx(fleets[choice.shape.replica.gpus].node_req_per_s)
    drafts, _ = waiting.choose(WAYS["70B drafts"], WORK)
    assert drafts.decoder in WAYS["70B drafts"].decoders


def test_nodes_rise_with_the_rate_and_fall_with_the_budget() -> None:
    by_rate = waiting.by_rate(FEW, WORK, [5.0, 200.0])
    by_budget = waiting.by_budget(FEW[:1], replace(WORK, rate_req_per_s=200.0), [1.0, 4.0])
    for _, rows in by_rate.groupby("way"):
        assert rows["nodes"].is_monotonic_increasing
        assert (rows["nodes"] <= rows["closed_form_nodes"]).all()
        assert (rows["nodes_low"] <= rows["nodes"]).all()
        assert (rows["nodes"] <= rows["nodes_high"]).all()
        assert (rows["busy"] > rows["load"]).all()
    assert by_budget["nodes"].is_monotonic_decreasing
    assert by_budget["nodes"].nunique() == 2
    ahead = by_rate.pivot_table(index="rate_req_per_s", columns="way", values="nodes")
    assert ahead.loc[200.0, "8B diffusion, 4 a pass"] < ahead.loc[200.0, "8B plain"]


def test_bursts_and_long_prompts_need_more() -> None:
    bursts = waiting.by_burst(FEW[:1], replace(WORK, rate_req_per_s=60.0), [1.0, 4.0])
    prompts = waiting.by_prompt(FEW[:1], replace(WORK, rate_req_per_s=60.0), [500.0, 12_000.0])
    assert bursts["nodes"].is_monotonic_increasing
    assert prompts["nodes"].is_monotonic_increasing
    assert prompts["nodes"].nunique() == 2


def test_what_is_infeasible_has_no_count() -> None:
    row = waiting.by_budget([WAYS["70B plain"]], WORK, [0.5]).iloc[0]
    assert np.isnan(row["nodes"])
    assert np.isnan(row["closed_form_nodes"])
    assert row["floor_s"] > 0.5


def test_real_arrivals_are_replayed() -> None:
    found = waiting.replayed(FEW, ["azure-2023-code", "azure-2023-conversation"], budget_s=1.0)
    assert len(found) == 4
    assert found["within"].between(0, 1).all()
    assert (found["p50_s"] < found["p95_s"]).all()
    shares = found.pivot_table(index="trace", columns="way", values="within")
    # answers of 211 tokens: blocks help where decoding is what takes long
    chat = shares.loc["azure-2023-conversation"]
    assert chat["8B diffusion, 4 a pass"] > chat["8B plain"] + 0.1


def test_a_day_of_a_real_client_has_all_its_requests() -> None:
    choice, _ = waiting.choose(WAYS["70B plain"], replace(WORK, input_tokens=2159.0, output_tokens=32.0))
    found = waiting.day(choice, "servegen-m-mid-chunk-52", input_tokens=2159, output_tokens=32, nodes=1)
    assert found["rate_req_per_s"].sum() * 3600 == pytest.approx(4.1849 * 86_400, rel=0.01)
    busiest, calmest = (found.loc[of(found["rate_req_per_s"])] for of in (np.argmax, np.argmin))
    assert busiest["hour"] in range(8, 20)
    assert busiest["p95_s"] > 1.2 * calmest["p95_s"]


def test_the_error_map_is_small_where_the_closed_form_is_trusted() -> None:
    one = shapes("llama-3.1-8b", "h100-sxm", as_of=SNAPSHOT, weights="fp8")[0]
    found = waiting.closed_form_errors(
        one, prompts=[500, 8000], output_tokens=300, loads=[0.1, 0.4, 0.9], requests=3000, runs=2
    )
    assert found["prompt_share"].is_monotonic_increasing
    trusted = found[found["in_domain"]]
    assert len(trusted) == 4
    assert trusted["mean_error"].abs().max() < 0.07
    assert trusted["p95_error"].abs().max() < 0.09
    assert found.loc[~found["in_domain"], "p95_error"].abs().max() > 0.09


def test_an_unknown_trace_is_refused() -> None:
    with pytest.raises(InputError, match="trace: got 'azure'"):
        waiting.replayed(FEW, ["azure"], budget_s=1.0)
