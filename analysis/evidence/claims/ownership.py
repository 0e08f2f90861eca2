"""Statements about owning, renting and calling an API (chapter 9)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.evidence.claims.registry import Context, Counterfactual, Evidence, Outcome, Structure, claim
from analysis.evidence.scenarios import Choice, Point, Range, Space, between, fixed
from analysis.inputs import InputError
from analysis.model import cost
from analysis.model.ownership import MODES, bought_usd_per_node_hour, energy_usd_per_hour
from analysis.reference import tables
from analysis.reference.specs import Ownership, RequestMix, Tariff
from analysis.symbolic import cost as symbolic
from analysis.symbols import API_PRICE, COST, PRICE, RATE, REQ_TPUT, TPUT, USEFUL, UTIL
from analysis.units import HOURS_PER_YEAR, WORKING_HOURS_PER_YEAR

#: The label of the claim check in the chapter.
ANCHOR = "claims-own-rent-api"

#: The node of the texts: eight H100.
ACCELERATOR, COUNT, HARDWARE = "h100-sxm", 8, "hgx-h100"
#: Keeps a division by a price of zero, whose result is not used, from being one.
TINY = 1e-9

WRITE = Range(
    2_000,
    17_000,
    "output tokens a second of a saturated node: from the low end of the text's thousands to the 17,062 that"
    " TensorRT-LLM 0.17 prints for a 70B model in FP8 on eight H100",
)
READ = Range(
    15_000,
    57_000,
    "input tokens a second of the same node: the same page's run of 2,048 tokens in and 128 out reads 31,000; half of"
    " it below, half of the dense FP8 peak above",
)
PROMPT = Range(500, 8_000, "the prompts that the texts speak of, from a message to a long document")
ANSWER = Range(100, 1_000, "from a short record to a page")
PLACE = Range(
    0, 1, "from the cheapest to the dearest price of that way on that day", scale="uniform", floor=0, ceiling=1
)
WAYS = Choice(MODES, "the readers have bought nodes; the text prices a rented one; some are already paid for")


@claim("C37", kind="definition", stated_in="article", chapter="own-rent-api", anchor=ANCHOR)
def pay_per_token() -> Structure:
    """Public APIs price each token the same, whatever else runs at the time, and charge nothing for idle hours."""
    bill = symbolic.api_bill()
    return Structure(
        present=not bill.free_symbols & {UTIL, RATE, TPUT, REQ_TPUT, PRICE},
        departs_when=(
            "rate limits, throughput that is paid for in advance, discounts for batches and cached input, surcharges"
            " for long prompts and hidden reasoning make a bill depend on more than the tokens that are read"
        ),
    )


@claim("C64", kind="definition", stated_in="summary", chapter="own-rent-api", anchor=ANCHOR, sources=())
def useful_tokens_per_dollar() -> Structure:
    """The right measure is useful tokens per dollar."""
    per_dollar = 1 / symbolic.cost_per_useful_token()
    at_break_even = (COST / USEFUL).subs(USEFUL, symbolic.breakeven_useful_share())
    return Structure(
        present=bool(per_dollar.diff(USEFUL).is_positive) and at_break_even == API_PRICE,
        departs_when=(
            "useful is not defined there; cost per task done right at a stated accuracy can be tested, and a model that"
            " needs more tokens for a task, or is wrong more often, loses by it what it gains per token"
        ),
    )


def _node_prices(context: Context, terms: str) -> pd.Series:
    """Return the prices of whole nodes with eight H100 on that day, of the terms that a pattern fits.

    Raises
    ------
    InputError
        If there is none on that day.
    """
    nodes = tables.table("nodes", as_of=context.as_of).where(accelerator=ACCELERATOR)
    nodes = nodes[nodes["value"] == COUNT]
    rows = tables.node_prices(as_of=context.as_of, prices=context.prices).where(quantity="price")
    rows = rows.merge(nodes[["provider", "instance"]], on=["provider", "instance"])
    values = rows[rows["term"].str.fullmatch(terms)]["value"]
    if values.empty:
        raise InputError("as_of", str(context.as_of), f"a day with a price for {COUNT} {ACCELERATOR}, {terms}")
    return values


def _owning(context: Context, *, dear: bool) -> Ownership:
    """Return the terms of owning at the cheap or at the dear end of every range, people left out."""
    rows = tables.table("ownership", as_of=context.as_of, prices=context.prices).rows
    ends = rows[rows["hardware"].isin(["any", HARDWARE])].set_index("quantity")
    # a value without a range, an own price for example, is its own range
    low, high = (ends[bound].fillna(ends["value"]).astype(float) for bound in ("low", "high"))
    cheap_is_high = ["residual", "life"]
    end = (high if dear else low).copy()
    end[cheap_is_high] = (low if dear else high)[cheap_is_high]
    return replace(
        tables.ownership(HARDWARE, as_of=context.as_of, prices=context.prices),
        purchase_usd=end["purchase"],
        power_share=end["power_share"],
        pue=end["pue"],
        electricity_usd_per_kwh=end["electricity"],
        colocation_usd_per_kw_month=end["colocation"],
        life_years=end["life"],
        residual_share=end["residual"],
        interest_per_year=end["interest"],
        upkeep_per_year=end["upkeep"],
    )


def node_price_ranges(context: Context) -> dict[str, tuple[float, float]]:
    """Return what an hour of eight H100 costs in each way to have them, cheapest and dearest. [USD/node_hour].

    Rented at list prices of that day; reserved at prices with a commitment; bought with every assumption at its
    cheap and at its dear end; sunk from electricity alone to electricity and the lowest spot price forgone.
    """
    rent, reserved, spot = (_node_prices(context, terms) for terms in ("on-demand", tables.COMMITTED_TERMS, "spot"))
    cheap, dear = _owning(context, dear=False), _owning(context, dear=True)
    return {
        "rent": (float(rent.min()), float(rent.max())),
        "reserved": (float(reserved.min()), float(reserved.max())),
        "bought": (bought_usd_per_node_hour(cheap).total_usd, bought_usd_per_node_hour(dear).total_usd),
        "sunk": (energy_usd_per_hour(cheap), energy_usd_per_hour(dear) + float(spot.min())),
    }


def node_price(point: Point, context: Context) -> NDArray[np.float64]:
    """Take each sample's node price from the range of its way to have a node."""
    ranges = node_price_ranges(context)
    low, high = (np.array([ranges[way][end] for way in np.atleast_1d(point["ownership"])]) for end in (0, 1))
    # by ratio, as prices differ; a price of zero has no ratio
    by_ratio = np.maximum(low, TINY) * (high / np.maximum(low, TINY)) ** point["place"]
    return np.where(low > 0, by_ratio, high * point["place"])


