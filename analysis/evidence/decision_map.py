"""The decision map: the cheapest option, over requests that run together and the price of the token otherwise bought.

The two questions of the texts, with numbers in the place of yes and no. Everything that the two axes leave out is held
at one setting for each map, and a few settings side by side say what that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.evidence import api_times, decisions, waiting
from analysis.evidence.claims.registry import Context
from analysis.model import decoders, ownership
from analysis.model.cost import api_usd_per_request
from analysis.reference import tables
from analysis.reference.specs import RequestMix, Tariff
from analysis.units import SECONDS_PER_HOUR

#: What can be chosen; the first that is cheapest wins a tie.
OPTIONS = ("API", "autoregressive", "speculative", "diffusion")
INFEASIBLE = "infeasible"
#: Requests that run together, and USD per million output tokens of the API: the axes of the map.
CONCURRENCY = (0.01, 1000.0)
API_USD_PER_MTOK = (0.1, 30.0)
COLUMNS, ROWS = 80, 40
#: Share of the cells from which a region has room for its name.
LEAST_NAMED = 0.01


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
        Way to have the node, as `node_usd_per_hour` prices it.
    day_share : float
        Mean rate over the peak for which nodes are counted. [1]
    useful : float
        Share of the node's answers that are of use, against the API's. [1]
    workloads : float
        Workloads of this kind that share the nodes. [1]
    api : bool
        Whether data may go to an API.
    api_times : str
        Whose word on the times of APIs counts: ``measured`` by others, or ``reported`` by makers.
    model : str
        A shipped architecture, served in 8 bit or in a format of its own.
    block_tokens, tokens_a_pass : float
        Of the diffusion model. [token]
    acceptance, draft_cost : float
        Of the speculative one, whose drafts are as long as is best. [1]
    copies : bool
        Whether drafts are copied from the prompt: they cost nothing and may be longer.
    slower : float
        Measured over predicted times of every decoder. [1]
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
    api_times: str = "measured"
    model: str = decisions.MODEL
    block_tokens: float = 32.0
    tokens_a_pass: float = 4.0
    acceptance: float = decisions.ACCEPTANCE.central
    draft_cost: float = decisions.DRAFT_COST.central
    copies: bool = False
    slower: float = 1.0


def _copying(setting: Setting, *, name: str) -> Setting:
    """Draft by look-up in the prompt, which keeps what it keeps where a text is edited, the most that was measured."""
    of = waiting.acceptances().set_index("way").loc["look-up"]
    return replace(setting, name=name, acceptance=float(of["acceptance"]), draft_cost=0.0, copies=True)


NIGHT_S = 12.0 * SECONDS_PER_HOUR
BASE = Setting("five seconds, a rented node")
SECOND = replace(BASE, name="a second", budget_s=1.0)
#: The second again, with one thing changed that decides who is in time.
SECONDS = (
    SECOND,
    replace(SECOND, name="a second, 16 tokens in a pass", tokens_a_pass=16.0, block_tokens=256.0),
    replace(SECOND, name="a second, good drafts", acceptance=0.85, draft_cost=0.05),
    _copying(SECOND, name="a second, drafts copied from the prompt"),
    replace(SECOND, name="a second, a sparse model", model="gpt-oss-120b"),
    replace(SECOND, name="a second, a model of 8B", model="llama-3.1-8b"),
    replace(SECOND, name="a second, all times 12 % longer", slower=1.12),
    replace(SECOND, name="a second, APIs as fast as makers say", api_times="reported"),
    replace(SECOND, name="one and a half seconds", budget_s=1.5),
)
SETTINGS = (
    BASE,
    *SECONDS,
    replace(BASE, name="two seconds", budget_s=2.0),
    replace(BASE, name="no hurry: a night", budget_s=NIGHT_S),
    replace(BASE, name="a long prompt of 8,000 tokens", input_tokens=8_000.0),
    replace(BASE, name="bursts: peak four times the mean", day_share=0.25),
    replace(BASE, name="one answer in five is of no use", useful=0.8),
    replace(BASE, name="ten workloads share the node", workloads=10.0),
    replace(BASE, name="the node is already paid for", ownership="sunk"),
    replace(BASE, name="data must stay", api=False),
)


def fastest_api_s(setting: Setting, context: Context) -> float:
    """Return the shortest time in which an API of the table answers as many tokens as the setting has. [s].

    Only rows with a wait and a rate are judged, and of these the ones whose word the setting takes
    (`analysis.evidence.api_times`); endless where there is none.
    """
    return api_times.fastest_s(setting.output_tokens, as_of=context.as_of, status=setting.api_times)


def _point(setting: Setting) -> dict[str, NDArray[Any]]:
    return {
        "weights": np.array(["fp8"]),
        "prompt": np.array([setting.input_tokens]),
        "answer": np.array([setting.output_tokens]),
        "acceptance": np.array([setting.acceptance]),
        "draft_cost": np.array([setting.draft_cost]),
        "copied": np.array([setting.acceptance]),
        "block": np.array([int(setting.block_tokens)]),
        "tokens_a_pass": np.array([setting.tokens_a_pass]),
        "slower": np.array([setting.slower]),
    }


def node_rates(setting: Setting) -> dict[str, float]:
    """Return how many requests per second one node takes within the budget, by decoder; 0 where it keeps none.

    The 95th percentile keeps the budget; within a night only the saturated rate counts.
    """
    return {kind: _node_rate(setting, kind) for kind in OPTIONS[1:]}


def _drafted_as(setting: Setting, kind: str) -> str:
    return "look-up" if setting.copies and kind == "speculative" else kind


def _node_rate(setting: Setting, kind: str) -> float:
    # what a node can do hangs on neither prices nor whose work it is, so that settings share it
    of_node = replace(
        setting,
        name="",
        ownership=BASE.ownership,
        day_share=BASE.day_share,
        useful=BASE.useful,
        workloads=BASE.workloads,
        api=BASE.api,
        api_times=BASE.api_times,
    )
    return _rate_of(of_node, kind)


@cache
def _rate_of(setting: Setting, kind: str) -> float:
    as_kind, point = _drafted_as(setting, kind), _point(setting)
    return float(decisions.node_req_per_s(as_kind, point, budget_s=setting.budget_s, model=setting.model)[0])


def alone_s(setting: Setting) -> dict[str, float]:
    """Return the time of a request alone on the node, by decoder, with the node cut for the quickest answer. [s]."""
    point = _point(setting)
    found = {}
    for kind in OPTIONS[1:]:
        times = [
            decoders.request_s(
                replica,
                decoder,
                input_tokens=setting.input_tokens,
                output_tokens=setting.output_tokens,
                efficiency=decisions.reached(replica, {}),
            )
            for replica in (decisions.replica_of(setting.model, "fp8", gpus) for gpus in decisions.SHAPES)
            for decoder in decisions.decoders_of(_drafted_as(setting, kind), point)
        ]
        found[kind] = setting.slower * float(np.min(times))
    return found


def time_to_spare(setting: Setting, kind: str, *, most: float = 3.0) -> float:
    """Return by how many times all times may be longer until a decoder is no longer in time on any number of nodes.

    Parameters
    ----------
    setting : Setting
    kind : str
        A decoder of `OPTIONS`.
    most : float
        Where the search ends. [1]

    Returns
    -------
    float
        Below 1 where it is not in time as predicted: then times have to be shorter by so much. [1]
    """
    low, high = 1 / most, most
    while high / low > 1 + 1e-3:
        middle = float(np.sqrt(low * high))
        kept = _node_rate(replace(setting, slower=setting.slower * middle), kind) > 0
        low, high = (middle, high) if kept else (low, middle)
    return low


def seconds_compared() -> pd.DataFrame:
    """Set the settings of a second side by side: what a node takes, a request alone, and the time to spare.

    Returns
    -------
    DataFrame
        ``setting``; for each decoder its rate within the budget [request/s] and, with ``_alone`` behind it, the time
        of a request alone [s]; the base setting last.
    """
    rows = []
    # whose word counts on APIs changes nothing on a node
    for setting in (*(one for one in SECONDS if one.api_times == BASE.api_times), BASE):
        alone = {f"{kind}_alone": seconds for kind, seconds in alone_s(setting).items()}
        rows.append({"setting": setting.name, **node_rates(setting), **alone})
    return pd.DataFrame(rows)


def input_price_ratio(context: Context) -> float:
    """Return what sellers of open models ask for input over output, the middle one. [1]."""
    sellers = tables.class_tariffs("commodity", as_of=context.as_of, prices=context.prices)
    sold = [tariff for model in sellers.values() for tariff in model.values() if tariff.output_usd_per_mtok > 0]
    # where output is free there is no ratio, and any will do
    return float(np.median([tariff.input_usd_per_mtok / tariff.output_usd_per_mtok for tariff in sold] or [1.0]))


def stay_alone_s(setting: Setting) -> float:
    """Time of a request alone on the whole node, token by token: what rate is multiplied with on the map. [s]."""
    replica = decisions.replica_of(setting.model, "fp8", decisions.GPUS)
    alone = decoders.request_s(
        replica,
        decisions.decoder_of("autoregressive", {}),
        input_tokens=setting.input_tokens,
        output_tokens=setting.output_tokens,
        efficiency=decisions.reached(replica, {}),
    )
    return setting.slower * float(alone)


def node_usd_per_hour(way: str, context: Context) -> float:
    """Price of an hour of eight H100: rented at the list price, or what owning them costs at the middle terms.

    Parameters
    ----------
    way : str
        ``rent``, ``bought`` or ``sunk``, as `analysis.model.ownership.compare` has them.
    context : Context

    Returns
    -------
    float
        [USD/node_hour]

    Examples
    --------
    >>> from analysis.reference.tables import SNAPSHOT
    >>> [round(node_usd_per_hour(way, Context(SNAPSHOT)), 2) for way in ("rent", "bought", "sunk")]
    [55.04, 12.13, 0.8]
    """
    day: dict[str, Any] = {"as_of": context.as_of, "prices": context.prices}
    listed = tables.node_prices(**day).one(instance="p5.48xlarge", term="on-demand", region="us-east-1")
    hours = ownership.compare(tables.ownership("hgx-h100", **day), rent_usd=float(listed["value"]))
    return float(hours.set_index("mode").loc[way, "total_usd"])


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
    node = node_usd_per_hour(setting.ownership, context)
    allowed = setting.api and fastest_api_s(setting, context) <= setting.budget_s
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
        ``setting``, ``option``, ``concurrency``, ``api_usd_per_mtok``, for regions of at least one in a hundred cells.
    """
    rows = []
    for (setting, option), region in cells.groupby(["setting", "option"], sort=False):
        if len(region) < LEAST_NAMED * COLUMNS * ROWS:
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
