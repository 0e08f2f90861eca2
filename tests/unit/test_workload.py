"""The computation of the page "Your workload": units, and agreement with the model wherever the page goes."""

import json
import re
from functools import cache

import numpy as np
import pytest
from sympy import Rational

from analysis.evidence import presets
from analysis.inputs import InputError
from analysis.model import capacity, cost, decoders, queueing
from analysis.model.figures import figures
from analysis.model.transformer import kv_replication
from analysis.present import calculator, display
from analysis.reference import model_config
from analysis.reference.efficiency import efficiency, memory_rule, slots
from analysis.reference.specs import Decoder, Replica, RequestMix, Tariff, Workload
from analysis.reference.tables import NEWEST, node
from analysis.symbolic import workload
from analysis.units import unit_of, unit_ratio

STATES = 50
RULES = {"acceptance": 0.7, "draft_length": 4.0, "draft_cost": 0.05, "block": 32.0, "passes": 10.0}
DECODERS = {
    "ar": Decoder.autoregressive(),
    "sd": Decoder.speculative(acceptance=0.7, draft_length=4, draft_cost=0.05),
    "dl": Decoder.diffusion(block_tokens=32, passes=10),
}


@cache
def filled():
    return presets.fills(as_of=NEWEST)


@cache
def options():
    return {choice.name: [option.key for option in choice.options] for choice in presets.choices(as_of=NEWEST)}


@cache
def states():
    """Random choices and numbers, those that the page would refuse left out."""
    draw = np.random.default_rng(20260720)
    found = []
    while len(found) < STATES:
        chosen = {name: str(draw.choice(keys)) for name, keys in options().items()}
        chosen, values = calculator.baseline(chosen, filled())
        if values["kv_copies"] is None or values["gpus"] > values["node_gpus"]:
            continue
        prompt = float(draw.integers(50, 20_000))
        values |= RULES | {
            "prompt": prompt,
            "cached": float(draw.integers(0, int(prompt))) if draw.random() < 0.5 else 0.0,
            "answer": float(draw.integers(1, 2000)),
            "peak_req_per_s": float(np.exp(draw.uniform(-2, 5))),
            "day_share": float(draw.uniform(0.1, 1)),
            "budget_s": float(np.exp(draw.uniform(-1, 5))),
            "overhead_s": float(draw.choice([0.0, 0.2])),
            "spares": float(draw.integers(0, 3)),
            "price": float(draw.uniform(2, 100)),
        }
        found.append((chosen, values))
    return found


@cache
def computed():
    """Every line of the chain at all states at once."""
    names = [one.symbol for one in (*calculator.FIELDS, *calculator._CHOSEN)]
    together = {name: np.array([values[name] or 0.0 for _, values in states()]) for name in names}
    return calculator.compute(together)


def the_same(state):
    """What the model has for the same choices."""
    chosen, values = states()[state]
    config = model_config.shipped(chosen["model"])
    weights = None if chosen["weights"] == presets.RELEASED else chosen["weights"]
    provider, instance = chosen["node"].split(" ")
    precision = config.precision.with_formats(weights=weights, kv=chosen["kv"])
    part = node(instance, as_of=NEWEST, provider=provider).accelerator
    replica = Replica(config.architecture, precision, part, int(chosen["gpus"]))
    engine = {
        "rule": memory_rule(chosen["engine"]),
        "slots": slots(chosen["engine"]),
        "efficiency": efficiency(replica, chosen["engine"]),
    }
    load = {
        "input_tokens": values["prompt"],
        "cached_tokens": values["cached"],
        "output_tokens": values["answer"],
    }
    return replica, engine, load, chosen, values


def test_every_line_comes_out_in_its_unit():
    """A right formula adds seconds to seconds and bytes to bytes, through all templates and halvings."""
    units = dict(workload.UNITS)
    checked = {}
    for line in workload.lines():
        symbols = line.value.free_symbols
        here = {symbol: units[line.renamed.get(symbol, symbol)] for symbol in symbols}
        key = (line.value, tuple(sorted((str(s), str(u)) for s, u in here.items())))
        if key not in checked:
            # a power that is not a number has no unit; 3/2 is what is fitted
            checked[key] = unit_of(line.value.xreplace({workload.OVERLAP: Rational(3, 2)}), here)
        assert unit_ratio(checked[key], line.unit) == 1, line.symbol
        units[line.symbol] = line.unit
    assert len(checked) > 100