def _dear_tokens(context: Context) -> Space:
    standard = tables.api_prices(as_of=context.as_of, prices=context.prices).where(tier="standard", quantity="price")
    models = tables.api_models()
    dear = standard[[models[name].model_class in ("frontier", "reasoning") for name in standard["model"]]]
    by_kind = dear.set_index(["seller", "model", "token_kind"])["value"].unstack()
    # where output is free too there is no ratio, and any will do
    sold = by_kind[by_kind["output"] > 0]
    ratio = (sold["input"] / sold["output"]).dropna() if len(sold) else pd.Series([1.0])
    return {
        "ownership": WAYS,
        "place": PLACE,
        "write_tok_per_s": WRITE,
        "read_tok_per_s": READ,
        "input_tokens": PROMPT,
        "output_tokens": ANSWER,
        "api_usd_per_mtok": Range(5, 15, "the text's own range for output of frontier and reasoning models"),
        "input_price_ratio": between(
            ratio.min(), ratio.max(), "price of input over price of output, the same models on that day"
        ),
        "accounting": Choice(
            ("output", "request"), "the text sets a node against output tokens; an API bills the whole request"
        ),
    }


def owned_over_api(point: Point, context: Context) -> NDArray[np.float64]:
    """Return what a saturated node costs over what the API bills, by output tokens or by whole requests. [1]."""
    price = node_price(point, context)
    by_output = (
        cost.cost_usd_per_mtok(price, node_tok_per_s=point["write_tok_per_s"], utilization=1.0)
        / point["api_usd_per_mtok"]
    )
    mix = RequestMix(point["input_tokens"], point["output_tokens"])
    rate = cost.node_req_per_s(mix, read_tok_per_s=point["read_tok_per_s"], write_tok_per_s=point["write_tok_per_s"])
    tariff = Tariff(point["input_price_ratio"] * point["api_usd_per_mtok"], point["api_usd_per_mtok"])
    by_request = cost.owned_usd_per_request(price, node_req_per_s=rate, utilization=1.0) / cost.api_usd_per_request(
        tariff, mix
    )
    return np.where(np.asarray(point["accounting"]) == "output", by_output, by_request)


