"""The command line: parse, call, print.

Exit status 0 on success, and 2 on bad input with one line on standard error,
``error: WHERE: got VALUE, expected WHAT``. Heavy imports happen inside the command that needs them.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analysis.inputs import (
    Door,
    InputError,
    Words,
    at_least_one,
    fraction,
    not_negative,
    percentile,
    positive,
    printable,
    share,
    whole,
    whole_from_zero,
)

if TYPE_CHECKING:
    from analysis.reference.own_prices import OwnPrices


EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
#: The formats of `analysis.reference.price_feeds`, here so that --help needs no pandas.
FEED_FORMATS = ("litellm", "genai-prices", "llm-prices", "skypilot", "openrouter")


class Number(click.ParamType):
    """A finite decimal number that passes a door of `analysis.inputs`."""

    name = "number"

    def __init__(self, door: Door) -> None:
        self.door = door

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number, or refuse it with the option's name."""
        return value if isinstance(value, float) else self.door.parse(_option(param), str(value))


class Day(click.ParamType):
    """An ISO date; a month or a year means its last day."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Read the date as the data tables do."""
        from analysis.reference.tables import parse_date

        return value if isinstance(value, date) else parse_date(_option(param), str(value))


class PriceFile(click.ParamType):
    """A CSV of own prices of which every row can be used."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read and check it."""
        from analysis.reference.own_prices import OwnPrices
        from analysis.reference.tables import read_prices

        return value if isinstance(value, OwnPrices) else read_prices(Path(value))


def _option(param: click.Parameter | None) -> str:
    if param is None:
        return "argument"
    return param.opts[0] if isinstance(param, click.Option) else str(param.human_readable_name)


def example(line: str) -> str:
    """Write the last lines of a command's help: one line to copy."""
    return f"\b\nFor example:\n  python -m analysis {line}"


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, numbers unrounded.")
as_of_option = click.option(
    "--as-of",
    type=Day(),
    default="2026-07-20",
    show_default=True,
    help="Take the newest data on or before this day.",
)


prices_option = click.option(
    "--prices",
    "own",
    metavar="FILE",
    type=PriceFile(),
    help="Own prices, laid over the tables; 'prices check --help' shows what such a file may hold.",
)


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="analysis", prog_name="analysis")
def cli() -> None:
    """Answer what a token costs on hardware that you own, and which decoder changes the answer."""