@pytest.mark.parametrize("state", range(STATES))
def test_chain_is_the_model(state):
    """Time of a pass and what binds it, floor, room, rates, nodes, latency, percentile: as the model computes them."""
    replica, engine, load, chosen, values = the_same(state)
    got = {name: np.broadcast_to(value, STATES)[state] for name, value in computed().items()}
    suffix = list(DECODERS)[state % 3]
    decoder = DECODERS[suffix]
    service = queueing.Service.of(replica, decoder, **load, **engine)
    assert got[f"room_{suffix}"] == pytest.approx(service.room, rel=1e-9)
    for name in ("alone", "full", "now", "far"):
        n = got[f"n_{suffix}_{name}"]
        served = decoders.served(replica, decoder, batch=n, **load, efficiency=engine["efficiency"])
        assert got[f"t_{suffix}_{name}"] == pytest.approx(served.cycle_s, rel=1e-9)
        assert got[f"l_{suffix}_{name}"] == pytest.approx(served.request_s, rel=1e-9)
    if suffix == "ar":
        # the axis of the decision map: rate times the stay of a request that has the replica to itself
        alone = decoders.served(replica, decoder, batch=1, **load, efficiency=engine["efficiency"]).request_s
        assert got["together"] == pytest.approx(values["peak_req_per_s"] * alone, rel=1e-9)
    if service.room < 1:
        assert got[f"reason_{suffix}"] == 1
        return
    budget = {"metric": "e2e" if chosen["metric"] == "p95" else chosen["metric"]}
    outside = 0.0 if chosen["metric"] == "tpot" else values["overhead_s"]
    assert got[f"floor_s_{suffix}"] == pytest.approx(service.floor_s(**budget) + outside, rel=1e-9)
    assert got[f"saturated_req_per_s_{suffix}"] == pytest.approx(service.saturated_req_per_s, rel=1e-9)
    if got[f"reason_{suffix}"] == 2:
        assert service.floor_s(**budget) + outside >= values["budget_s"]
        return
    percentile = 95 if chosen["metric"] == "p95" else None
    rate = queueing.rate_within_budget(service, values["budget_s"] - outside, percentile=percentile, **budget)
    # where a full replica lets requests wait, the page takes the wait as if all had to
    patient = got[f"m_{suffix}_full"] < values["budget_s"]
    assert got[f"replica_req_per_s_{suffix}"] == pytest.approx(rate, rel=0.02 if patient else 1e-5)
    assert got[f"replica_req_per_s_{suffix}"] <= rate * (1 + 1e-5)
    context = values["prompt"] + values["answer"] / 2
    time = decoders.cycle(
        replica, decoder, batch=got[f"batch_{suffix}"], context_tokens=context, efficiency=engine["efficiency"]
    ).time
    assert workload.TERMS[int(got[f"bound_{suffix}"])] == time.bound
    now = queueing.under_load(service, got[f"each_req_per_s_{suffix}"])
    if not now.waits:
        assert got[f"latency_s_{suffix}"] == pytest.approx(now.latency_s, rel=1e-5)
        if now.in_domain:
            assert got[f"p95_s_{suffix}"] == pytest.approx(now.quantile_s(95) + values["overhead_s"], rel=1e-5)
        assert got[f"trusted_{suffix}"] == now.in_domain


