"""Charts with sliders: the line in the page is the derivation, it starts where its table says, and axes stand still."""

import json
import re

import pytest
from sympy import Symbol, tanh

from analysis.inputs import InputError
from analysis.model import head_to_head
from analysis.present import display, moving
from analysis.symbolic import cost, decoding, roofline
from analysis.symbols import API_PRICE, PRICE, TPUT, UTIL, with_constants

X = moving.Axis("x", 1, 100, [1, 10, 100])
A, B = Symbol("a", positive=True), Symbol("b", positive=True)
SLIDER = moving.Slider(B, "b (s)", 1, 5, 1, 2)

CHARTS = {
    "cost": moving.cost_of_utilization(price_usd_per_node_hour=33, node_tok_per_s=3000, api_usd_per_mtok=10),
    "roofline": moving.time_of_positions(
        weights=8e9, bytes_per_weight=2, peak_flop_per_s=989.4e12, mem_bw_byte_per_s=3.35e12
    ),
    "head-to-head": moving.gain_of_wide_passes(
        positions=32,
        tokens_per_pass=4,
        context_tokens=500,
        ridge_positions=205,
        context_scale_tokens=2065,
        overhead_positions=207,
    ),
    "batching": moving.gain_of_batch(base_s=0.012, sequence_s=0.00016, prompt_s=0.4, answer_passes=300),
}


def parts(spec):
    return [part for part in display.walk(spec) if "transform" in part]


def rows(spec):
    return [row for data in spec["datasets"].values() for row in data]


@pytest.mark.parametrize("name", CHARTS)
def test_chart_of_a_chapter_holds_sliders_and_starts_on_its_table(name):
    shown = display.figure(CHARTS[name], name="fig-a", alt="A line that moves with its sliders.")
    spec = shown.data[display.VEGA_LITE]
    assert all(param["bind"]["input"] == "range" for param in spec["params"])
    starts = [row["start"] for row in rows(spec) if "along" in row]
    assert len(starts) == 81
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert all(low <= value <= high for value in starts)


def test_line_of_the_cost_chart_is_the_identity():
    """By hand: 33 USD an hour over 3,000 tokens a second at full use is 3.06 USD a million."""
    spec = json.loads(CHARTS["cost"].to_json())
    last = [row for row in rows(spec) if "along" in row][-1]
    assert last["along"] == pytest.approx(1)
    assert last["start"] == pytest.approx(3.0556, rel=1e-4)
    even = next(row for row in rows(spec) if row.get("words") == "cheaper from")
    assert even["start"] == pytest.approx(33 / (3600 * 3000 * 10e-6))


def test_ridge_of_the_time_chart_is_the_ridge():
    """By hand: 2 bytes times 989.4e12 over twice 3.35e12 is 295 positions."""
    ridge = next(row for row in rows(json.loads(CHARTS["roofline"].to_json())) if row.get("words") == "ridge at")
    assert ridge["start"] == pytest.approx(295.3, abs=0.1)


def test_gain_of_a_batch_ends_at_the_largest_swing():
    spec = json.loads(CHARTS["batching"].to_json())
    end = [row for row in rows(spec) if "along" in row][-1]["start"]
    most = next(row for row in rows(spec) if row.get("words") == "at most")["start"]
    assert 0.9 * most < end < most


def test_crossing_of_wide_passes_is_that_of_the_model():
    """And alone, where the pass only reads, the gain is the tokens that it keeps."""
    found = rows(json.loads(CHARTS["head-to-head"].to_json()))
    crossing = next(row for row in found if row.get("words") == "ahead up to")["start"]
    exact = head_to_head.breakeven_batch(
        head_to_head.Scales(205, 2065, 207), positions=32, tokens_per_pass=4, context_tokens=500
    )
    assert crossing == pytest.approx(exact)
    assert next(row for row in found if "along" in row)["start"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("derived", "names"),
    [
        (with_constants(cost.cost_per_mtok()), {"price", "node_tput", "utilization"}),
        (with_constants(roofline.positions_at_ridge()), {"bytes_per_weight", "mem_bw_byte_per_s", "peak_flop_per_s"}),
        (decoding.largest_swing(), {"base_time", "sequence_time", "prompt_time", "answer_passes"}),
    ],
)
def test_page_computes_from_the_symbols_of_the_derivation(derived, names):
    assert {symbol.name for symbol in derived.free_symbols} == names
    written = " ".join(json.dumps(chart.to_dict()) for chart in CHARTS.values())
    assert all(re.search(rf"\b{name}\b|datum\.along", written) for name in names)


def test_symbol_without_a_slider_is_refused():
    with pytest.raises(InputError, match="symbol: got 'c', expected one with a slider"):
        moving.line(A * B * Symbol("c"), along=A, x=X, y=X, sliders=[SLIDER])
    with pytest.raises(InputError, match="symbol: got 'a'"):
        moving.line(A * B, along=A, x=X, y=X, sliders=[SLIDER], verticals=[moving.Mark(A, "at")])


def test_slider_that_starts_outside_its_ends_is_refused():
    with pytest.raises(InputError, match="slider b: got 9, expected a value from 1 to 5"):
        moving.line(A * B, along=A, x=X, y=X, sliders=[moving.Slider(B, "b (s)", 1, 5, 1, 9)])


def test_form_without_a_counterpart_is_refused():
    with pytest.raises(InputError, match="tanh"):
        moving.line(tanh(A) * B, along=A, x=X, y=X, sliders=[SLIDER])


def test_symbols_of_the_cost_chart_are_those_of_the_book():
    names = {param["name"] for param in CHARTS["cost"].to_dict()["params"]}
    assert names == {PRICE.name, TPUT.name, API_PRICE.name}
    assert UTIL.name not in names


@pytest.mark.parametrize(("node", "api"), [(0, 150.0), (330.0, 0)])
def test_sliders_of_prices_hold_whatever_they_start_at(node, api):
    """Own prices may be zero, or ten times those of the book: the chart is drawn, its sliders reach them."""
    spec = moving.cost_of_utilization(price_usd_per_node_hour=node, node_tok_per_s=3000, api_usd_per_mtok=api).to_dict()
    ends = {param["name"]: (param["bind"]["min"], param["value"], param["bind"]["max"]) for param in spec["params"]}
    assert ends["price"] == (min(1, node), node, max(120, node))
    assert ends["api_price"] == (min(0.1, api), api, max(60, api))
