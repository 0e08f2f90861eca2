"""The symbol table: the one place where a symbol gets its LaTeX, code name, unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, Symbol, latex

from analysis.units import ONE, USD, byte, flop, hour, kilowatt, request, second, token


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

# what a model weighs (symbolic/transformer)
TOKEN_EACH = entry("token_each", latex="1", unit=token, means="tokens that one position holds", constant=1)
LAYERS = entry("layers", latex="L", unit=ONE, means="layers of the model")
HIDDEN = entry("hidden", latex="d", unit=ONE, means="width of the residual stream")
HEADS = entry("heads", latex="h_q", unit=ONE, means="query heads of a layer")
KV_HEADS = entry("kv_heads", latex="h_{kv}", unit=ONE, means="key-value heads of a layer")
HEAD_DIM = entry("head_dim", latex="d_h", unit=ONE, means="width of a head")
LATENT_RANK = entry(
    "latent_rank", latex="r", unit=ONE, means="width of the latent vector that stands for keys and values"
)
ROPE_DIM = entry("rope_dim", latex="d_r", unit=ONE, means="width of the rotary key beside the latent vector")
FFN = entry("ffn", latex="d_f", unit=ONE, means="inner width of the MLP")
VOCAB = entry("vocab", latex="V", unit=ONE, means="rows of the embedding")
EXPERTS = entry("experts", latex="n_e", unit=ONE, means="routed experts of a layer")
TOP_K = entry("top_k", latex="k", unit=ONE, means="experts that one token uses")
N_MATMUL = entry(
    "n_matmul", latex=r"N_\mathrm{mm}", unit=ONE, means="weights that multiply one token, the input embedding left out"
)
N_TOTAL = entry("n_total", latex=r"N_\mathrm{all}", unit=ONE, means="parameters of the model")
KV_BYTE = entry("kv_byte", latex=r"b_{kv}", unit=byte / token, means="bytes of one cached number of one token")
KAPPA = entry("kappa", latex=r"\kappa", unit=byte / token, means="bytes that one token leaves in the cache")
CONTEXT = entry("context", latex="s", unit=token, means="tokens in the cache before a pass")
SEQ_POSITIONS = entry("sequence_positions", latex="w", unit=ONE, means="positions of one sequence that a pass computes")
WINDOW = entry("window", latex=r"s_\mathrm{win}", unit=token, means="tokens that a windowed layer can see")
ATTENTION_FLOP = entry(
    "attention_flop", latex="a", unit=flop / token, means="attention FLOP of one position per token that it sees"
)
RIDGE = entry("ridge", latex="R", unit=flop / byte, means="peak arithmetic over memory bandwidth")
MEMORY = entry("memory", latex="M", unit=byte, means="memory left for the cache once the weights are in")
STREAMED = entry("streamed", latex="W", unit=byte, means="weight bytes that one pass reads")


# the money: a request on both sides
PROMPT = entry(
    "prompt", latex=r"S_\mathrm{in}", unit=token / request, means="tokens in one prompt, cached ones included"
)
CACHED = entry(
    "cached", latex=r"S_\mathrm{hit}", unit=token / request, means="prompt tokens that a cache already holds"
)
THINKING = entry(
    "thinking",
    latex=r"S_\mathrm{think}",
    unit=token / request,
    means="hidden tokens that a reasoning model writes first",
)
READ_TPUT = entry(
    "read_tput", latex=r"X_\mathrm{read}", unit=token / second, means="input tokens per second while a node only reads"
)
WRITE_TPUT = entry(
    "write_tput",
    latex=r"X_\mathrm{write}",
    unit=token / second,
    means="output tokens per second while a node only writes",
)
IN_TPUT = entry(
    "input_tput",
    latex=r"X_\mathrm{in}",
    unit=token / second,
    means="input tokens per second that go with X output tokens",
)
IN_WEIGHT = entry(
    "input_weight", latex=r"w_\mathrm{in}", unit=ONE, means="price of an input token over that of an output token"
)
REQ_TPUT = entry(
    "request_tput", latex=r"X_\mathrm{req}", unit=request / second, means="requests per second of the node at full use"
)
PRICE_IN = entry("price_in", latex=r"p_\mathrm{in}", unit=USD / token, means="price of an input token at an API")
PRICE_HIT = entry(
    "price_hit", latex=r"p_\mathrm{hit}", unit=USD / token, means="price of a cached input token at an API"
)
PRICE_OUT = entry("price_out", latex=r"p_\mathrm{out}", unit=USD / token, means="price of an output token at an API")
DISCOUNT = entry("discount", latex=r"\delta", unit=ONE, means="discount of an API for requests that may wait")
BILL = entry("bill", latex="b", unit=USD / request, means="what an API bills for one request")
PERIOD = entry("period", latex="H", unit=hour, means="hours of the billing period")
BUSY_HOURS = entry("busy_hours", latex=r"H_\mathrm{busy}", unit=hour, means="hours in which a node has work")
STARTS = entry("starts", latex=r"n_\mathrm{start}", unit=ONE, means="times that a node is started")
START_HOURS = entry("start_hours", latex=r"h_0", unit=hour, means="hours paid at each start before and after the work")
FASTER = entry(
    "faster_tput", latex=r"X^{\prime}", unit=token / second, means="tokens per second of the node with a faster decoder"
)
USEFUL = entry("useful", latex="q", unit=ONE, means="share of the tokens, or of the tasks, that are of use")

# the money: owning
PURCHASE = entry("purchase", latex="C", unit=USD, means="price of buying one node")
RESIDUAL = entry(
    "residual", latex=r"\rho", unit=ONE, means="share of the purchase price that a node fetches at its end"
)
INTEREST = entry("interest", latex="i", unit=ONE, means="cost of capital for one month")
MONTHS = entry("months", latex="n", unit=ONE, means="months of a node's life")
HOURS_A_MONTH = entry(
    "HOURS_PER_MONTH",
    latex="730",
    unit=hour,
    means="hours in a month: a twelfth of a year",
    constant=730,
)
HOURS_A_YEAR = entry("HOURS_PER_YEAR", latex="8760", unit=hour, means="hours in a year", constant=8760)
POWER = entry("power", latex=r"P_\mathrm{max}", unit=kilowatt, means="power limit of one node")
DRAW = entry("draw", latex=r"d_\mathrm{avg}", unit=ONE, means="average draw over the power limit")
PUE = entry("pue", latex=r"\mathrm{PUE}", unit=ONE, means="power of the hall over power of the machines")
ELECTRICITY = entry("electricity", latex=r"p_\mathrm{el}", unit=USD / (kilowatt * hour), means="price of electricity")
SPACE = entry("space", latex=r"p_\mathrm{space}", unit=USD / kilowatt, means="rent of a kilowatt of space for a month")
UPKEEP = entry("upkeep", latex=r"\mu", unit=ONE, means="repairs and support in a year over the purchase price")
STAFF = entry("staff", latex=r"s_\mathrm{staff}", unit=USD, means="pay of the people who run a node, for a year")
SUBLET = entry(
    "sublet", latex=r"p_\mathrm{let}", unit=USD / hour, means="rent that a node would bring from somebody else"
)

# how long a pass takes (symbolic/decoding)
SEQUENCES = entry("sequences", latex=r"n_\mathrm{seq}", unit=ONE, means="sequences that share a pass")
GPUS = entry("gpus", latex="G", unit=ONE, means="GPUs that share each layer of a model")
LAYER_TIME = entry("layer_time", latex="t_L", unit=second, means="fixed time of one layer")
PASS_TIME = entry("pass_time", latex="t", unit=second, means="time of one pass")
PROMPT_TIME = entry(
    "prompt_time", latex="p", unit=second, means="what the passes that read one prompt take longer than others"
)
ANSWER_PASSES = entry("answer_passes", latex="P", unit=ONE, means="passes that one answer takes")
BASE_TIME = entry("base_time", latex="t_0", unit=second, means="time of a pass whatever the number of its sequences")
SEQUENCE_TIME = entry("sequence_time", latex=r"\beta", unit=second, means="time that each sequence adds to a pass")

# the decoders (symbolic/decoders) and how experts are shared (symbolic/transformer)
ACCEPT = entry("acceptance", latex=r"\alpha_\mathrm{d}", unit=ONE, means="chance that one more draft token is accepted")
DRAFTS = entry("draft_length", latex="g", unit=ONE, means="tokens that a draft proposes in one cycle")
DRAFT_COST = entry(
    "draft_cost", latex=r"c_\mathrm{d}", unit=ONE, means="time of one draft over that of a pass of one position each"
)
WIDER = entry(
    "wider_pass", latex="v", unit=ONE, means="time of the pass that checks drafts over that of one position each"
)
BLOCK = entry("block", latex=r"\ell", unit=ONE, means="tokens of one block")
PASSES = entry("passes", latex="T", unit=ONE, means="passes that one block takes, its commit pass included")
TOKENS_KEPT = entry("tokens_kept", latex=r"\tau", unit=ONE, means="tokens of one sequence that a pass yields")
RIDGE_POSITIONS = entry(
    "ridge_positions",
    latex=r"m_\mathrm{r}",
    unit=ONE,
    means="positions of a pass whose multiplying takes as long as reading its weights",
)
CONTEXT_SCALE = entry(
    "context_scale",
    latex=r"s_\kappa",
    unit=token,
    means="context that takes as long to read as one position takes to multiply",
)
POSITION_TIME = entry(
    "position_time", latex=r"t_\mathrm{pos}", unit=second, means="time to multiply one position with all weights"
)
OVERHEAD = entry("overhead_time", latex="f", unit=second, means="time of a pass whatever its positions and its cache")
PROMPT_LENGTH = entry(
    "prompt_length", latex=r"n_\mathrm{in}", unit=ONE, means="positions of one prompt that no cache holds"
)
ANSWER_LENGTH = entry("answer_length", latex=r"n_\mathrm{out}", unit=ONE, means="tokens of one answer")
SHARE_EASY = entry("share_easy", latex=r"q_\mathrm{e}", unit=ONE, means="share of the blocks that are easy, below 1")
PASSES_EASY = entry("passes_easy", latex=r"T_\mathrm{e}", unit=ONE, means="passes of an easy block")
PASSES_HARD = entry("passes_hard", latex=r"T_\mathrm{h}", unit=ONE, means="passes of a hard block")
SKEW = entry("skew", latex=r"\varsigma", unit=ONE, means="share of the positions that use the favourite experts")
NEIGHBOUR = entry(
    "neighbour_share", latex=r"o", unit=ONE, means="share of a position's experts that another position uses too"
)
# the law of a waiting answer (symbolic/queueing)
ARRIVALS = entry("arrivals", latex=r"\lambda_r", unit=1 / second, means="requests per second that come to one replica")
LATENCY = entry("latency", latex=r"\mathcal{L}", unit=second, means="mean time of a request under load")
LATENCY_FLOOR = entry("latency_floor", latex=r"\mathcal{L}_0", unit=second, means="time of a request alone")
LONE_PASS = entry("lone_pass", latex=r"\alpha", unit=second, means="time of a pass with one request")
MARGINAL = entry(
    "marginal_time", latex="c_r", unit=second, means="what one more request in a replica adds to the time of another"
)
BUDGET = entry("budget", latex="D", unit=second, means="latency budget: the time that an answer may take")
SPAN = entry("span", latex=r"\theta", unit=second, means="a part of a request's stay")
SPAN_PASSES = entry("span_passes", latex=r"P_\theta", unit=ONE, means="passes of a request in that part of its stay")
LAG = entry("lag", latex=r"\Delta", unit=second, means="time between two moments of a stay")
VARIANCE = entry(
    "latency_variance", latex=r"\mathrm{var}_\mathcal{L}", unit=second**2, means="variance of the time of a request"
)
NORMAL_QUANTILE = entry(
    "normal_quantile", latex="z_Q", unit=ONE, means="quantile of the standard normal distribution, above its median"
)
JOB_TIME = entry("job_time", latex=r"S_\mathrm{job}", unit=second, means="time of a job that never waits")
WAIT = entry("wait", latex=r"W_q", unit=second, means="mean time in the queue")
OFFERED = entry("offered_load", latex=r"a_\mathrm{load}", unit=ONE, means="servers that the arriving work keeps busy")
NODES = entry("nodes", latex=r"n_\mathrm{node}", unit=ONE, means="nodes that are bought, spares included")
MEAN_RATE = entry(
    "mean_rate", latex=r"\bar\lambda", unit=request / second, means="requests per second on average over the day"
)
PEAK_RATE = entry(
    "peak_rate", latex=r"\hat\lambda", unit=request / second, means="requests per second in the busiest hour"
)
FLEET_RATE = entry(
    "fleet_rate", latex=r"\Lambda", unit=request / second, means="largest rate of all nodes within the budget"
)
SATURATED_RATE = entry(
    "saturated_rate", latex=r"\lambda_\mathrm{sat}", unit=request / second, means="requests per second of a full node"
)
WITHIN = entry("within", latex=r"u_\mathrm{goodput}", unit=ONE, means="share of requests answered within the budget")
PILE = entry("pile", latex=r"N_\mathrm{doc}", unit=request, means="documents that have to be read, one request each")
NIGHT = entry("night", latex=r"h_\mathrm{night}", unit=hour, means="hours in which they have to be read")

UNITS = {e.symbol: e.unit for e in TABLE.values()}

#: What each part of the table is about, by the name of its first entry.
SUBJECTS = {
    "SECONDS_PER_HOUR": "What a token costs",
    "FLOP_PER_WEIGHT": "What a pass reads and computes",
    "token_each": "What a model weighs",
    "prompt": "A request and its bill",
    "purchase": "Owning a node",
    "sequences": "How long a pass takes",
    "acceptance": "The decoders",
    "arrivals": "Requests that wait, and the nodes for them",
}


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