@claim(
    "C44",
    kind="computed",
    stated_in="article",
    quantifier="always",
    chapter="own-rent-api",
    anchor=ANCHOR,
    space=_dear_tokens,
    counterfactual=Counterfactual(
        "the API asks half a dollar, as commodity APIs do",
        lambda space: fixed(space, api_usd_per_mtok=0.5),
    ),
    inputs={
        "ownership": "the way to have the node",
        "place": "the place of its price between the cheapest and the dearest",
        "write_tok_per_s": "output tokens a second of the saturated node",
        "read_tok_per_s": "input tokens a second of the node",
        "api_usd_per_mtok": "the API's price of output",
        "input_price_ratio": "the price of input over that of output",
    },
    sources=("radar2026", "litellm-1.93.0", "epoch2026", "cbre-h2-2024"),
)
def saturated_node_undercuts(point: Point, context: Context) -> Outcome:
    """A saturated node of one's own undercuts tokens that sell for 5 to 15 dollars a million."""
    ratio = owned_over_api(point, context)
    return Outcome(ratio < 1, value=ratio)


def _diffusion_against_any(context: Context) -> Space:
    cheapest = tables.output_prices(as_of=context.as_of, prices=context.prices, classes=["commodity"])["value"]
    return {
        "ownership": WAYS,
        "place": PLACE,
        "write_tok_per_s": WRITE,
        "gain": Range(
            0.3,
            1.25,
            "diffusion over token-by-token decoding at a full batch: the text calls them similar, the upper end; the"
            " lower end is assumed, a third of the throughput",
        ),
        "utilization": Range(
            0.05, 1, "from one busy hour in twenty to all of them", scale="uniform", floor=0.01, ceiling=1
        ),
        "api_usd_per_mtok": between(
            min([*cheapest[cheapest > 0], 15.0]),
            15.0,
            "from the cheapest commodity output on that day to the text's dear end",
        ),
    }


@claim(
    "C69",
    kind="computed",
    stated_in="addition",
    quantifier="always",
    chapter="own-rent-api",
    anchor=ANCHOR,
    space=_diffusion_against_any,
    counterfactual=Counterfactual(
        "the node is bought and always busy, and the API asks the text's 15 dollars",
        lambda space: fixed(space, ownership="bought", utilization=1.0, api_usd_per_mtok=15.0),
    ),
    inputs={
        "ownership": "the way to have the node",
        "place": "the place of its price between the cheapest and the dearest",
        "write_tok_per_s": "output tokens a second of the saturated node",
        "gain": "diffusion's throughput over that of the rival",
        "utilization": "utilization",
        "api_usd_per_mtok": "the API's price of output",
    },
    sources=("radar2026", "litellm-1.93.0", "epoch2026", "cbre-h2-2024"),
)
def diffusion_beats_no_api(point: Point, context: Context) -> Outcome:
    """Diffusion on a node of one's own is no way to beat an API on price, whatever the API asks for its tokens."""
    # the close of the text says so; its economics say that a saturated node undercuts dear tokens: not both at once
    owned = cost.cost_usd_per_mtok(
        node_price(point, context),
        node_tok_per_s=point["write_tok_per_s"] * point["gain"],
        utilization=point["utilization"],
    )
    ratio = owned / point["api_usd_per_mtok"]
    return Outcome(ratio >= 1, value=ratio)


