"""The symbol table: the one place where a symbol gets its LaTeX, code name, unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, Symbol, latex

from analysis.units import ONE, USD, byte, flop, hour, request, second, token


@dataclass(frozen=True)
class Entry:
    """One line of the notation page."""

    symbol: Symbol
    latex: str
    unit: Expr
    means: str
    constant: Integer | None = None


TABLE: dict[str, Entry] = {}


def entry(name: str, *, latex: str, unit: Expr, means: str, constant: int | None = None) -> Symbol:
    """Declare a positive symbol and write it into the table.

    A ``constant`` stays a symbol in derivations (SymPy would fold 10**6/3600 into 2500/9, which
    nobody recognises) and gets its value from `with_constants`.
    """
    if name in TABLE or any(known.latex == latex for known in TABLE.values()):
        raise ValueError(f"symbol {name!r} or its LaTeX {latex!r} is already taken")
    symbol = Symbol(name, positive=True)
    TABLE[name] = Entry(symbol, latex, unit, means, None if constant is None else Integer(constant))
    return symbol


SEC_PER_HOUR = entry("SECONDS_PER_HOUR", latex="3600", unit=second / hour, means="seconds in an hour", constant=3600)
TOK_PER_MTOK = entry("TOKENS_PER_MTOK", latex="10^{6}", unit=ONE, means="tokens in a million tokens", constant=10**6)

PRICE = entry("price", latex=r"p_\mathrm{node}", unit=USD / hour, means="price of one node for one hour")
TPUT = entry("node_tput", latex="X", unit=token / second, means="tokens per second of the node at full use")
UTIL = entry("utilization", latex="u", unit=ONE, means="fraction of the hour in which the node runs at that throughput")
COST = entry("cost", latex="c", unit=USD / token, means="effective cost of one token")
API_PRICE = entry(
    "api_price", latex=r"p_\mathrm{API}", unit=USD / token, means="price of one token of the same kind at an API"
)
RATE = entry("rate", latex=r"\lambda", unit=request / second, means="requests that arrive per second")
ANSWER = entry("answer", latex=r"S_\mathrm{out}", unit=token / request, means="tokens in one answer")

# the roofline
FLOP_PER_WEIGHT = entry(
    "FLOP_PER_WEIGHT",
    latex="2",
    unit=flop,
    means="operations of one weight for one position: a multiplication and an addition",
    constant=2,
)
WEIGHTS = entry("weights", latex="N", unit=ONE, means="weights that a pass multiplies")
POSITIONS = entry("positions", latex="m", unit=ONE, means="positions that a pass computes, over all its sequences")
BYTES_PER_WEIGHT = entry(
    "bytes_per_weight", latex=r"b_\mathrm{w}", unit=byte, means="bytes that one stored weight takes, with its scales"
)
BYTES_PER_ACT = entry(
    "bytes_per_activation", latex=r"b_\mathrm{a}", unit=byte, means="bytes of one number that goes in or comes out"
)
INPUTS = entry("inputs", latex=r"d_\mathrm{in}", unit=ONE, means="rows of a weight matrix: numbers that go in")
OUTPUTS = entry("outputs", latex=r"d_\mathrm{out}", unit=ONE, means="columns of a weight matrix: numbers that come out")
PEAK = entry(
    "peak_flop_per_s",
    latex=r"P_\mathrm{peak}",
    unit=flop / second,
    means="dense peak in the format that the matmul units compute in",
)
MEM_BW = entry("mem_bw_byte_per_s", latex=r"\mathrm{BW}", unit=byte / second, means="peak memory bandwidth")
MFU = entry("mfu", latex=r"\eta_\mathrm{f}", unit=ONE, means="share of the peak that matmuls reach")
MBU = entry("mbu", latex=r"\eta_\mathrm{b}", unit=ONE, means="share of the memory bandwidth that reading reaches")
INTENSITY = entry(
    "intensity", latex=r"\mathcal{I}", unit=flop / byte, means="arithmetic intensity: operations for each byte moved"
)

UNITS = {e.symbol: e.unit for e in TABLE.values()}


def with_constants(expr: Expr) -> Expr:
    """Put the numbers in for the symbols that stand for conversion constants."""
    return expr.subs({e.symbol: e.constant for e in TABLE.values() if e.constant is not None})


def to_latex(expr: Expr) -> str:
    r"""Print an expression with the LaTeX of the symbol table.

    Examples
    --------
    >>> to_latex(PRICE / (TPUT * UTIL))
    '\\frac{p_\\mathrm{node}}{X u}'
    """
    return latex(expr, symbol_names={e.symbol: e.latex for e in TABLE.values()})