@pytest.mark.parametrize("state", range(0, STATES, 2))
def test_nodes_and_bill_are_those_of_capacity(state):
    """Where the budget is about 95 of 100 answers, nodes and saturated cost are those of the command line."""
    replica, engine, load, chosen, values = the_same(state)
    got = {name: np.broadcast_to(value, STATES)[state] for name, value in computed().items()}
    suffix = list(DECODERS)[state % 3]
    service = queueing.Service.of(replica, DECODERS[suffix], **load, **engine)
    work = Workload(
        values["peak_req_per_s"],
        values["prompt"],
        values["answer"],
        cached_tokens=values["cached"],
        budget_s=values["budget_s"],
        overhead_s=values["overhead_s"],
        metric="e2e" if chosen["metric"] == "p95" else chosen["metric"],
        percentile=95,
    )
    copies = int(values["node_gpus"] // values["gpus"])
    fleet = capacity.fleet(
        service, work, copies=copies, price_usd_per_node_hour=values["price"], spares=int(values["spares"])
    )
    assert fleet.feasible == (got[f"reason_{suffix}"] == 0)
    if service.room >= 1:
        assert got[f"saturated_usd_per_mtok_{suffix}"] == pytest.approx(fleet.saturated_usd_per_mtok, rel=1e-9)
    if fleet.feasible and chosen["metric"] == "p95" and got[f"m_{suffix}_full"] >= values["budget_s"]:
        assert got[f"nodes_{suffix}"] == fleet.nodes


@pytest.mark.parametrize("state", range(0, STATES, 5))
def test_money_is_that_of_the_cost_chapter(state):
    _, _, load, _, values = the_same(state)
    got = {name: np.broadcast_to(value, STATES)[state] for name, value in computed().items()}
    tariff = Tariff(
        values["api_input_usd_per_mtok"], values["api_output_usd_per_mtok"], values["api_cached_usd_per_mtok"]
    )
    mix = RequestMix(load["input_tokens"], load["output_tokens"], load["cached_tokens"])
    bill = cost.api_usd_per_request(tariff, mix)
    assert got["request_usd_api"] == pytest.approx(bill, rel=1e-9)
    for suffix in DECODERS:
        if got[f"reason_{suffix}"] == 1:
            continue
        of_node = {"node_req_per_s": got[f"node_saturated_req_per_s_{suffix}"]}
        even = cost.breakeven_utilization_of_requests(values["price"], **of_node, api_usd_per_request=bill)
        assert got[f"breakeven_{suffix}"] == pytest.approx(even, rel=1e-9)
        if got[f"reason_{suffix}"] == 0:
            owned = cost.owned_usd_per_request(values["price"], **of_node, utilization=got[f"utilization_{suffix}"])
            assert got[f"request_usd_{suffix}"] == pytest.approx(owned, rel=1e-9)


def test_answer_is_the_cheapest_that_keeps_the_budget():
    got = {name: np.broadcast_to(value, STATES) for name, value in computed().items()}
    reasons = [*(got[f"reason_{suffix}"] == 0 for suffix in DECODERS), got["reason_api"] != 1]
    usd = [got[f"request_usd_{suffix}"] for suffix in (*DECODERS, "api")]
    offers = np.where(reasons, usd, np.inf)
    expected = np.where(np.isinf(offers).all(axis=0), 4, offers.argmin(axis=0))
    assert got["choice"].tolist() == expected.tolist()
    # each kind of answer is among the states
    assert len(set(expected.tolist())) >= 3


@pytest.mark.parametrize("index", range(len(presets.WORKLOADS)))
def test_every_example_has_an_answer(index):
    """No field of an example is left empty but those of which nothing is published, and all are in their ranges."""
    _, values = calculator.baseline({"workload": str(index)}, filled())
    for one in (*calculator.FIELDS, *calculator._CHOSEN):
        if values[one.symbol] is None:
            assert one.optional, one.symbol
        else:
            assert one.low <= values[one.symbol] / float(one.scale) <= one.high, one.symbol
    found = calculator.compute(values)
    assert all(np.isfinite(value) for value in found.values())
    assert found["choice"] < 4


def test_every_combination_of_choices_is_filled_or_said_to_be_missing():
    """What the tables lack is a price of a node or a split of heads; both have words."""
    for fill in filled():
        known = [
            options()[key] if key in options() else sorted({row[i] for row in fill.rows})
            for i, key in enumerate(fill.keys)
        ]
        whole = np.prod([len(keys) for keys in known])
        missing = whole - len(fill.rows)
        names = {name for row in fill.rows.values() for name in row.values}
        assert missing == 0 or names <= set(calculator.MISSING), fill.keys


def test_models_with_other_layers_are_refused_by_the_sums():
    """Windows that start anew, as those of Llama 4, are no window that slides."""
    config = model_config.shipped("llama-4-scout")
    with pytest.raises(InputError, match="layers that see everything or one window"):
        figures(config.architecture, config.precision)
    assert "llama-4-scout" not in options()["model"]


def test_splits_that_heads_do_not_allow_are_missing():
    (fill,) = (fill for fill in filled() if fill.keys == ("model", "gpus"))
    for name in options()["model"]:
        architecture = model_config.shipped(name).architecture
        for gpus in presets.SPLITS:
            if (name, str(gpus)) in fill.rows:
                copies = kv_replication(architecture, tensor_parallel=gpus)
                assert fill.rows[name, str(gpus)].values["kv_copies"] == copies
            else:
                with pytest.raises(InputError):
                    kv_replication(architecture, tensor_parallel=gpus)


def test_choice_that_was_made_stays_where_an_example_would_set_another():
    chosen, values = calculator.baseline({"workload": "0", "model": "gpt-oss-120b"}, filled())
    assert chosen["model"] == "gpt-oss-120b"
    assert values["experts"] == 128


def test_page_refuses_strange_fills_and_choices():
    choices = presets.choices(as_of=NEWEST)
    shown = {"name": "fig-a", "alt": "Bars of what a million tokens cost in four ways."}
    strange = calculator.Fill(("node",), {("x",): calculator.Filled({"colour": 1.0})})
    with pytest.raises(InputError, match="'colour', expected an input of the chain"):
        calculator.show(choices, [*filled(), strange], **shown)
    strange = calculator.Fill(("node",), {("x",): calculator.Filled({}, {"kv": "bf17"})})
    with pytest.raises(InputError, match="'bf17', expected an option of kv"):
        calculator.show(choices, [*filled(), strange], **shown)
    with pytest.raises(InputError, match="a choice of api"):
        calculator.show([one for one in choices if one.name != "api"], filled(), **shown)


def test_second_chart_holds_what_it_computes_from():
    """Each line that its curves use is a parameter of it, and starts with the number of the first example."""
    shown = calculator.load(filled(), name="fig-calculator-load", alt="Lines that rise with the load of a node.")
    spec = shown.data[display.VEGA_LITE]
    start = {param["name"]: param["value"] for param in spec["params"]}
    found = calculator.compute(calculator.baseline({"workload": "0"}, filled())[1])
    assert start["metric_s_dl"] == pytest.approx(float(found["metric_s_dl"]), rel=1e-5)
    used = {
        name
        for part in display.walk(spec)
        for step in part.get("transform", [])
        for said in [re.sub(r"'[^']*'", "", step.get("calculate", step.get("filter", "")))]  # words are no names
        for name in re.findall(r"(?<![.\w])[a-z]\w*(?!\w*\()", said)
    }
    assert used - {"datum", "pow", "max", "min", "exp", "log", "sqrt", "e"} <= set(start)


def test_page_is_the_same_twice_and_escapes_what_it_is_handed():
    choices = presets.choices(as_of=NEWEST)
    (nodes,) = (one for one in choices if one.name == "node")
    hostile = calculator.Choice("node", [*nodes.options, calculator.Option('"><b>', "<script>")], '"><b>')
    choices = [hostile if one is nodes else one for one in choices]
    fills = filled()
    shown = [
        calculator.show(choices, fills, name="fig-a", alt="Bars of what a million tokens cost in four ways.")
        for _ in range(2)
    ]
    first, second = (json.dumps(one.data[display.VEGA_LITE]) for one in shown)
    assert first == second
    markup = "".join(calculator.markup(json.loads(shown[0].data[display.VEGA_LITE]["usermeta"]["calculator"])))
    assert "<script>" not in markup
    assert "&lt;script&gt;" in markup