def _node_and_engineer(context: Context) -> Space:
    shared = tables.table("ownership", as_of=context.as_of, prices=context.prices)
    pay, wage_share = (shared.one(hardware="any", quantity=name) for name in ("engineer_pay", "wage_share"))
    low, high = (float(pay[end] if pd.notna(pay[end]) else pay["value"]) for end in ("low", "high"))
    return {
        "ownership": WAYS,
        "place": PLACE,
        "pay_usd_per_year": between(low, high, "tenth to ninetieth percentile of software developers' wages"),
        "loading": between(
            1.0, 1 / float(wage_share["value"]), "from the wage alone to all that the employer pays", floor=1
        ),
        "hours_per_year": Choice(
            (WORKING_HOURS_PER_YEAR, HOURS_PER_YEAR),
            "an engineer's year has 2,080 hours of work; a node is paid for 8,760",
        ),
    }


@claim(
    "C62",
    kind="computed",
    stated_in="summary",
    quantifier="always",
    chapter="own-rent-api",
    anchor=ANCHOR,
    space=_node_and_engineer,
    counterfactual=Counterfactual(
        "the node is already paid for",
        lambda space: fixed(space, ownership="sunk"),
    ),
    inputs={
        "ownership": "the way to have the node",
        "place": "the place of its price between the cheapest and the dearest",
        "pay_usd_per_year": "the engineer's pay",
        "hours_per_year": "the hours over which a year's pay is spread",
    },
    sources=("aws-price-list", "epoch2026", "cbre-h2-2024", "lermit-wages", "bls-ecec-2025"),
)
def node_dearer_than_engineer(point: Point, context: Context) -> Outcome:
    """A node of eight H100 costs more per hour than an engineer."""
    engineer = point["pay_usd_per_year"] * point["loading"] / point["hours_per_year"]
    ratio = node_price(point, context) / engineer
    return Outcome(ratio > 1, value=ratio)


@claim(
    "C45",
    kind="market fact",
    stated_in="article",
    quantifier="can",
    chapter="own-rent-api",
    anchor=ANCHOR,
)
def rules_can_forbid(context: Context) -> Evidence:
    """Rules on where data may go can forbid APIs outside altogether."""
    rows = tables.table("rules", as_of=context.as_of).where(quantity="external_api_forbidden")
    return Evidence(
        rows.assign(supports=rows["value"] == 1),
        searched="rules for financial firms in India, Korea and Singapore",
        called="rules read, exemptions apart",
    )


@claim(
    "C46",
    kind="market fact",
    stated_in="article",
    quantifier="typically",
    chapter="own-rent-api",
    anchor=ANCHOR,
)
def most_are_bound(context: Context) -> Evidence:
    """Most regulated enterprises may not use APIs outside."""
    return Evidence(
        pd.DataFrame(columns=["value", "unit", "as_of", "source", "supports"]),
        searched=(
            "no survey found that counts enterprises whose rules forbid it; surveys ask what firms prefer, and the"
            " rules that were read mostly allow it under conditions (searched November 2026)"
        ),
    )


@claim(
    "C70",
    kind="market fact",
    stated_in="addition",
    quantifier="typically",
    chapter="own-rent-api",
    anchor=ANCHOR,
    sources=(),
)
def diffusion_is_closed(context: Context) -> Evidence:
    """Diffusion where data must stay needs open weights or a licence: the diffusion models on sale are closed."""
    sold = tables.output_prices(as_of=context.as_of, prices=context.prices, classes=["diffusion"])
    models = tables.api_models()
    return Evidence(
        sold.assign(supports=[models[name].open_weights is False for name in sold["model"]]),
        searched="the diffusion models that have a price in the data table",
        called="diffusion models on sale",
    )
