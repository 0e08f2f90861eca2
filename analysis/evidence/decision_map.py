"""The decision map: the cheapest option, over requests that run together and the price of the token otherwise bought.

The two questions of the texts, with numbers in the place of yes and no. Everything that the two axes leave out is held
at one setting for each map, and a few settings side by side say what that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.evidence import decisions
from analysis.evidence.claims.registry import Context
from analysis.model import decoders
from analysis.model.cost import api_usd_per_request
from analysis.reference import tables
from analysis.reference.specs import Decoder, RequestMix, Tariff
from analysis.units import SECONDS_PER_HOUR

#: What can be chosen; the first that is cheapest wins a tie.
OPTIONS = ("API", "autoregressive", "speculative", "diffusion")
INFEASIBLE = "infeasible"
#: Requests that run together, and USD per million output tokens of the API: the axes of the map.
CONCURRENCY = (0.01, 1000.0)
API_USD_PER_MTOK = (0.1, 30.0)
COLUMNS, ROWS = 80, 40


@dataclass(frozen=True)
class Setting:
    """What a map holds fixed.

    Parameters
    ----------
    name : str
        What is different from the first map, in a few words.
    input_tokens, output_tokens : float
        Of a request. [token]
    budget_s : float
        Time of a whole answer that the 95th percentile keeps. [s]
    ownership : str
        Way to have the node.
    day_share : float
        Mean rate over the peak for which nodes are counted. [1]
    useful : float
        Share of the node's answers that are of use, against the API's. [1]
    workloads : float
        Workloads of this kind that share the nodes. [1]
    api : bool
        Whether data may go to an API.
    block_tokens, tokens_a_pass : float
        Of the diffusion model. [token]
    """

    name: str
    input_tokens: float = 2_000.0
    output_tokens: float = 300.0
    budget_s: float = 5.0
    ownership: str = "rent"
    day_share: float = 1.0
    useful: float = 1.0
    workloads: float = 1.0
    api: bool = True
    block_tokens: float = 32.0
    tokens_a_pass: float = 4.0


NIGHT_S = 12.0 * SECONDS_PER_HOUR
BASE = Setting("five seconds, a rented node")
SETTINGS = (
    BASE,
    replace(BASE, name="a second", budget_s=1.0),
    replace(BASE, name="a second, 16 tokens in a pass", budget_s=1.0, tokens_a_pass=16.0, block_tokens=256.0),
    replace(BASE, name="two seconds", budget_s=2.0),
    replace(BASE, name="no hurry: a night", budget_s=NIGHT_S),
    replace(BASE, name="a long prompt of 8,000 tokens", input_tokens=8_000.0),
    replace(BASE, name="bursts: peak four times the mean", day_share=0.25),
    replace(BASE, name="one answer in five is of no use", useful=0.8),
    replace(BASE, name="ten workloads share the node", workloads=10.0),
    replace(BASE, name="the node is already paid for", ownership="sunk"),
    replace(BASE, name="data must stay", api=False),
)


def fastest_api_s(context: Context) -> float:
    """Return the shortest time in which a listed API gave a whole answer of 500 tokens. [s].

    Raises
    ------
    InputError
        If there is no such time on that day.
    """
    rows = tables.api_latency(as_of=context.as_of)
    return float(rows["e2e_s"].dropna().min())


def node_rates(setting: Setting) -> dict[str, float]:
    """Return how many requests per second one node takes within the budget, by decoder; 0 where it keeps none.

    The 95th percentile keeps the budget; within a night only the saturated rate counts.
    """
    point = {
        "weights": np.array(["fp8"]),
        "prompt": np.array([setting.input_tokens]),
        "answer": np.array([setting.output_tokens]),
        "acceptance": np.array([decisions.ACCEPTANCE.central]),
        "drafts": np.array([4]),
        "draft_cost": np.array([decisions.DRAFT_COST.central]),
        "block": np.array([int(setting.block_tokens)]),
        "tokens_a_pass": np.array([setting.tokens_a_pass]),
    }
    kinds = OPTIONS[1:]
    return {kind: float(decisions.node_req_per_s(kind, point, budget_s=setting.budget_s)[0]) for kind in kinds}


def input_price_ratio(context: Context) -> float:
    """Return what sellers of open models ask for input over output, the middle one. [1]."""
    sellers = tables.class_tariffs("commodity", as_of=context.as_of, prices=context.prices)
    sold = [tariff for model in sellers.values() for tariff in model.values() if tariff.output_usd_per_mtok > 0]
    # where output is free there is no ratio, and any will do
    return float(np.median([tariff.input_usd_per_mtok / tariff.output_usd_per_mtok for tariff in sold] or [1.0]))


def stay_alone_s(setting: Setting) -> float:
    """Time of a request alone on the node, decoded token by token: what rate is multiplied with on the map. [s]."""
    replica = decisions.replica_of(decisions.MODEL, "fp8", decisions.GPUS)
    alone = decoders.request_s(
        replica,
        Decoder.autoregressive(),
        input_tokens=setting.input_tokens,
        output_tokens=setting.output_tokens,
        efficiency=decisions.reached(replica, {}),
    )
    return float(alone)


def usd_per_request(
    setting: Setting,
    context: Context,
    *,
    concurrency: ArrayLike,
    api_usd_per_mtok: ArrayLike,
    rates: Mapping[str, float] | None = None,
) -> dict[str, NDArray[np.float64]]:
    r"""Cost of a useful request of every option; endless where an option does not keep the budget or is not allowed.

    .. math:: \frac{p_\mathrm{node}\,\lceil m \hat\lambda / \Lambda(1) \rceil}
              {3600\, m\, \hat\lambda\, u_\mathrm{day}\, q}, \qquad \hat\lambda = n / \mathcal{L}_0

    Parameters
    ----------
    setting : Setting
    context : Context
    concurrency : float or array
        Requests that would run together at the peak, decoded token by token on an empty node: peak rate times stay. [1]
    api_usd_per_mtok : float or array
        What the API asks for output; for input it asks `input_price_ratio` of that. [USD/Mtok]
    rates : mapping, optional
        As `node_rates`, where they are known.

    Returns
    -------
    dict of str to array
        By option. [USD/request]
    """
    n, price = np.broadcast_arrays(np.asarray(concurrency, float), np.asarray(api_usd_per_mtok, float))
    peak = n / stay_alone_s(setting)
    of_one = rates if rates is not None else node_rates(setting)
    node = float(
        decisions.node_usd_per_hour({"ownership": np.array([setting.ownership]), "place": np.array([0.5])}, context)[0]
    )
    allowed = setting.api and fastest_api_s(context) <= setting.budget_s
    mix = RequestMix(setting.input_tokens, setting.output_tokens)
    bill = np.asarray(api_usd_per_request(Tariff(input_price_ratio(context) * price, price), mix))
    found = {"API": bill if allowed else np.full(n.shape, np.inf)}
    useful_per_hour = SECONDS_PER_HOUR * setting.workloads * peak * setting.day_share * setting.useful
    for kind in OPTIONS[1:]:
        if of_one[kind] > 0:
            nodes = np.ceil(setting.workloads * peak / of_one[kind])
            found[kind] = node * nodes / useful_per_hour
        else:
            found[kind] = np.full(n.shape, np.inf)
    return found


def cheapest(costs: Mapping[str, NDArray[np.float64]]) -> NDArray[Any]:
    """Name the cheapest option, "infeasible" where there is none; the first in the order of `OPTIONS` wins a tie.

    Examples
    --------
    >>> endless = np.array([np.inf])
    >>> cheapest({"API": np.array([1.0]), "autoregressive": np.array([1.0])}).tolist()
    ['API']
    >>> cheapest({"API": endless, "autoregressive": endless}).tolist()
    ['infeasible']
    """
    names = np.array([*costs, INFEASIBLE])
    stacked = np.stack([*costs.values()])
    first = np.argmin(stacked, axis=0)
    return names[np.where(np.isfinite(stacked.min(axis=0)), first, len(costs))]


def grid(context: Context) -> pd.DataFrame:
    """Compute every map.

    Parameters
    ----------
    context : Context

    Returns
    -------
    DataFrame
        One row for each cell of each setting: ``setting``, ``concurrency``, ``api_usd_per_mtok``, ``option``, and the
        corners of the cell, ``left``, ``right``, ``bottom``, ``top``.
    """
    edges_x, edges_y = np.geomspace(*CONCURRENCY, COLUMNS + 1), np.geomspace(*API_USD_PER_MTOK, ROWS + 1)
    x, y = (np.sqrt(edges[1:] * edges[:-1]) for edges in (edges_x, edges_y))
    at_x, at_y = (part.ravel() for part in np.meshgrid(x, y))
    corners = {
        "left": np.tile(edges_x[:-1], ROWS),
        "right": np.tile(edges_x[1:], ROWS),
        "bottom": np.repeat(edges_y[:-1], COLUMNS),
        "top": np.repeat(edges_y[1:], COLUMNS),
    }
    maps = []
    for setting in SETTINGS:
        options = cheapest(usd_per_request(setting, context, concurrency=at_x, api_usd_per_mtok=at_y))
        cells = {"setting": setting.name, "concurrency": at_x, "api_usd_per_mtok": at_y, "option": options}
        maps.append(pd.DataFrame({**cells, **corners}))
    return pd.concat(maps, ignore_index=True)


def runs(cells: pd.DataFrame) -> pd.DataFrame:
    """Join the cells of a row that have the same option into one rectangle: the same map in fewer rows.

    Parameters
    ----------
    cells : DataFrame
        As `grid`.

    Returns
    -------
    DataFrame
        ``setting``, ``option``, ``left``, ``right``, ``bottom``, ``top``.
    """
    key = cells["setting"] + cells["bottom"].astype(str) + cells["option"]
    run = (key != key.shift()).cumsum().rename("run")
    joined = cells.groupby(run, sort=False).agg(
        setting=("setting", "first"),
        option=("option", "first"),
        left=("left", "first"),
        right=("right", "last"),
        bottom=("bottom", "first"),
        top=("top", "first"),
    )
    return joined.reset_index(drop=True)


def names_on_map(cells: pd.DataFrame) -> pd.DataFrame:
    """Say where the name of each region stands: at the cell nearest to the region's middle.

    Returns
    -------
    DataFrame
        ``setting``, ``option``, ``concurrency``, ``api_usd_per_mtok``, for regions of at least two in a hundred cells.
    """
    rows = []
    for (setting, option), region in cells.groupby(["setting", "option"], sort=False):
        if len(region) < 0.02 * COLUMNS * ROWS:
            continue
        x, y = (np.log(region[axis]) for axis in ("concurrency", "api_usd_per_mtok"))
        nearest = ((x - x.mean()) ** 2 + (y - y.mean()) ** 2).idxmin()
        at = region.loc[nearest]
        rows.append(
            {
                "setting": setting,
                "option": option,
                "concurrency": at["concurrency"],
                "api_usd_per_mtok": at["api_usd_per_mtok"],
            }
        )
    return pd.DataFrame(rows)


def shares(cells: pd.DataFrame) -> pd.DataFrame:
    """Give the share of each map's area by option: what a selector shows, in one table.

    Returns
    -------
    DataFrame
        ``setting`` and one column for each option. [1]
    """
    counted = cells.groupby(["setting", "option"], sort=False).size().unstack(fill_value=0)
    counted = counted.reindex(columns=[*OPTIONS, INFEASIBLE], fill_value=0)
    names = [setting.name for setting in SETTINGS]
    return (counted.loc[names] / (COLUMNS * ROWS)).rename_axis(None, axis=1).reset_index()


def breakeven_concurrency(setting: Setting, context: Context, api_usd_per_mtok: float) -> float | None:
    """Return the least number of requests together from which owning is cheaper than the API at this price.

    Parameters
    ----------
    setting : Setting
    context : Context
    api_usd_per_mtok : float
        [USD/Mtok]

    Returns
    -------
    float or None
        None where no number in the range of the map makes it so. [1]
    """
    together = np.geomspace(*CONCURRENCY, 2_000)
    options = cheapest(
        usd_per_request(
            setting, context, concurrency=together, api_usd_per_mtok=np.full(together.shape, api_usd_per_mtok)
        )
    )
    owned = ~np.isin(options, ["API", INFEASIBLE])
    return float(together[np.argmax(owned)]) if owned.any() else None
