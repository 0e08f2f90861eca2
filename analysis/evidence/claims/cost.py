"""Statements about the cost identity and the prices that go into it (chapter 1)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sympy import simplify

from analysis.evidence.claims.registry import Context, Counterfactual, Evidence, Outcome, Stated, Structure, claim
from analysis.evidence.scenarios import Point, Range, Space, between, fixed
from analysis.model.cost import cost_usd_per_mtok
from analysis.reference.tables import node_prices, output_prices
from analysis.symbolic import cost as symbolic
from analysis.symbols import COST, PRICE, TPUT, UTIL

#: "The only levers" is false where the other levers carry more than this share of the whole change.
OTHER_LEVERS = 0.1
#: The words of the price lists for a commitment of one year.
ONE_YEAR_TERMS = ("plan-1yr", "reserved-1yr", "savings-plan-1yr")


@claim("C36", kind="definition", stated_in="both", chapter="cost")
def cost_identity() -> Structure:
    """Effective cost per token is the node's price per hour over the product of throughput and utilization."""
    derived = symbolic.cost_per_token()
    given_back = simplify(symbolic.price_at_cost().subs(COST, derived))
    elasticities = [simplify(derived.diff(x) * x / derived) for x in (PRICE, TPUT, UTIL)]
    return Structure(
        present=given_back == PRICE and elasticities == [1, -1, -1],
        departs_when=(
            "nothing flips an identity; it misleads where the throughput counts other tokens than the price, where"
            " utilization multiplies the bill, and where demand is fixed"
        ),
    )


def _two_contracts(context: Context) -> Space:
    prices = node_prices(as_of=context.as_of, prices=context.prices).where(instance="p5.48xlarge", quantity="price")[
        "value"
    ]
    # a node that costs nothing is no lever on what the others cost
    paid = prices[prices > 0] if (prices > 0).any() else pd.Series([1.0])
    return {
        "price_factor": between(
            1, paid.max() / paid.min(), "the prices of one instance on that day, by term and region", floor=1
        ),
        "tokens_factor": Range(
            1, 2, "assumed: the same record from a trimmed prompt, or from an answer twice as long", floor=1
        ),
        "throughput_factor": Range(1, 30, "the text's own upper end for what batching changes", floor=1),
        "utilization_factor": Range(1, 20, "from one busy hour in twenty to all of them", floor=1),
    }


@claim(
    "C38",
    kind="computed",
    stated_in="both",
    quantifier="always",
    chapter="cost",
    space=_two_contracts,
    counterfactual=Counterfactual(
        "the contract and the tokens of a task stay as they are",
        lambda space: fixed(space, price_factor=1.0, tokens_factor=1.0),
    ),
    inputs={
        "price_factor": "the ratio of node prices on offer",
        "tokens_factor": "the ratio of tokens for one task",
        "throughput_factor": "the ratio of throughputs within reach",
        "utilization_factor": "the ratio of utilizations within reach",
    },
    sources=("radar2026", "aws-price-list"),
)
def only_levers(point: Point, context: Context) -> Outcome:
    """On owned compute, throughput and utilization are the only levers on the cost of a task."""
    dear = point["tokens_factor"] * cost_usd_per_mtok(
        point["price_factor"], node_tok_per_s=1.0, utilization=1 / point["utilization_factor"]
    )
    only_these = point["tokens_factor"] * cost_usd_per_mtok(
        point["price_factor"], node_tok_per_s=point["throughput_factor"], utilization=1.0
    )
    cheap = cost_usd_per_mtok(1.0, node_tok_per_s=point["throughput_factor"], utilization=1.0)
    others = np.log(only_these / cheap) / np.log(dear / cheap)
    return Outcome(others <= OTHER_LEVERS, value=others)


ABOUT_33 = Stated(32.5, 33.5, "USD/node_hour", "about 33, rounded to a dollar")
BELOW_1 = Stated(0, 1, "USD/Mtok", "below a dollar, taken for output tokens, the dearer kind")
FROM_5_TO_15 = Stated(5, 15, "USD/Mtok", "5 to 15, ends included")


@claim(
    "C40",
    kind="market fact",
    stated_in="both",
    quantifier="typically",
    chapter="cost",
    stated=ABOUT_33,
)
def one_year_price(context: Context) -> Evidence:
    """A p5.48xlarge on a one-year savings plan costs about 33 dollars an hour."""
    rows = node_prices(as_of=context.as_of, prices=context.prices).rows
    rows = rows[(rows["instance"] == "p5.48xlarge") & rows["term"].isin(ONE_YEAR_TERMS)]
    return Evidence(
        _supporting(rows, ABOUT_33),
        searched=(
            "no price list with a one-year term for this instance was found after the cut of June 2025 (public price"
            " lists, their archived copies, and open catalogs, read up to November 2026)"
        ),
    )


@claim(
    "C41",
    kind="market fact",
    stated_in="both",
    quantifier="typically",
    chapter="cost",
    stated=BELOW_1,
)
def commodity_price(context: Context) -> Evidence:
    """Commodity APIs sell a million tokens for less than a dollar."""
    rows = output_prices(as_of=context.as_of, prices=context.prices, classes=["commodity"])
    return Evidence(
        # a price of one dollar is not less than a dollar
        rows.assign(supports=rows["value"] < BELOW_1.high),
        searched="the price feeds named in the data table",
    )


@claim(
    "C43",
    kind="market fact",
    stated_in="both",
    quantifier="typically",
    chapter="cost",
    stated=FROM_5_TO_15,
)
def frontier_price(context: Context) -> Evidence:
    """Output of frontier or reasoning models sells for 5 to 15 dollars a million tokens."""
    return Evidence(
        _supporting(
            output_prices(as_of=context.as_of, prices=context.prices, classes=["frontier", "reasoning"]), FROM_5_TO_15
        ),
        searched="the price feeds named in the data table",
    )


def _supporting(rows: pd.DataFrame, stated: Stated) -> pd.DataFrame:
    return rows.assign(supports=stated.contains(rows["value"].to_numpy()))