def _given(name: str) -> bool:
    """Whether an option was typed, rather than left at its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source is not click.core.ParameterSource.DEFAULT


def _refuse_idle(names: Sequence[str], because: str) -> None:
    """Refuse options that would change nothing: whoever typed one believes that it does."""
    context = click.get_current_context()
    for param in context.command.params:
        if param.name in names and _given(param.name):
            value = context.params[param.name]
            got = value.isoformat() if isinstance(value, date) else getattr(value, "name", value)
            raise InputError(_option(param), got, f"no such option {because}")


def _unknown(refusal: InputError, option: str, kind: str) -> InputError:
    """Say under its option that a name is unknown, and which command lists the known ones."""
    if " row " in refusal.where:
        # a damaged table of the book, not the name, is at fault
        return refusal
    listed = "" if refusal.expected.endswith("there is none") else f", or another that 'names {kind}' lists"
    return InputError(option, refusal.got, refusal.expected + listed)


def _print(result: Mapping[str, Any] | Sequence[Any], *, as_json: bool, text: str) -> None:
    """Print an answer: numbers that a computer can hold, and text that leaves the terminal as it is."""
    try:
        answer = json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InputError(
            "the answer", Words("a number beyond what a computer holds"), "inputs of a possible size"
        ) from None
    click.echo(answer if as_json else "\n".join(map(printable, text.split("\n"))))


def node_price(
    node: str | None, usd_per_hour: float | None, term: str, region: str | None, day: date, own: OwnPrices | None = None
) -> dict[str, Any]:
    """Resolve the two ways to name a node's price: an instance in the tables, or a typed number.

    An instance may have many prices on one day. The lowest of the asked term is taken, and the answer
    says whose it is; ``--region`` narrows the choice. ``reserved`` stands for every term of a year or more.
    """
    if (node is None) == (usd_per_hour is None):
        raise InputError(
            "--node or --node-usd-per-hour",
            None if node is None else Words("both"),
            "one of them: an instance of the tables, or a price",
        )
    if usd_per_hour is not None:
        return {"price_usd_per_node_hour": usd_per_hour}
    from analysis.reference.tables import COMMITTED_TERMS, node_prices

    asked = {"instance": str(node)} | ({} if term == "reserved" else {"term": term})
    try:
        rows = node_prices(as_of=day, prices=own).where(
            **asked, **({} if region is None else {"region": region}), quantity="price"
        )
    except InputError as refusal:
        if refusal.where == "instance":
            raise _unknown(refusal, "--node", "nodes") from None
        raise refusal.at({"term": "--term", "region": "--region"}.get(refusal.where, refusal.where)) from None
    if term == "reserved":
        terms = ", ".join(sorted(set(rows["term"])))
        rows = rows[rows["term"].str.fullmatch(COMMITTED_TERMS)]
        if rows.empty:
            raise InputError("--ownership", term, f"a price of {node} with a commitment; there are {terms}")
    row = rows.loc[rows["value"].idxmin()]
    # a typed price without a region stands in every row of the instance
    equal = rows[(rows["value"] == row["value"]) & (rows["provider"] == row["provider"])]
    return {
        "price_usd_per_node_hour": float(row["value"]),
        "provider": row["provider"],
        "region": row["region"] or None,
        "regions_at_this_price": int(equal["region"].nunique()),
        "term": row["term"],
        "price_as_of": row["as_of"].isoformat(),
        "source": row["source"],
        "status": row["status"],
        "prices_matched": len(rows),
    }


def whose_price(price: Mapping[str, Any], node: str) -> str:
    """Say of a price of the tables whose it is, from when, and whether there were dearer ones."""
    offer = " ".join(part for part in (price["provider"], node, price["term"]) if part)
    region, alike, of = price["region"], price["regions_at_this_price"], price["prices_matched"]
    if region is not None:
        others = f" and {alike - 1} other region{'s' if alike > 2 else ''}" if alike > 1 else ""
        offer += f", {'region unstated' if region == 'unstated' else region}{others}"
    lowest = f", the lowest of {of}" if of > alike else ""
    return (
        f"price: {price['price_usd_per_node_hour']:,.2f} USD per hour, {offer},"
        f" {price['price_as_of']} ({price['source']}, {price['status']}){lowest}"
    )


@cli.command(epilog=example("cost --node p5.48xlarge --tok-per-s 3000 --token-kind output --utilization 0.3"))
@click.option("--node", metavar="NAME", help="An instance of the tables, for example p5.48xlarge.")
@click.option("--node-usd-per-hour", metavar="P", type=Number(not_negative), help="Or the price of the whole node.")
@click.option("--term", default="on-demand", show_default=True, help="With --node: the price term.")
@click.option("--region", help="With --node: the region; without it the cheapest one is taken.")
@click.option("--tok-per-s", metavar="X", type=Number(positive), help="Tokens per second of the node at full use.")
@click.option(
    "--token-kind",
    type=click.Choice(["output", "input", "total"]),
    required=True,
    help="Which tokens the throughput counts, and so the cost.",
)
@click.option("--utilization", metavar="U", type=Number(fraction), help="Fraction of the hour at that throughput.")
@click.option(
    "--solve",
    type=click.Choice(["tok-per-s", "utilization", "node-usd-per-hour"]),
    help="Solve for this instead, with --usd-per-mtok.",
)
@click.option("--usd-per-mtok", metavar="C", type=Number(positive), help="With --solve: the cost to reach.")
@prices_option
@as_of_option
@json_option
def cost(
    node: str | None,
    node_usd_per_hour: float | None,
    term: str,
    region: str | None,
    tok_per_s: float | None,
    token_kind: str,
    utilization: float | None,
    solve: str | None,
    usd_per_mtok: float | None,
    own: OwnPrices | None,
    as_of: date,
    as_json: bool,
) -> None:
    """Cost of a million tokens on a node, or what reaches a cost."""
    from analysis.model import cost as model

    if solve == "node-usd-per-hour":
        _refuse_idle(("term", "region", "own", "as_of"), "where the price is what is solved for")
    elif node is None and node_usd_per_hour is not None:
        _refuse_idle(("term", "region", "own", "as_of"), "with --node-usd-per-hour: the typed price is the price")

    # each quantity of the identity: its option, the function that solves for it, how the answer reads
    quantities: dict[str, tuple[str, Callable[..., Any], str]] = {
        "cost_usd_per_mtok": ("--usd-per-mtok", model.cost_usd_per_mtok, "{:,.4f} USD per million {} tokens"),
        "node_tok_per_s": ("--tok-per-s", model.node_tok_per_s_at_cost, "{:,.1f} {} tokens per second"),
        "utilization": ("--utilization", model.utilization_at_cost, "{:.4f} of the hour"),
        "price_usd_per_node_hour": (
            "--node-usd-per-hour",
            model.price_usd_per_node_hour_at_cost,
            "{:,.4f} USD per node and hour",
        ),
    }
    known: dict[str, Any] = {
        "cost_usd_per_mtok": usd_per_mtok,
        "node_tok_per_s": tok_per_s,
        "utilization": utilization,
        "price_usd_per_node_hour": node_usd_per_hour,
    }
    unknown = next(name for name, (option, *_) in quantities.items() if option == f"--{solve or 'usd-per-mtok'}")
    price: dict[str, Any] = {}
    if unknown != "price_usd_per_node_hour":
        price = node_price(node, node_usd_per_hour, term, region, as_of, own)
        known["price_usd_per_node_hour"] = price["price_usd_per_node_hour"]
    elif node is not None:
        raise InputError("--node", node, "nothing: the price is what is solved for")
    for name, value in known.items():
        option = quantities[name][0]
        if name == unknown and value is not None:
            raise InputError(option, value, "nothing: it is what is solved for" if solve else "--solve beside it")
        if name != unknown and value is None:
            raise InputError(option, None, "a number")
    del known[unknown]

    _, solver, reads = quantities[unknown]
    solution = solver(**known)
    result: dict[str, Any] = {"token_kind": token_kind, unknown: solution}
    text = reads.format(solution, token_kind)
    if unknown == "utilization":
        result["reachable"] = solution <= 1
        text += "" if solution <= 1 else ": above 1, so no utilization reaches this cost"
    if "source" in price:
        text += f"\n{whose_price(price, str(node))}"
    _print(result | price, as_json=as_json, text=text)


@cli.command(epilog=example("claims --only C36"))
@click.option("--only", metavar="ID", help="One statement, for example C36.")
@prices_option
@as_of_option
@json_option
def claims(only: str | None, own: OwnPrices | None, as_of: date, as_json: bool) -> None:
    """Print every statement with its verdict and what decides it."""
    from tqdm import tqdm

    from analysis.evidence.claims.ledger import changes, record, verdicts

    with tqdm(unit="claim", leave=False, disable=None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            found = verdicts(as_of=as_of, only=only, prices=own, progress=progress)
        except InputError as refusal:
            raise (refusal.at("--only") if refusal.where == "only" else refusal) from None
    records = [record(verdict) for verdict in found]
    if own is not None:
        changed = changes(found).set_index("id")["verdict_book"]
        for row in records:
            row["verdict_book"] = changed.get(row["id"], row["verdict"])
    lines = []
    for row in records:
        close = ", close" if row["close"] else ""
        if row["verdict"] != row.get("verdict_book", row["verdict"]):
            close += f" (the book: {row['verdict_book']})"
        lines.append(f"{row['id']}  {row['verdict']}{close}: {row['paraphrase']}\n     {row['decided_by']}")
    _print(records, as_json=as_json, text="\n".join(lines))


@cli.command(
    epilog=example(
        "breakeven --node p5.48xlarge --node-req-per-s 2 --api gpt-5 --input-tokens 8000 --output-tokens 300"
    )
)
@click.option("--node", metavar="NAME", help="An instance of the tables, for example p5.48xlarge.")
@click.option("--node-usd-per-hour", metavar="P", type=Number(not_negative), help="Or the price of the whole node.")
@click.option("--node-req-per-s", metavar="R", type=Number(positive), required=True, help="Its rate at full use.")
@click.option("--api", metavar="MODEL", required=True, help="The rival: a model that an API sells, for example gpt-5.")
@click.option("--seller", metavar="NAME", help="Who sells it; without it the cheapest for this request is taken.")
@click.option("--tier", default="standard", show_default=True, help="Tier of the API's prices, for example batch.")
@click.option("--input-tokens", metavar="S", type=Number(not_negative), required=True, help="Tokens of the prompt.")
@click.option("--cached-tokens", metavar="S", type=Number(not_negative), default=0.0, help="Of them in a cache.")
@click.option("--output-tokens", metavar="S", type=Number(positive), required=True, help="Tokens of the answer.")
@click.option("--thinking-tokens", metavar="S", type=Number(not_negative), default=0.0, help="Hidden ones at the API.")
@click.option("--utilization", metavar="U", type=Number(fraction), default=1.0, help="Of the node; without it all.")
@click.option(
    "--ownership",
    type=click.Choice(["rent", "reserved", "bought", "sunk"]),
    default="rent",
    show_default=True,
    help="How it is had: with --node this decides its price, beside a typed price it is only named. Sunk counts what"
    " using it costs, electricity and --sublet-usd-per-hour.",
)
@click.option("--region", help="With --node, rented or reserved: the region; without it the cheapest one is taken.")
@click.option(
    "--sublet-usd-per-hour", metavar="P", type=Number(not_negative), default=0.0, help="Rent that a sunk node forgoes."
)
@prices_option
@as_of_option
@json_option
def breakeven(
    node: str | None,
    node_usd_per_hour: float | None,
    node_req_per_s: float,
    api: str,
    seller: str | None,
    tier: str,
    input_tokens: float,
    cached_tokens: float,
    output_tokens: float,
    thinking_tokens: float,
    utilization: float,
    ownership: str,
    region: str | None,
    sublet_usd_per_hour: float,
    own: OwnPrices | None,
    as_of: date,
    as_json: bool,
) -> None:
    """Compare a node with an API for one kind of request. Prints both costs, the winner, the break-even utilization."""
    from analysis.model import cost as model
    from analysis.reference.specs import RequestMix
    from analysis.reference.tables import nearest, tariffs, ttft

    if node_usd_per_hour is not None and node is None:
        _refuse_idle(("region", "sublet_usd_per_hour"), "with --node-usd-per-hour: the typed price is the price")
    elif ownership in ("bought", "sunk"):
        _refuse_idle(("region",), f"with --ownership {ownership}: hardware is bought anywhere")
    if ownership != "sunk":
        _refuse_idle(("sublet_usd_per_hour",), f"with --ownership {ownership}: rent is forgone where the node is sunk")
    if node is None or ownership in ("rent", "reserved"):
        term = "on-demand" if ownership == "rent" else ownership
        price = node_price(node, node_usd_per_hour, term, region, as_of, own)
    elif node_usd_per_hour is None:
        price = owned_price(node, ownership, sublet_usd_per_hour, as_of, own)
    else:
        price = node_price(node, node_usd_per_hour, ownership, region, as_of, own)
    try:
        offers = tariffs(api, as_of=as_of, tier=tier, prices=own)
    except InputError as refusal:
        if refusal.where == "model":
            raise _unknown(refusal, "--api", "apis") from None
        raise (refusal.at("--tier") if refusal.where == "tier" else refusal) from None
    if seller is not None and seller not in offers:
        raise InputError("--seller", seller, f"one who sells {api} in tier {tier}: {nearest(seller, offers)}")
    mix = RequestMix(input_tokens, output_tokens, cached_tokens, thinking_tokens)
    try:
        bills = {
            name: model.api_usd_per_request(tariff, mix) for name, tariff in offers.items() if seller in (None, name)
        }
    except InputError as refusal:
        raise refusal.at(f"--{refusal.where.replace('_', '-')}") from None
    cheapest = min(bills, key=lambda name: bills[name])
    owned = model.owned_usd_per_request(
        price["price_usd_per_node_hour"], node_req_per_s=node_req_per_s, utilization=utilization
    )
    needed = None
    if bills[cheapest] > 0:
        needed = model.breakeven_utilization_of_requests(
            price["price_usd_per_node_hour"], node_req_per_s=node_req_per_s, api_usd_per_request=bills[cheapest]
        )
    result = {
        "owned_usd_per_request": owned,
        "api_usd_per_request": bills[cheapest],
        "breakeven_utilization": needed,
        "winner": "owned" if owned < bills[cheapest] else "api",
        "utilization": utilization,
        "ownership": ownership,
        "api": api,
        "api_seller": cheapest,
        "api_ttft_s": None,
        **(ttft(api, as_of=as_of) or {}),
        **price,
    }
    waits = "no first-token time of the API is known"
    if result["api_ttft_s"] is not None:
        waits = f"the API's first token took {result['api_ttft_s']:g} s at best ({result['api_ttft_seller']})"
    even = "no utilization" if needed is None else f"{needed:.4f} of the hour"
    _print(
        result,
        as_json=as_json,
        text=(
            f"owned {owned:.6f} USD per request at {price['price_usd_per_node_hour']:,.2f} USD an hour ({ownership})\n"
            f"api   {bills[cheapest]:.6f} USD per request ({cheapest} {api}, {tier})\n"
            f"winner at {utilization:.0%} of the hour: {result['winner']}; break-even at {even}"
            f"{'' if needed is None or needed <= 1 else ': above 1, so the node never wins'}\n{waits}"
            f"{chr(10) + whose_price(price, str(node)) if 'source' in price else ''}"
        ),
    )


def owned_price(node: str, ownership: str, sublet: float, day: date, own: OwnPrices | None) -> dict[str, Any]:
    """Price the hour of a node like the named one that is bought, or already paid for; the cheapest such hardware."""
    from analysis.model.ownership import bought_usd_per_node_hour, sunk_usd_per_node_hour
    from analysis.reference import tables

    nodes = tables.table("nodes", as_of=day)
    try:
        row = nodes.where(instance=node).iloc[0]
    except InputError as refusal:
        raise _unknown(refusal, "--node", "nodes") from None
    alike = tables.hardware_like(tables.node(node, as_of=day, provider=row["provider"], prices=own), as_of=day)
    if not alike:
        raise InputError("--node", node, f"a node like one that could be bought by {day}")
    try:
        terms = {name: tables.ownership(name, as_of=day, prices=own) for name in alike}
    except InputError as refusal:
        raise (refusal.at("--as-of") if refusal.where == "as_of" else refusal) from None
    hours = {
        name: bought_usd_per_node_hour(each).total_usd
        if ownership == "bought"
        else sunk_usd_per_node_hour(each, sublet_usd_per_node_hour=sublet)
        for name, each in terms.items()
    }
    hardware = min(hours, key=lambda name: hours[name])
    return {"price_usd_per_node_hour": hours[hardware], "hardware": hardware}


@cli.group(no_args_is_help=False)
def prices() -> None:
    """Judge a file of own prices, or make one from a feed."""


#: A price of each kind, as a file has them.
PRICE_LINES = """\
instance,term,model,token_kind,hardware,quantity,value,unit
p5.48xlarge,plan-1yr,,,,price,58,USD/node_hour
,,gpt-5,output,,price,4.80,USD/Mtok
,,,,hgx-h100,purchase,310000,EUR
,,,,,electricity,0.24,EUR/kWh
,,,,,exchange_rate,1.1,USD/EUR"""


@prices.command(
    "check",
    epilog="FILE is a CSV with quantity, value, unit, and the columns that name what is priced; a blank, or a column"
    f" that is missing, matches every row of the item. For example:\n\n\b\n{PRICE_LINES}\n\n"
    "Also: provider, region, seller, tier; and as_of, the day from which on a price holds.",
)
@click.argument("file", metavar="FILE")
@json_option
def check_prices(file: str, as_json: bool) -> None:
    """Judge every row of a price file. Each is used, flagged as odd, or refused, with the reason."""
    from analysis.reference import own_prices, tables

    found = tables.check_prices(Path(file))
    lines = [*own_prices.names(found.prices.rows)]
    lines += [f"row {row}: one {currency} is {usd:g} USD" for row, currency, usd in found.rates]
    lines += [f"flagged, row {row}: {reason}" for row, reason in found.flagged]
    lines += [f"refused: {refusal}" for _, refusal in found.refused]
    if found.unused:
        lines.append(f"{len(found.unused)} rows of a feed price nothing in the book and are not used")
    _print(own_prices.record(found), as_json=as_json, text="\n".join(lines))
    refusal = own_prices.first_refusal(found)
    if refusal is not None:
        # the whole answer is on standard output; the exit status and one line say that the file cannot be used
        raise refusal


@cli.command("measure-host")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write the measurement as a CSV.")
@json_option
def measure_host(out: Path | None, as_json: bool) -> None:
    """Measure this computer, up to a minute. Its memory bandwidth, matmul rate and batching curve."""
    from tqdm import tqdm

    from analysis.evidence import host

    with tqdm(unit="step", leave=False, disable=None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        measured = host.measure_host(progress=progress)
    if out is not None:
        try:
            # a measurement is dated with the day on which it was made
            host.write_csv(measured, out, as_of=date.today())
        except InputError as refusal:
            raise refusal.at("--out") from None
    result = host.record(measured)
    lines = [
        f"{measured.machine}, {measured.threads} threads, {result['number_format']}",
        f"memory {measured.bandwidth_byte_per_s / 1e9:,.1f} GB/s, matmul {measured.peak_flop_per_s / 1e9:,.1f} GFLOP/s,"
        f" ridge {result['ridge_flop_per_byte']:,.1f} FLOP/byte",
        "batch     time     of one vector's time",
    ]
    one = next(iter(measured.seconds_by_batch.values()))
    lines += [
        f"{batch:>5} {seconds * 1e3:>8,.1f} ms {seconds / one:>8,.1f}"
        for batch, seconds in measured.seconds_by_batch.items()
    ]
    _print(result, as_json=as_json, text="\n".join(lines))


DTYPES = ["bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]


@cli.command(epilog=example("model llama-3.1-70b --weights fp8"))
@click.argument("model", metavar="NAME|CONFIG.json")
@click.option("--weights", type=click.Choice(DTYPES), help="Format of the weights; the one of the release if left out.")
@click.option("--kv", type=click.Choice(DTYPES), help="Format of the cache; the one of the release if left out.")
@click.option(
    "--context", metavar="S", type=Number(whole), default="8192", show_default=True, help="Tokens in the cache."
)
@json_option
def model(model: str, weights: str | None, kv: str | None, context: float, as_json: bool) -> None:
    """Parameters, bytes and FLOP of a model. It is a shipped architecture, or a Hugging Face config.json."""
    from analysis.model import transformer
    from analysis.reference.model_config import named

    try:
        config = named(model)
    except InputError as refusal:
        raise (_unknown(refusal, "model", "models") if refusal.where == "model" else refusal) from None
    architecture, precision = config.architecture, config.precision.with_formats(weights=weights, kv=kv)
    per_sequence = {
        policy: transformer.kv_bytes_per_sequence(architecture, precision, context_tokens=context, policy=policy)
        for policy in ("needed", "reserved", "read")
    }
    result = {
        "model": architecture.name,
        "weights": precision.weights,
        "kv": precision.kv,
        "compute": precision.compute,
        "context_tokens": int(context),
        "params_total": transformer.params_total(architecture),
        "params_active": transformer.params_active(architecture),
        "params_matmul": transformer.params_matmul(architecture),
        "weight_bytes": transformer.weight_bytes(architecture, precision),
        "weight_bytes_per_pass": transformer.weight_bytes_streamed(architecture, precision, positions=1),
        "kv_bytes_per_token": transformer.kv_bytes_per_token(architecture, precision),
        "kv_bytes_per_sequence": per_sequence["needed"],
        "kv_bytes_per_sequence_reserved": per_sequence["reserved"],
        "kv_bytes_read_per_step": per_sequence["read"],
        "flop_per_token": transformer.matmul_flop(architecture, positions=1),
        "attention_flop_per_token": transformer.attention_flop(architecture, context_tokens=context),
        "left_out": list(architecture.left_out),
    }
    window, beyond = _window(architecture, context)
    result |= window
    lines = [
        f"{result['model']}: weights {precision.weights}, cache {precision.kv}, products in {precision.compute}",
        "{params_total:,} parameters, {params_active:,} active for a token, {params_matmul:,} multiply it",
        "{weight_bytes:,.0f} bytes of weights, of which a pass over one token reads {weight_bytes_per_pass:,.0f}",
        "{kv_bytes_per_token:,.0f} bytes of cache per token; at {context_tokens:,.0f} tokens a sequence needs "
        "{kv_bytes_per_sequence:,.0f}, {kv_bytes_per_sequence_reserved:,.0f} where every layer keeps every token",
        "{flop_per_token:,.0f} FLOP per token, and {attention_flop_per_token:,.0f} of attention at that context",
    ]
    lines = [lines[0], *(line.format(**result) for line in lines[1:])]
    if architecture.left_out:
        lines.append(f"not counted: {', '.join(architecture.left_out)}")
    _print(result, as_json=as_json, text="\n".join(lines + beyond))


@prices.command("import")
@click.argument("form", metavar="FORMAT", type=click.Choice(FEED_FORMATS))
@click.argument("file", metavar="FILE")
@click.option("--out", metavar="OUT", required=True, help="The CSV to write; OUT.report.csv says what was not used.")
@click.option("--provider", metavar="NAME", help="Whose catalog it is; without it the first word of its name.")
@click.option("--as-of", type=Day(), help="Take the prices of this day; without it the day in the file's name.")
@json_option
def import_prices(form: str, file: str, out: str, provider: str | None, as_of: date | None, as_json: bool) -> None:
    """Make own prices from a feed, and doubt each. It is used, flagged or refused, with the reason."""
    from tqdm import tqdm

    from analysis.reference import price_feeds

    if form != "skypilot":
        _refuse_idle(("provider",), f"with {form}: its entries name who sells")
    result, report = Path(out), price_feeds.report_path(Path(out))
    for written in (result, report):
        if written.resolve() == Path(file).resolve():
            raise InputError("--out", out, "another file than the feed")
        if written.exists() and not written.is_file():
            raise InputError("--out", str(written), "a new file or one to replace, no folder and no device")
    with tqdm(leave=False, disable=None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        found = price_feeds.import_feed(
            form, Path(file), today=date.today(), as_of=as_of, provider=provider, progress=progress
        )
    price_feeds.write(found, result)

    def lines(findings: Sequence[Any], *columns: str) -> list[dict[str, Any]]:
        return [{column: getattr(finding, column) for column in columns} for finding in findings]

    said = ("place", "column", "got", "kind", "reason")
    summary = {"table": found.table, "out": out, "report": str(report), "rows": found.rows()}
    text = [f"{len(found.offers)} rows used, {len(found.flagged)} flagged, {len(found.refused)} refused", f"  {out}"]
    for (verdict, used, kind), (count, first) in found.counts().items():
        text.append(f"{verdict}{' but used' if used else ''}, {kind}: {count}, the first {first.place}: {first.reason}")
    text.append(f"each of them: {report}")
    _print(
        summary | {"refused": lines(found.refused, *said), "flagged": lines(found.flagged, *said, "used")},
        as_json=as_json,
        text="\n".join(text),
    )


# --- Passes ------------------------------------------------------------------------------------

model_option = click.option("--model", required=True, metavar="M", help="A shipped architecture or a config.json.")
gpu_option = click.option("--gpu", required=True, metavar="G", help="An accelerator of the tables, such as h100-sxm.")
gpus_option = click.option("--gpus", required=True, metavar="N", type=Number(whole), help="GPUs of the node.")
tp_option = click.option(
    "--tp",
    metavar="T",
    type=Number(whole),
    help="GPUs of one replica, which share each layer; all of them if left out.",
)
weights_option = click.option("--weights", type=click.Choice(DTYPES), help="Format of the weights, else the release's.")
kv_option = click.option("--kv", type=click.Choice(DTYPES), help="Format of the cache, else the release's.")
engine_option = click.option(
    "--engine", default="vllm", show_default=True, metavar="E", help="Whose fitted constants to take."
)
ideal_option = click.option(
    "--ideal", is_flag=True, help="The roofline alone: full bandwidth, full peak, nothing in between."
)
#: Decoder to the options that it needs, and those that it may have.
DECODER_OPTIONS = {
    "ar": ((), ()),
    "speculative": (("acceptance", "draft_length"), ("draft_cost",)),
    "diffusion": (("block", "passes"), ()),
}


def decoder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that describe a decoder; `_decoder` reads them."""
    options = (
        click.option(
            "--decoder",
            default="ar",
            show_default=True,
            type=click.Choice(list(DECODER_OPTIONS)),
            help="How an answer is made.",
        ),
        click.option(
            "--acceptance", metavar="A", type=Number(share), help="Speculative: chance that a draft is accepted."
        ),
        click.option("--draft-length", metavar="G", type=Number(whole), help="Speculative: drafts of a cycle."),
        click.option(
            "--draft-cost",
            metavar="C",
            type=Number(not_negative),
            help="Speculative: time of a draft over that of a pass of the target, 0 if left out.",
        ),
        click.option("--block", metavar="L", type=Number(whole), help="Diffusion: tokens of a block."),
        click.option(
            "--passes",
            metavar="T",
            type=Number(at_least_one),
            help="Diffusion: passes of a block, the commit included.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _decoder(
    decoder: str,
    acceptance: float | None,
    draft_length: float | None,
    draft_cost: float | None,
    block: float | None,
    passes: float | None,
) -> Any:
    """Make the decoder that the options describe; one that belongs to another decoder is refused."""
    from analysis.reference.specs import Decoder

    given = {
        "acceptance": acceptance,
        "draft_length": draft_length,
        "draft_cost": draft_cost,
        "block": block,
        "passes": passes,
    }
    needed, allowed = DECODER_OPTIONS[decoder]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is None and name in needed:
            raise InputError(option, None, f"a value, as --decoder {decoder} needs it")
        if value is not None and name not in (*needed, *allowed):
            raise InputError(option, value, f"no such option with --decoder {decoder}")
    if decoder == "speculative":
        return Decoder.speculative(acceptance=acceptance, draft_length=draft_length, draft_cost=draft_cost or 0.0)
    if decoder == "diffusion":
        return Decoder.diffusion(block_tokens=block, passes=passes)
    return Decoder.autoregressive()


def _replica(
    model: str, gpu: str, gpus: float, tp: float | None, weights: str | None, kv: str | None
) -> tuple[Any, float]:
    """Make the replica that the options describe, and say how many of it the node holds."""
    from analysis.reference import model_config, tables
    from analysis.reference.efficiency import named
    from analysis.reference.specs import Replica

    split = gpus if tp is None else tp
    if gpus % split:
        raise InputError("--tp", int(split), f"a divisor of the {int(gpus)} GPUs")
    spelled = model if model.lower().endswith(".json") else named("model", model)
    try:
        config = model_config.named(spelled)
    except InputError as refusal:
        raise (_unknown(refusal, "--model", "models") if refusal.where == "model" else refusal) from None
    try:
        part = tables.accelerator(named("accelerator", gpu), as_of=tables.NEWEST)
    except InputError as refusal:
        raise _unknown(refusal, "--gpu", "gpus") from None
    precision = config.precision.with_formats(weights=weights, kv=kv)
    return Replica(config.architecture, precision, part, int(split)), gpus / split


def _efficiency(replica: Any, engine: str, *, ideal: bool) -> Any:
    from analysis.model.decoding import IDEAL
    from analysis.reference.efficiency import efficiency, named

    if ideal:
        _refuse_idle(("engine",), "with --ideal, which takes no fitted constants")
    try:
        return IDEAL if ideal else efficiency(replica, named("engine", engine))
    except InputError as refusal:
        if refusal.where == "engine":
            raise _unknown(refusal, "--engine", "engines") from None
        raise (refusal.at("--gpu (without --ideal)") if refusal.where == "accelerator" else refusal) from None


def _tensor_parallel_refusal(refusal: InputError) -> InputError:
    return refusal.at("--tp") if refusal.where == "tensor_parallel" else refusal


@cli.command(epilog=example("step --model llama-3.1-70b --gpu h100-sxm --gpus 8 --batch 32 --context 8000"))
@model_option
@gpu_option
@gpus_option
@tp_option
@click.option("--batch", required=True, metavar="B", type=Number(whole), help="Sequences in each replica.")
@click.option("--context", required=True, metavar="S", type=Number(not_negative), help="Tokens in each one's cache.")
@weights_option
@kv_option
@decoder_options
@engine_option
@ideal_option
@json_option
def step(
    model: str,
    gpu: str,
    gpus: float,
    tp: float | None,
    batch: float,
    context: float,
    weights: str | None,
    kv: str | None,
    engine: str,
    ideal: bool,
    as_json: bool,
    **described: Any,
) -> None:
    """Time of a pass of decoding, its bound, and the rates."""
    from analysis.evidence.cases import nearest_step
    from analysis.model import decoders, decoding
    from analysis.model.transformer import pass_work
    from analysis.reference.efficiency import named

    replica, copies = _replica(model, gpu, gpus, tp, weights, kv)
    reached = _efficiency(replica, engine, ideal=ideal)
    rule = _memory_rule(engine, ideal=ideal)
    decoder = _decoder(**described)
    try:
        between = decoders.cycle(replica, decoder, batch=batch, context_tokens=context, efficiency=reached)
        room = decoding.max_batch(replica, tokens=max(context, 1.0), rule=rule)
    except InputError as refusal:
        raise _tensor_parallel_refusal(refusal) from None
    if not math.isfinite(room):
        raise InputError("--model", model, "a model with attention: without a cache nothing bounds the batch")
    time, width = between.time, decoder.positions
    work = pass_work(
        replica.architecture,
        replica.precision,
        batch=batch,
        context_tokens=context,
        positions=width,
        causal=decoder.kind != "diffusion",
    )
    rates = decoding.peaks(replica)
    result = {
        "kind": "ideal" if ideal else "prediction",
        **_asked(replica, copies),
        "decoder": decoder.kind,
        "step_s": time.pass_s,
        "draft_s": between.draft_s,
        "floor_s": decoding.floor_s(replica, batch=batch, context_tokens=context, positions=width),
        "flop": work.flop,
        "byte": work.byte,
        "intensity_flop_per_byte": work.intensity_flop_per_byte,
        "ridge_flop_per_byte": rates.matmul_flop_per_s / rates.mem_bw_byte_per_s,
        "bound": time.bound,
        **{f"{term}_s": getattr(time, f"{term}_s") for term in decoding.TERMS},
        "positions": width,
        "tau": decoder.tokens_per_pass,
        "stream_tok_per_s": decoder.tokens_per_pass / between.cycle_s,
        "node_tok_per_s": copies * batch * decoder.tokens_per_pass / between.cycle_s,
        "max_batch": int(room),
        "usable_memory_share": rule.share,
        "workspace_byte_per_gpu": rule.reserve_byte,
        "fits": bool(room >= batch),
    }
    window, beyond = _window(replica.architecture, context)
    result |= window
    lines = [
        "{kind}: {ms:.3g} ms for a pass, floor {floor_ms:.3g} ms; largest term: {bound}".format(
            ms=1e3 * time.pass_s, floor_ms=1e3 * result["floor_s"], **result
        ),
        "{stream_tok_per_s:,.1f} tokens/s to each stream, {node_tok_per_s:,.1f} from the node".format(**result),
        "intensity {intensity_flop_per_byte:.3g} FLOP/byte, ridge {ridge_flop_per_byte:.3g}".format(**result),
        f"memory holds {result['max_batch']} such sequences, by {_divided(rule)}",
        "this is {model}, weights {weights}, cache {kv}, on {replicas} x {tp} {gpu}".format(**result),
    ]
    lines += beyond
    if decoder.kind != "ar":
        made = "{decoder}: {tau:.3g} useful tokens from {positions:g} positions of a pass".format(**result)
        drafts = f", drafts add {1e3 * between.draft_s:.3g} ms" if decoder.kind == "speculative" else ""
        lines.insert(1, made + drafts)
    if not result["fits"]:
        lines.insert(0, _no_room(result))
    # what was measured is one token at a time
    near = None if ideal or decoder.kind != "ar" else nearest_step(replica, batch=batch, engine=named("engine", engine))
    if near is not None:
        result["nearest_measured"] = near
        lines.append(
            "nearest measured: {step_s:.3g} s per token, predicted {predicted_s:.3g} ({id}: {model} {weights}, {gpus}"
            " {gpu}, {engine}, {concurrency:g} streams, {input_tokens:g} + {output_tokens:g} tokens)".format(**near)
        )
    _print(result, as_json=as_json, text="\n".join(lines))


@cli.command(epilog=example("prefill --model llama-3.1-70b --gpu h100-sxm --gpus 8 --prompt 8000"))
@model_option
@gpu_option
@gpus_option
@tp_option
@click.option("--prompt", required=True, metavar="S", type=Number(positive), help="Tokens of each prompt.")
@click.option(
    "--cached",
    default="0",
    show_default=True,
    metavar="S",
    type=Number(not_negative),
    help="Of these, already in a cache.",
)
@click.option("--batch", default="1", show_default=True, metavar="B", type=Number(whole), help="Prompts in a replica.")
@click.option(
    "--chunk",
    default="8192",
    show_default=True,
    metavar="C",
    type=Number(positive),
    help="Most prompt tokens of a pass.",
)
@weights_option
@kv_option
@engine_option
@ideal_option
@json_option
def prefill(
    model: str,
    gpu: str,
    gpus: float,
    tp: float | None,
    prompt: float,
    cached: float,
    batch: float,
    chunk: float,
    weights: str | None,
    kv: str | None,
    engine: str,
    ideal: bool,
    as_json: bool,
) -> None:
    """Time to read prompts on an idle replica, and what bounds it."""
    from analysis.model import decoding
    from analysis.model.transformer import pass_work

    replica, copies = _replica(model, gpu, gpus, tp, weights, kv)
    reached = _efficiency(replica, engine, ideal=ideal)
    try:
        (passes,) = decoding.prefill_steps(
            replica, input_tokens=prompt, cached_tokens=cached, batch=batch, chunk_tokens=chunk
        )
    except InputError as refusal:
        options = {"cached_tokens": "--cached", "input_tokens": "--prompt"}
        raise _tensor_parallel_refusal(refusal.at(options.get(refusal.where, refusal.where))) from None
    room = decoding.max_batch(replica, tokens=prompt, rule=_memory_rule(engine, ideal=ideal))
    if not math.isfinite(room):
        raise InputError("--model", model, "a model with attention: without a cache nothing bounds the batch")
    time = decoding.time_of(passes.asked, decoding.peaks(replica), reached)
    work = pass_work(
        replica.architecture,
        replica.precision,
        batch=batch,
        context_tokens=cached,
        positions=prompt - cached,
        logits="last",
    )
    result = {
        "kind": "ideal" if ideal else "prediction",
        **_asked(replica, copies),
        "prefill_s": float(passes.count * time.pass_s),
        "floor_s": decoding.floor_s(
            replica, batch=batch, context_tokens=cached, positions=prompt - cached, logits="last"
        ),
        "bound": time.bound,
        "flop": work.flop,
        "byte": work.byte,
        "passes": float(passes.count),
        "input_tok_per_s": float(batch * prompt / (passes.count * time.pass_s)),
        "max_batch": int(room),
        "fits": bool(room >= batch),
    }
    window, beyond = _window(replica.architecture, prompt)
    result |= window
    text = (
        "{kind}: {prefill_s:.4g} s, floor {floor_s:.4g} s; largest term: {bound}; {input_tok_per_s:,.0f} tokens/s\n"
        "this is {model}, weights {weights}, cache {kv}, on {replicas} x {tp} {gpu}"
    )
    no_room = [] if result["fits"] else [_no_room(result)]
    _print(result, as_json=as_json, text="\n".join([*no_room, text.format(**result), *beyond]))


def _memory_rule(engine: str, *, ideal: bool) -> Any:
    """Say how the engine divides the memory; without one all of the card counts."""
    from analysis.reference.efficiency import memory_rule, named
    from analysis.reference.specs import MemoryRule

    return MemoryRule() if ideal else memory_rule(named("engine", engine))


def _no_room(result: Mapping[str, Any]) -> str:
    """Say that weights and caches are more than the memory."""
    return f"does not fit: memory holds {result['max_batch']} such sequences; times as if there were room"


def _window(architecture: Any, tokens: float) -> tuple[dict[str, Any], list[str]]:
    """Say whether a context is longer than the model's own limit: what follows then cannot be run as it is."""
    limit = architecture.max_context
    beyond = limit is not None and tokens > limit
    said = f"beyond the model: its config ends at {limit or 0:,} tokens, and {tokens:,.0f} are asked for"
    return {"max_context_tokens": limit, "beyond_max_context": beyond}, [said] if beyond else []


def _divided(rule: Any) -> str:
    """Say in words how an engine divides the memory of a GPU."""
    taken = "weights" + (f" and {rule.reserve_byte / 1e9:g} GB of workspace" if rule.reserve_byte else "")
    share = f"{rule.share:.0%} of"
    return f"{share} what {taken} leave of each card" if rule.of_the_rest else f"{share} each card, less {taken}"


#: How percentiles are had: by the law of a waiting answer, or by replaying requests on the fleet.
METHODS = ("closed-form", "simulation")


def _shapes(
    model: str, gpu: str, gpus: float, tp: float | None, weights: str | None, kv: str | None, engine: str, ideal: bool
) -> list[Any]:
    """List the ways to put replicas on the node; the one that was asked for comes first."""
    from analysis.model.capacity import Shape
    from analysis.reference.efficiency import named, slots

    widths = [float(width) for width in range(1, int(gpus) + 1) if gpus % width == 0 and width.bit_count() == 1]
    order = dict.fromkeys([*([] if tp is None else [tp]), *widths, gpus])
    found = []
    for width in order:
        replica, copies = _replica(model, gpu, gpus, width, weights, kv)
        reached = _efficiency(replica, engine, ideal=ideal)
        most = math.inf if ideal else slots(named("engine", engine))
        found.append(Shape(replica, int(copies), reached, _memory_rule(engine, ideal=ideal), most))
    return found


def _of_this_node(node: str, gpu: str, gpus: float, day: date, own: OwnPrices | None) -> None:
    """Refuse a node whose GPUs are others than the ones that were asked about."""
    from analysis.reference import tables
    from analysis.reference.efficiency import named

    row = tables.table("nodes", as_of=day, prices=own).where(instance=node).iloc[0]
    if row["accelerator"] != named("accelerator", gpu):
        raise InputError("--gpu", gpu, f"{row['accelerator']}, which {node} has")
    if row["value"] != gpus:
        raise InputError("--gpus", int(gpus), f"{row['value']:g}, as {node} has")


@cli.command(
    epilog=example(
        "capacity --model llama-3.1-8b --weights fp8 --gpu h100-sxm --gpus 8 --tp 4 --node p5.48xlarge \\\n"
        "    --rate-req-per-s 2 --input-tokens 1500 --output-tokens 300 --budget-s 1 --percentile 95"
    )
)
@model_option
@gpu_option
@gpus_option
@click.option(
    "--tp",
    metavar="T",
    type=Number(whole),
    help="GPUs of one replica; if left out, the split that needs the fewest nodes.",
)
@weights_option
@kv_option
@engine_option
@ideal_option
@click.option("--node", metavar="NAME", help="An instance of the tables, for example p5.48xlarge.")
@click.option("--node-usd-per-hour", metavar="P", type=Number(not_negative), help="Or the price of the whole node.")
@click.option("--term", default="on-demand", show_default=True, help="With --node: the price term.")
@click.option("--region", help="With --node: the region; without it the cheapest one is taken.")
@click.option("--rate-req-per-s", metavar="R", type=Number(positive), required=True, help="Requests that arrive.")
@click.option("--input-tokens", metavar="S", type=Number(positive), help="Tokens of the prompt.")
@click.option("--cached-tokens", metavar="S", type=Number(not_negative), default=0.0, help="Of them in a cache.")
@click.option("--output-tokens", metavar="S", type=Number(at_least_one), help="Tokens of the answer.")
@click.option("--budget-s", metavar="D", type=Number(positive), required=True, help="Time that the metric may take.")
@click.option(
    "--overhead-s", metavar="O", type=Number(not_negative), default=0.0, help="Time outside the GPU, part of it."
)
@click.option(
    "--metric",
    type=click.Choice(["e2e", "ttft", "tpot"]),
    default="e2e",
    show_default=True,
    help="Whole answer, first token, or time between two tokens.",
)
@click.option(
    "--percentile",
    metavar="Q",
    type=Number(percentile),
    required=True,
    help="Percentage of the requests that have to keep the budget.",
)
@click.option(
    "--cv",
    metavar="C",
    type=Number(not_negative),
    help="Variation of the gaps between arrivals; 1, Poisson, if left out.",
)
@click.option(
    "--trace",
    "trace_file",
    metavar="FILE",
    help="Simulation: a CSV arrival_s,input_tokens,output_tokens[,cached_tokens] of some hundreds of requests or more;"
    " its lengths hold where none are given, the rate scales its time.",
)
@click.option("--seed", metavar="N", type=Number(whole_from_zero), help="Simulation: seed of the draws, 0 if left out.")
@click.option("--spares", metavar="K", type=Number(whole_from_zero), default=0.0, help="Nodes that may fail.")
@click.option(
    "--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True, help="How percentiles are had."
)
@decoder_options
@prices_option
@as_of_option
@json_option
def capacity(
    model: str,
    gpu: str,
    gpus: float,
    tp: float | None,
    weights: str | None,
    kv: str | None,
    engine: str,
    ideal: bool,
    node: str | None,
    node_usd_per_hour: float | None,
    term: str,
    region: str | None,
    rate_req_per_s: float,
    input_tokens: float | None,
    cached_tokens: float,
    output_tokens: float | None,
    budget_s: float,
    overhead_s: float,
    metric: Any,
    percentile: float,
    cv: float | None,
    trace_file: str | None,
    seed: float | None,
    spares: float,
    method: str,
    own: OwnPrices | None,
    as_of: date,
    as_json: bool,
    **described: Any,
) -> None:
    """Nodes that a latency budget takes, and their cost. Also where their utilization goes."""
    from analysis.model import capacity as plan
    from analysis.reference.specs import Workload
    from analysis.units import TOKENS_PER_MTOK

    if node is None and node_usd_per_hour is not None:
        _refuse_idle(("term", "region", "own", "as_of"), "with --node-usd-per-hour: the typed price is the price")
    price = node_price(node, node_usd_per_hour, term, region, as_of, own)
    if node is not None:
        _of_this_node(node, gpu, gpus, as_of, own)
    usd = price["price_usd_per_node_hour"]
    shapes = _shapes(model, gpu, gpus, tp, weights, kv, engine, ideal)
    decoder = _decoder(**described)
    trace = _trace(trace_file, method, cv, seed)
    if trace is not None and decoder.kind != "speculative" and float(decoder.passes_per_block).is_integer():
        _refuse_idle(("seed",), f"with --trace and --decoder {decoder.kind}: nothing is drawn")
    lengths = _mean_lengths(trace, input_tokens, cached_tokens, output_tokens)
    workload = Workload(
        rate_req_per_s=rate_req_per_s,
        **lengths,
        budget_s=budget_s,
        percentile=percentile,
        metric=metric,
        overhead_s=overhead_s,
        cv=1.0 if cv is None else cv,
    )
    try:
        if tp is not None:
            # the shape that was asked for is refused with its reason; the others only compete
            shapes[0].service(decoder, workload).floor_s()
        found = plan.fleets(shapes, decoder, workload, price_usd_per_node_hour=usd, spares=int(spares))
    except InputError as refusal:
        where = {"cached_tokens": "--cached-tokens", "tensor_parallel": "--tp", "spares": "--spares"}.get(
            refusal.where, refusal.where
        )
        raise refusal.at(where) from None
    chosen = plan.best(found) if tp is None else int(tp)
    fleet, shape = found[chosen], next(each for each in shapes if each.replica.gpus == chosen)
    limit = shape.replica.architecture.max_context
    beyond = limit is not None and workload.input_tokens + workload.output_tokens > limit
    if method == "simulation" and fleet.latency_floor_s is not None and not beyond:
        traffic = _traffic(trace, input_tokens, workload)
        fleet = _simulated(shape, decoder, workload, traffic, usd, int(spares), seed)
        others = {width: each for width, each in found.items() if width != chosen}
        by_width = {each.replica.gpus: each for each in shapes}
        for width, each in others.items():
            others[width] = _alone(each, by_width[width], decoder, workload, traffic, seed)
        found = {width: others.get(width, fleet) for width in found}
    floors = [each.latency_floor_s for each in found.values() if each.latency_floor_s is not None]
    floor = fleet.latency_floor_s if tp is not None or not floors else min(floors)
    shares = fleet.shares
    result: dict[str, Any] = {
        "feasible": fleet.feasible,
        "reason": fleet.reason,
        "metric": metric,
        "percentile": percentile,
        "budget_s": budget_s,
        "latency_floor_s": floor,
        "nodes": fleet.nodes,
        "spares": int(spares),
        **_asked(shape.replica, shape.copies),
        "decoder": decoder.kind,
        "kind": "ideal" if ideal else "prediction",
        "method": method,
        "extrapolated": fleet.extrapolated,
        "nodes_low": fleet.nodes_low,
        "nodes_high": fleet.nodes_high,
        "input_tokens": workload.input_tokens,
        "output_tokens": workload.output_tokens,
        "time_s": fleet.time_s,
        "load": fleet.load,
        "busy": fleet.busy,
        "lambda_sat_req_per_s": fleet.node_saturated_req_per_s,
        "node_req_per_s": fleet.node_req_per_s,
        "max_batch": fleet.room,
        "u_day": None if shares is None else shares.day,
        "u_integer": None if shares is None else shares.integer,
        "u_latency": None if shares is None else shares.latency,
        "u_goodput": None if shares is None else shares.goodput,
        "utilization": None if shares is None else shares.utilization,
        **{f"latency_p{q:.0f}_s": value for q, value in fleet.percentiles_s.items()},
        **{f"{name}_mean_s": (fleet.means_s or {}).get(name) for name in ("e2e", "ttft", "tpot")},
        "saturated_usd_per_mtok": fleet.saturated_usd_per_mtok if fleet.feasible else None,
        "cost_usd_per_mtok": fleet.cost_usd_per_mtok,
        "usd_per_request": None
        if fleet.cost_usd_per_mtok is None
        else fleet.cost_usd_per_mtok * workload.output_tokens / TOKENS_PER_MTOK,
        "feasible_shapes": [
            {
                "tp": width,
                "replicas": int(gpus) // width,
                "latency_floor_s": each.latency_floor_s,
                "nodes": each.nodes,
                "node_req_per_s": each.node_req_per_s,
                "cost_usd_per_mtok": each.cost_usd_per_mtok,
            }
            for width, each in found.items()
            if each.feasible
        ],
        **price,
    }
    if node is not None and fleet.feasible and method == "closed-form":
        result["cheapest_node"] = _cheapest_node(plan, shapes, decoder, workload, term, as_of, own, int(spares))
    _print(result, as_json=as_json, text=_capacity_text(result, node))


def _trace(file: str | None, method: str, cv: float | None, seed: float | None) -> Any:
    """Read the trace, and refuse what the closed form can't use."""
    if method == "closed-form":
        for option, value in (("--trace", file), ("--seed", seed)):
            if value is not None:
                raise InputError(option, value, "--method simulation beside it")
    if file is None:
        return None
    if cv is not None:
        raise InputError("--cv", cv, "nothing beside --trace, which has arrivals of its own")
    from analysis.reference.traces import read

    trace = read(Path(file))
    if not trace.arrival_s[-1] > trace.arrival_s[0]:
        count = len(trace.arrival_s)
        said = "one request" if count == 1 else f"{count:,} requests at one moment"
        raise InputError(file, Words(said), "requests at different times")
    return trace


def _mean_lengths(trace: Any, prompt: float | None, cached: float, answer: float | None) -> dict[str, Any]:
    """Take the lengths that are given, else the means of the trace."""
    if trace is not None and prompt is None and answer is None and not cached:
        columns = ("input_tokens", "output_tokens", "cached_tokens")
        return {name: float(getattr(trace, name).mean()) for name in columns}
    for option, value in (("--input-tokens", prompt), ("--output-tokens", answer)):
        if value is None:
            raise InputError(option, None, f"tokens of the {'prompt' if 'in' in option else 'answer'}")
    return {"input_tokens": float(prompt or 0), "output_tokens": float(answer or 0), "cached_tokens": cached}


def _traffic(trace: Any, prompt: float | None, workload: Any) -> Any:
    """Make the requests of a trace, with lengths of its own or with the ones that were given."""
    from analysis.model.simulation import Requests, Traffic

    if trace is None:
        return None
    if prompt is None:
        return Traffic(trace=Requests(trace.arrival_s, trace.input_tokens, trace.output_tokens, trace.cached_tokens))
    lengths = (workload.input_tokens, workload.output_tokens, workload.cached_tokens)
    return Traffic(trace=Requests(trace.arrival_s, *lengths))


def _simulated(
    shape: Any, decoder: Any, workload: Any, traffic: Any, usd: float, spares: int, seed: float | None
) -> Any:
    from tqdm import tqdm

    from analysis.model.replayed import fleet_by_simulation

    with tqdm(leave=False, disable=None, bar_format="{desc} {elapsed}") as bar:

        def progress(nodes: int) -> None:
            bar.set_description_str(f"serving on {nodes} nodes")

        try:
            return fleet_by_simulation(
                shape,
                decoder,
                workload,
                traffic=traffic,
                price_usd_per_node_hour=usd,
                spares=spares,
                seed=int(seed or 0),
                progress=progress,
            )
        except InputError as refusal:
            where = {
                "input_tokens": "--input-tokens",
                "output_tokens": "--output-tokens",
                "cached_tokens": "--cached-tokens",
                "requests": "--percentile" if traffic is None else "--trace, requests",
                "count": "--percentile" if traffic is None else "--trace, requests",
                "spares": "--spares",
                "rate_req_per_s": "--rate-req-per-s",
            }.get(refusal.where, refusal.where)
            raise refusal.at(where) from None


def _alone(fleet: Any, shape: Any, decoder: Any, workload: Any, traffic: Any, seed: float | None) -> Any:
    """Say of a split that was not simulated whether it could keep the budget: by its floor."""
    from dataclasses import replace

    from analysis.model.replayed import floor_s

    try:
        floor = floor_s(shape, decoder, workload, traffic=traffic, seed=int(seed or 0))
    except InputError:
        return replace(fleet, feasible=False, latency_floor_s=None)
    keeps = floor <= workload.budget_s
    nothing = dict.fromkeys(("nodes", "node_req_per_s", "cost_usd_per_mtok"))
    return replace(fleet, feasible=keeps, latency_floor_s=floor, **nothing)


def _cheapest_node(
    plan: Any, shapes: Any, decoder: Any, workload: Any, term: str, day: date, own: OwnPrices | None, spares: int
) -> dict[str, Any] | None:
    """Look whether another node with the same accelerator, a smaller one perhaps, does the work for less."""
    from analysis.reference.tables import offers

    rows = offers(shapes[0].replica.accelerator.name, as_of=day, term=term, prices=own)
    on_offer = [
        plan.Offer(f"{row.provider} {row.instance}", int(row.gpus), float(row.usd_per_hour))
        for row in rows.itertuples()
    ]
    # of equal nodes only the cheapest can win
    lowest = {each.gpus: each for each in sorted(on_offer, key=lambda each: -each.price_usd_per_node_hour)}
    found = plan.cheapest_offer(lowest.values(), shapes, decoder, workload, spares=spares)
    if found is None:
        return None
    offer, width, fleet = found
    return {
        "node": offer.name,
        "gpus": offer.gpus,
        "tp": width,
        "nodes": fleet.nodes,
        "price_usd_per_node_hour": offer.price_usd_per_node_hour,
        "usd_per_hour": fleet.nodes * offer.price_usd_per_node_hour,
        "cost_usd_per_mtok": fleet.cost_usd_per_mtok,
    }


def _capacity_text(result: Mapping[str, Any], node: str | None) -> str:
    asked = "this is {model}, {decoder}, weights {weights}, cache {kv}, on {replicas} x {tp} {gpu} a node".format(
        **result
    )
    shapes = ", ".join("tp {tp} ({latency_floor_s:.3g} s)".format(**each) for each in result["feasible_shapes"])
    within = f"{result['percentile']:g} % within {result['budget_s']:g} s"
    if not result["feasible"]:
        help_words = f"shapes that can: {shapes}" if shapes else "no split of this node can"
        return f"infeasible, {result['metric']}, {within}: {result['reason']}\n{help_words}\n{asked}"
    known = {q: result[f"latency_p{q}_s"] for q in (50, 95, 99)}
    times = ", ".join(f"p{q} {value:.3g} s" for q, value in known.items() if value is not None)
    spares = f", {result['spares']} of them spare," if result["spares"] else ""
    count = f"{result['nodes']} node{'s' if result['nodes'] != 1 else ''}{spares}"
    lines = [
        f"{count} for {result['metric']}, {within}; floor {result['latency_floor_s']:.3g} s",
        "{cost_usd_per_mtok:,.2f} USD per million output tokens; {saturated_usd_per_mtok:,.2f} if full".format(
            **result
        ),
        "utilization {utilization:.3f} = day {u_day:.3f} x whole nodes {u_integer:.3f} x budget {u_latency:.3f}"
        " x in time {u_goodput:.3f}".format(**result),
        "busy {busy:.1%} of the time, load {load:.1%} of what they could serve".format(**result),
        f"at this rate: {times}" if times else "percentiles at this rate: outside the domain of the closed form",
    ]
    if result["extrapolated"]:
        lines.append("the rate within the budget is extrapolated: outside the domain of the closed form")
    other = result.get("cheapest_node")
    if other is not None and other["usd_per_hour"] < result["nodes"] * result["price_usd_per_node_hour"]:
        lines.append(
            "cheaper on offer: {nodes} x {node} with {gpus} GPUs, {tp} to a replica,"
            " {usd_per_hour:,.2f} USD an hour together".format(**other)
        )
    lines.append(asked)
    lines.append(f"feasible: {shapes}")
    if node is not None:
        lines.append(whose_price(result, node))
    return "\n".join(lines)


def _asked(replica: Any, copies: float) -> dict[str, Any]:
    """Say what was understood: spellings are forgiven, so the answer names what it is about."""
    return {
        "model": replica.architecture.name,
        "gpu": replica.accelerator.name,
        "tp": int(replica.gpus),
        "replicas": int(copies),
        "weights": replica.precision.weights,
        "kv": replica.precision.kv,
    }


#: What can be asked for by name: the kind, and the options that take it.
NAMES = {
    "models": "--model, model",
    "gpus": "--gpu",
    "engines": "--engine",
    "nodes": "--node",
    "apis": "--api",
}


def _names(kind: str, day: date) -> list[str]:
    """List the names of one kind, each one that a command takes on that day."""
    from analysis.reference import efficiency, model_config, tables

    if kind == "models":
        return model_config.names()
    if kind == "engines":
        return efficiency.engines()
    if kind == "gpus":
        return sorted(part.name for part in tables.accelerators(as_of=tables.NEWEST))
    rows, column = {
        "nodes": (tables.node_prices(as_of=day), "instance"),
        "apis": (tables.api_prices(as_of=day), "model"),
    }[kind]
    return sorted(set(rows.rows[column]))


@cli.command(epilog=example("names gpus"))
@click.argument("kind", required=False, type=click.Choice(list(NAMES)))
@as_of_option
@json_option
def names(kind: str | None, as_of: date, as_json: bool) -> None:
    """List the names of models, GPUs, engines, nodes and APIs. Nodes and APIs are those with a price on that day."""
    if kind in ("models", "gpus", "engines"):
        _refuse_idle(("as_of",), f"with {kind}: only prices begin on a day")
    found = {each: _names(each, as_of) for each in ([kind] if kind else NAMES)}
    if kind:
        text = "\n".join(found[kind]) or "none on that day"
    else:
        text = "\n".join(f"{each} ({NAMES[each]}): {', '.join(those)}" for each, those in found.items())
    _print(found, as_json=as_json, text=text)


@cli.command(epilog=example("validate data/example_measurements.csv"))
@click.argument("file")
@json_option
def validate(file: str, as_json: bool) -> None:
    """Compare the model with your own measurements. FILE is a CSV like data/example_measurements.csv."""
    from analysis.evidence.foreign import read
    from analysis.evidence.validation import by_regime, errors

    cases, skipped = read(file)
    if not cases:
        text = "\n".join(["0 rows scored", *(f"skipped {row['id']}: {row['reason']}" for row in skipped)])
        _print({"regimes": {}, "rows": [], "skipped": skipped}, as_json=as_json, text=text)
        return
    frame = errors(cases)
    regimes = {
        str(regime): {
            "scored": int(found["scored"]),
            **{key: float(found[key]) for key in ("median_abs_error", "bias", "within_25_percent")},
        }
        for regime, found in by_regime(frame).to_dict("index").items()
    }
    rows = frame[["id", "regime", "predicted", "measured", "error"]].to_dict("records")
    lines = [f"{len(rows)} rows scored, {len(skipped)} skipped"]
    for regime, found in regimes.items():
        lines.append(
            f"{regime}: {found['scored']} rows, median error {found['median_abs_error']:.1%},"
            f" bias {found['bias']:+.1%}, {found['within_25_percent']:.0%} within 25 %"
        )
    lines += [f"{row['id']}: predicted {row['predicted']:.4g}, measured {row['measured']:.4g}" for row in rows]
    lines += [f"skipped {row['id']}: {row['reason']}" for row in skipped]
    _print({"regimes": regimes, "rows": rows, "skipped": skipped}, as_json=as_json, text="\n".join(lines))


def _one_line(error: click.ClickException) -> str:
    """Say click's refusals in the one shape that all others have."""
    if isinstance(error, click.MissingParameter):
        wanted = getattr(error.param, "help", None) or "a value"
        return str(InputError(_option(error.param), None, wanted[0].lower() + wanted[1:].rstrip(".")))
    if isinstance(error, click.NoSuchOption):
        near = ", ".join(sorted(error.possibilities or [])) or "an option that --help lists"
        return str(InputError(error.option_name, Words("an unknown option"), near))
    if isinstance(error, click.BadOptionUsage):
        return str(InputError(error.option_name, None, "a value after it"))
    if isinstance(error, click.BadParameter):
        kind = error.param.type if error.param is not None else None
        wanted = " or ".join(kind.choices) if isinstance(kind, click.Choice) else error.format_message()
        value = re.match(r"'(.*?)' is not", error.message)
        return str(InputError(_option(error.param), value[1] if value else None, wanted))
    named = re.search(r"'(.*?)'|\((.*)\)", error.format_message())
    got = next((part for part in named.groups() if part), None) if named else None
    if isinstance(error, click.UsageError) and error.ctx is not None and isinstance(error.ctx.command, click.Group):
        return str(InputError("COMMAND", got, " or ".join(error.ctx.command.list_commands(error.ctx))))
    return str(InputError("argument", got, "no more arguments"))


def _silence() -> None:
    """Let what is still in the buffer of standard output go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every refusal is one line and exit status 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; those of the process if left out.

    Returns
    -------
    int
        0 on success, 2 on bad input, 130 when interrupted.
    """
    import numpy as np

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # a number that overflows is told when the answer is printed
        with np.errstate(all="ignore"):
            cli.main(args=None if arguments is None else list(arguments), prog_name="analysis", standalone_mode=False)
            sys.stdout.flush()
    except InputError as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except click.ClickException as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        print("error: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # the reader of our output went away, as head does (click then exits); point stdout elsewhere for a silent end
        _silence()
        return 0
    except OSError as error:
        _silence()
        print(f"error: {InputError('output', Words(error.strerror), 'a place that takes it')}", file=sys.stderr)
        return EXIT_BAD_INPUT
    return 0


@cli.command(epilog=example("report --prices data/examples/own_prices.csv --out ../ours"))
@click.option("--prices", "file", metavar="FILE", help="Own prices, laid over the tables; without it the book's own.")
@click.option("--out", metavar="DIR", required=True, help="The folder for the site, new or empty.")
@json_option
def report(file: str | None, out: str, as_json: bool) -> None:
    """Execute the whole report with own prices, into a folder. Lists the verdicts that change."""
    import signal

    from tqdm import tqdm

    from analysis.publish.report import rerun

    # a run that is told to end leaves as little behind as one that is interrupted by hand
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tqdm(leave=False, disable=None, bar_format="{desc} {bar} {n_fmt} of {total_fmt}, {elapsed}") as bar:

            def progress(stage: str, done: int, total: int) -> None:
                bar.set_description_str(stage, refresh=False)
                bar.total, bar.n = total, done
                bar.refresh()

            found = rerun(Path(out), prices=None if file is None else Path(file), progress=progress)
    finally:
        signal.signal(signal.SIGTERM, before)
    changed = found.verdict_changes
    result = {
        "out": out,
        "prices": found.prices.name,
        "rows": len(found.prices.rows),
        "flagged": [{"row": row, "reason": reason} for row, reason in found.flagged],
        "verdict_changes": changed,
    }
    lines = [f"flagged, row {row}: {reason}" for row, reason in found.flagged]
    if found.prices.rows:
        prices_words = f"{len(found.prices.rows)} prices of {found.prices.name}"
        lines.append(f"{len({change['id'] for change in changed}) or 'no'} verdicts changed by {prices_words}")
    for change in changed:
        shares = [f"{share:.0%}" for share in (change["share_from"], change["share_to"]) if share is not None]
        lines.append(
            f"{change['id']}  {change['from']} -> {change['to']} as of {change['as_of']}"
            f"{f', {shares[0]} -> {shares[-1]} true' if len(shares) == 2 else ''}: {change['statement']}\n"
            f"     {change['decided_by']}"
        )
    _print(result, as_json=as_json, text="\n".join([*lines, f"open {Path(out) / 'index.html'}"]))
