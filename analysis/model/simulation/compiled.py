"""The serving loop, compiled: the rules of `analysis.model.simulation.plain`, many passes at a time.

Between two events (an arrival, an answer or a block that ends, a prompt) the passes of a replica differ only
by the context, which grows evenly. Their sum is taken at once, so that the work depends on events and not on
passes. The compiled code on disk is renewed when this file changes and no other, so all that it is made of
stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

#: Places in `Rules.scalars`, the constants of a pass.
WEIGHTS, ROW_MATMUL, LOGIT_MATMUL, BASE, ROW, LOGIT, SEQUENCE, PROMPT, OVERLAP, CACHED, SEEN = range(11)
#: Columns of `Rules.experts`: share that one position uses, skew, logarithms of the chance not to be used by a
#: position (drawn evenly, as a favourite, as another), times of the weights and of one row if all are in use.
EVENLY, SKEW, NOT_USED, NOT_FAVOURITE, NOT_OTHER, READ, ROWS = range(7)
#: Columns of `Rules.readers`: times of one token read and of one look, windows, latent attention's other form,
#: whether sums over sequences suffice, cache bytes of a token, tokens kept.
READ_S, LOOK_S, REACH, CHUNKED, EXPANDED_S, AGAIN_S, SUMMED, KEPT_BYTE, KEPT = range(9)
#: How an answer is made, and how an arrival finds its replica.
AR, SPECULATIVE, DIFFUSION, FULL = range(4)
SHORTEST, RANDOM = range(2)
#: Columns of `Fleet.state`: passes pending and passes done, requests that decode, prompts that the pending pass
#: ends, requests let in; sums of their contexts; the prompt read in part and how much of it; the line; all inside.
STEPS, COUNTER, RUNNING, READING, HELD, CONTEXT, WIDE, PARTIAL, DONE, HEAD, TAIL, WAITING, INSIDE = range(13)
#: Columns of `Fleet.clock`: begin and end of what is pending, memory in use, last change, integrals of requests
#: inside and of computing; of the pending passes, the time outside attention, and attention's two and their growth.
NOW, END, RESERVED, CHANGED, NUMBER_S, BUSY_S, EACH_S, CACHED_S, LOOKS_S, CACHED_STEP, LOOKS_STEP = range(11)


class Rules(NamedTuple):
    """What holds for the whole run: whole numbers, others, tables.

    ``alone`` keeps times of passes without a prompt, ``unused`` the logarithms of the experts left out of a pass.
    """

    kind: int
    positions: int
    block: int
    drafts: int
    slots: int
    chunk: int
    prompts: int
    routing: int
    seed: int
    draft_share: float
    passes: float
    memory_byte: float
    from_s: float
    to_s: float
    powers: Any
    scalars: Any
    experts: Any
    readers: Any
    alone: Any
    unused: Any


class Work(NamedTuple):
    """Arrays with a place for each request: what is given, what is found, and what is kept in between."""

    arrival: Any
    new: Any
    cached: Any
    output: Any
    first: Any
    end: Any
    following: Any
    context: Any
    left: Any
    draws: Any


class Fleet(NamedTuple):
    """Arrays with a row for each replica: its state, its clock, a heap of what ends when, prompts being read."""

    state: Any
    clock: Any
    keys: Any
    items: Any
    reads: Any


Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile, and keep the result on disk where there is a place for it."""
    # without reference counts (nothing is allocated here) and calls the loop is three times as fast
    options = {"error_model": "numpy", "forceinline": True, "_nrt": False}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the folder of the source nor the user's own can be written
        return numba.njit(**options)(function)


# --- Time of a pass ----------------------------------------------------------------------------


@compiled
def overlapped(reading, computing, exponent):
    """`analysis.model.decoding.overlapped`."""
    if exponent == np.inf:
        return max(reading, computing)
    if exponent == 1.0:
        return reading + computing
    if exponent == 1.5:
        root = np.cbrt(reading * np.sqrt(reading) + computing * np.sqrt(computing))
        return root * root
    return (reading**exponent + computing**exponent) ** (1.0 / exponent)


@compiled
def no_texts(rules):
    """Begin to count the experts of a pass: none is used."""
    for i in range(rules.experts.shape[0]):
        rules.unused[i] = 0.0


@compiled
def add_texts(rules, texts, positions):
    """Count the experts that texts of so many positions use; each text has favourites of its own."""
    experts = rules.experts
    if texts == 0.0:
        return
    for i in range(experts.shape[0]):
        if experts[i, SKEW] == 0.0:
            rules.unused[i] += texts * positions * experts[i, NOT_USED]
            continue
        evenly = experts[i, EVENLY]
        used = -evenly * np.expm1(positions * experts[i, NOT_FAVOURITE])
        used -= (1.0 - evenly) * np.expm1(positions * experts[i, NOT_OTHER])
        rules.unused[i] += texts * np.log1p(-used)


@compiled
def rows_s(rules, rows, logits):
    """Time of everything in a pass but attention, and what sequences and prompts add; its texts are counted."""
    scalars, experts = rules.scalars, rules.experts
    reading = scalars[WEIGHTS]
    computing = rows * scalars[ROW_MATMUL] + logits * scalars[LOGIT_MATMUL]
    for i in range(experts.shape[0]):
        in_use = -np.expm1(rules.unused[i])
        reading += in_use * experts[i, READ]
        computing += in_use * experts[i, ROWS]
    phase = overlapped(reading, computing, scalars[OVERLAP])
    return phase + scalars[BASE] + rows * scalars[ROW] + logits * scalars[LOGIT]


@compiled
def read_of(readers, i, context):
    """Tokens that one kind of attention reads."""
    if readers[i, CHUNKED] != 0.0:
        return context % readers[i, REACH]
    return min(context, readers[i, REACH])


@compiled
def seen_since_start(reach, chunked, end):
    """Tokens that all positions from the first to one see through a window."""
    full = reach * (reach + 1.0) / 2.0
    if chunked != 0.0:
        chunks = np.floor(end / reach)
        rest = end - chunks * reach
        return chunks * full + rest * (rest + 1.0) / 2.0
    growing = min(end, reach)
    return growing * (growing + 1.0) / 2.0 + (end - growing) * reach


@compiled
def look_s(readers, i, context, w, causal):
    """Time of one kind of attention over w positions of one sequence."""
    reach = readers[i, REACH]
    if not causal:
        seen = w * (read_of(readers, i, context) + w)
    elif reach == np.inf:
        seen = w * (context + (w + 1.0) / 2.0)
    else:
        chunked = readers[i, CHUNKED]
        seen = seen_since_start(reach, chunked, context + w) - seen_since_start(reach, chunked, context)
    direct = readers[i, LOOK_S] * seen
    if readers[i, EXPANDED_S] == np.inf:
        return direct
    return min(direct, readers[i, EXPANDED_S] * seen + readers[i, AGAIN_S] * read_of(readers, i, context))


@compiled
def prompt_tokens(request, work):
    """Tokens of a prompt, cached ones included."""
    return np.int64(work.new[request]) + work.cached[request]


@compiled
def held_byte(request, work, rules):
    """Cache bytes that a request holds in the end, whole blocks included."""
    answer = np.int64(work.output[request])
    if rules.kind == DIFFUSION:
        answer = (answer + rules.block - 1) // rules.block * rules.block
    tokens = np.float64(prompt_tokens(request, work) + answer)
    total = 0.0
    for i in range(rules.readers.shape[0]):
        total += rules.readers[i, KEPT_BYTE] * min(tokens, rules.readers[i, KEPT])
    return total


# --- Random numbers: of a request, whatever the order in which requests are served -----------------


@compiled
def uniform(seed, request, draw):
    """One number from 0 to 1 for each request and draw (splitmix64 of the three)."""
    z = (
        np.uint64(seed)
        + np.uint64(request + 1) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(draw + 1) * np.uint64(0xD1B54A32D192ED03)
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def passes_of_block(seed, request, block, passes):
    """Whole number of passes, whose mean is the one given."""
    low = np.int64(np.floor(passes))
    if passes == low:
        return low
    return low + np.int64(uniform(seed, request, block) < passes - low)


# --- A heap of pass counts at which something ends ---------------------------------------------


@compiled
def push(keys, items, size, key, item):
    """Put an item in."""
    i = size
    while i > 0:
        above = (i - 1) >> 1
        if keys[above] <= key:
            break
        keys[i] = keys[above]
        items[i] = items[above]
        i = above
    keys[i] = key
    items[i] = item


@compiled
def pop(keys, items, size):
    """Take the first away; what is left has one fewer."""
    last = size - 1
    key, item = keys[last], items[last]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= last:
            break
        if below + 1 < last and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[i] = keys[below]
        items[i] = items[below]
        i = below
    keys[i] = key
    items[i] = item


# --- Sums over passes whose context grows evenly ---------------------------------------------------


@compiled
def smooth_s(cached, cached_step, looks, looks_step, passes, exponent):
    """Sum of ``overlapped`` over passes in which both times grow by a step, or -1 if it needs shorter pieces.

    Rules of Gauss for evenly spaced points. Were both times in proportion the sum would be exact; ``bent`` says
    how far they are from it and ``rule`` how fast the rules converge, so that the error stays below 1e-11.
    """
    k = np.float64(passes)
    middle = (k - 1.0) / 2.0
    if passes <= 3:
        total = 0.0
        for i in range(passes):
            total += overlapped(cached + i * cached_step, looks + i * looks_step, exponent)
        return total
    if exponent == 1.0 or (cached_step == 0.0 and looks_step == 0.0):
        return k * overlapped(cached + middle * cached_step, looks + middle * looks_step, exponent)
    if exponent == np.inf:
        first, last = cached - looks, cached + (k - 1.0) * cached_step - looks - (k - 1.0) * looks_step
        if first >= 0.0 and last >= 0.0:
            return k * (cached + middle * cached_step)
        if first <= 0.0 and last <= 0.0:
            return k * (looks + middle * looks_step)
        return -1.0
    crossed, along = cached * looks_step - looks * cached_step, cached * looks_step + looks * cached_step
    least = min(cached, looks)
    if along <= 0.0 or least <= 0.0:
        return -1.0
    bent = (crossed / along) ** 2
    growth = (k - 1.0) * max(cached_step / cached, looks_step / looks)
    rule = growth / (2.0 + growth + 2.0 * np.sqrt(1.0 + growth))
    rule *= rule
    if bent * rule * rule < 1e-11:
        away = np.sqrt((k * k - 1.0) / 12.0)
        low, high = middle - away, middle + away
        return (k / 2.0) * (
            overlapped(cached + low * cached_step, looks + low * looks_step, exponent)
            + overlapped(cached + high * cached_step, looks + high * looks_step, exponent)
        )
    if bent * rule * rule * rule < 1e-11:
        square = (3.0 * k * k - 7.0) / 20.0
        away, outer = np.sqrt(square), (k * k - 1.0) / (24.0 * square)
        low, high = middle - away, middle + away
        return k * (
            outer
            * (
                overlapped(cached + low * cached_step, looks + low * looks_step, exponent)
                + overlapped(cached + high * cached_step, looks + high * looks_step, exponent)
            )
            + (1.0 - 2.0 * outer) * overlapped(cached + middle * cached_step, looks + middle * looks_step, exponent)
        )
    return -1.0


@compiled
def growing_s(cached, cached_step, looks, looks_step, passes, exponent):
    """Sum of ``overlapped`` over passes in which both times grow by a step, in as few pieces as exactness allows."""
    total, done = 0.0, 0
    while done < passes:
        piece = passes - done
        found = -1.0
        while found < 0.0:
            found = smooth_s(
                cached + done * cached_step, cached_step, looks + done * looks_step, looks_step, piece, exponent
            )
            if found < 0.0:
                piece = (piece + 1) // 2
        total += found
        done += piece
    return total


# --- One replica ---------------------------------------------------------------------------------


@compiled
def passed(r, until, fleet, rules):
    """Bring the integral of the number of requests inside up to a moment."""
    clock = fleet.clock
    begin, end = max(clock[r, CHANGED], rules.from_s), min(until, rules.to_s)
    if end > begin:
        clock[r, NUMBER_S] += fleet.state[r, INSIDE] * (end - begin)
    clock[r, CHANGED] = until


@compiled
def start(r, request, tokens, passes, fleet):
    """Set an answer going: its context, and the count of passes at which something of it ends."""
    state = fleet.state
    push(fleet.keys[r], fleet.items[r], state[r, RUNNING], state[r, COUNTER] + passes, request)
    state[r, RUNNING] += 1
    state[r, CONTEXT] += tokens


@compiled
def let_in(r, work, fleet, rules):
    """Take the first of the line if there is a slot and memory for it; -1 if not."""
    state, clock = fleet.state, fleet.clock
    if state[r, WAITING] == 0 or state[r, HELD] >= rules.slots:
        return np.int64(-1)
    request = state[r, HEAD]
    byte = held_byte(request, work, rules)
    if clock[r, RESERVED] + byte > rules.memory_byte:
        return np.int64(-1)
    clock[r, RESERVED] += byte
    state[r, HEAD] = work.following[request]
    state[r, WAITING] -= 1
    state[r, HELD] += 1
    return request


@compiled
def leave(r, request, work, fleet, rules):
    """Let a finished request go."""
    state, clock = fleet.state, fleet.clock
    work.end[request] = clock[r, NOW]
    passed(r, clock[r, NOW], fleet, rules)
    state[r, INSIDE] -= 1
    state[r, HELD] -= 1
    clock[r, RESERVED] -= held_byte(request, work, rules)
    if state[r, HELD] == 0:
        clock[r, RESERVED] = 0.0


@compiled
def read_prompts(r, work, fleet, rules):
    """Choose what the next pass reads: how many prompts, tokens of them, and attention's two times."""
    state, readers = fleet.state, rules.readers
    budget, prompts, cached_s, looks_s = rules.chunk, 0, 0.0, 0.0
    state[r, READING] = 0
    no_texts(rules)
    while budget > 0 and prompts < rules.prompts:
        request = state[r, PARTIAL]
        if request < 0:
            request = let_in(r, work, fleet, rules)
            if request < 0:
                break
            state[r, DONE] = 0
            if rules.kind == FULL:
                tokens = prompt_tokens(request, work) + work.output[request]
                start(r, request, tokens, passes_of_block(rules.seed, request, 0, rules.passes), fleet)
                state[r, WIDE] += tokens * tokens
                continue
        before = np.float64(work.cached[request] + state[r, DONE])
        take = min(budget, work.new[request] - state[r, DONE])
        for i in range(readers.shape[0]):
            cached_s += readers[i, READ_S] * read_of(readers, i, before)
            looks_s += look_s(readers, i, before, np.float64(take), True)
        add_texts(rules, 1.0, np.float64(take))
        state[r, DONE] += take
        budget -= take
        prompts += 1
        state[r, PARTIAL] = request
        if state[r, DONE] == work.new[request]:
            fleet.reads[r, state[r, READING]] = request
            state[r, READING] += 1
            state[r, PARTIAL] = -1
    return prompts, rules.chunk - budget, cached_s, looks_s


@compiled
def compose(r, work, fleet, rules):
    """Form the passes that come next: who is in them, how many are alike, and when the last of them ends."""
    state, clock, scalars, readers = fleet.state, fleet.clock, rules.scalars, rules.readers
    kind, w = rules.kind, np.float64(rules.positions)
    prompts, prompt_rows, cached_s, looks_s = read_prompts(r, work, fleet, rules)
    n = state[r, RUNNING]
    if n == 0 and prompts == 0:
        state[r, STEPS] = 0
        clock[r, END] = np.inf
        return
    steps = np.int64(1)
    if prompts == 0 and kind != SPECULATIVE:
        steps = fleet.keys[r, 0] - state[r, COUNTER]
    total, rows = np.float64(state[r, CONTEXT]), n * w
    cached_step, looks_step, draft_cached_s, draft_looks_s = 0.0, 0.0, 0.0, 0.0
    if kind == FULL:
        rows = total
        for i in range(readers.shape[0]):
            looks_s += min(readers[i, LOOK_S], readers[i, EXPANDED_S]) * state[r, WIDE]
    else:
        cached_s += scalars[CACHED] * total
        if kind == AR:
            looks_s += scalars[SEEN] * (total + n)
            cached_step, looks_step = scalars[CACHED] * n, scalars[SEEN] * n
        elif kind == SPECULATIVE:
            looks_s += scalars[SEEN] * (w * total + n * (w * (w + 1.0) / 2.0))
            draft_cached_s, draft_looks_s = scalars[CACHED] * total, scalars[SEEN] * (total + n)
        else:
            looks_s += scalars[SEEN] * (w * total + n * (w * w))
        # windows, and latent attention in wide passes: sequence by sequence
        for i in range(readers.shape[0]):
            if readers[i, SUMMED] != 0.0:
                continue
            reach, chunked = readers[i, REACH], readers[i, CHUNKED] != 0.0
            for j in range(n):
                request = fleet.items[r, j]
                if kind != AR:
                    context = np.float64(work.context[request])
                    reading_s = readers[i, READ_S] * read_of(readers, i, context)
                    cached_s += reading_s
                    looks_s += look_s(readers, i, context, w, kind != DIFFUSION)
                    if kind == SPECULATIVE:
                        draft_cached_s += reading_s
                        draft_looks_s += look_s(readers, i, context, 1.0, True)
                    continue
                to_go = fleet.keys[r, j] - state[r, COUNTER]
                context = np.float64(prompt_tokens(request, work) + work.output[request] - 1 - to_go)
                read = read_of(readers, i, context)
                look = look_s(readers, i, context, 1.0, True)
                cached_s += readers[i, READ_S] * read
                looks_s += look
                if steps > 1 and (chunked or context < reach):
                    # it grows evenly to the next bend of what this sequence reads
                    if reach < np.inf:
                        steps = min(steps, np.int64(reach - read))
                    cached_step += readers[i, READ_S]
                    looks_step += look_s(readers, i, context + 1.0, 1.0, True) - look
    each_s = rules.alone[n]
    if prompts > 0 or kind == FULL or each_s == 0.0:
        if kind == FULL:
            for j in range(n):
                request = fleet.items[r, j]
                add_texts(rules, 1.0, np.float64(prompt_tokens(request, work) + work.output[request]))
        else:
            add_texts(rules, np.float64(n), w)
        each_s = rows_s(rules, rows + prompt_rows, rows + prompts) + scalars[SEQUENCE] * (n + prompts)
        if kind == SPECULATIVE and n > 0:
            no_texts(rules)
            add_texts(rules, np.float64(n), 1.0)
            drafting_s = rows_s(rules, np.float64(n), np.float64(n)) + scalars[SEQUENCE] * n
            each_s += rules.draft_share * drafting_s
        if prompts > 0:
            each_s += scalars[PROMPT]
        elif kind != FULL:
            rules.alone[n] = each_s
    if kind == SPECULATIVE:
        each_s += rules.draft_share * overlapped(draft_cached_s, draft_looks_s, scalars[OVERLAP])
    clock[r, EACH_S], clock[r, CACHED_S], clock[r, LOOKS_S] = each_s, cached_s, looks_s
    clock[r, CACHED_STEP], clock[r, LOOKS_STEP] = cached_step, looks_step
    state[r, STEPS] = steps
    clock[r, END] = clock[r, NOW] + (
        steps * each_s + growing_s(cached_s, cached_step, looks_s, looks_step, steps, scalars[OVERLAP])
    )


@compiled
def cut(r, at_s, fleet, exponent):
    """Shorten what is pending to the passes after which an arrival can be let in."""
    state, clock = fleet.state, fleet.clock
    each_s, cached_s, looks_s = clock[r, EACH_S], clock[r, CACHED_S], clock[r, LOOKS_S]
    cached_step, looks_step = clock[r, CACHED_STEP], clock[r, LOOKS_STEP]
    steps, gap = state[r, STEPS], at_s - clock[r, NOW]
    # were the growth even, gap = passes · mean + passes² · bend
    phase_s = overlapped(cached_s, looks_s, exponent)
    bend = phase_s * max(cached_step / cached_s, looks_step / looks_s) / 2.0 if cached_s * looks_s > 0.0 else 0.0
    mean_s = each_s + phase_s - bend
    passes = np.int64(np.ceil(2.0 * gap / (mean_s + np.sqrt(mean_s * mean_s + 4.0 * bend * gap))))
    passes = min(max(passes, np.int64(1)), steps)
    found = passes * each_s + growing_s(cached_s, cached_step, looks_s, looks_step, passes, exponent)
    while found < gap and passes < steps:
        found += each_s + overlapped(cached_s + passes * cached_step, looks_s + passes * looks_step, exponent)
        passes += 1
    while passes > 1:
        i = passes - 1
        shorter = found - each_s - overlapped(cached_s + i * cached_step, looks_s + i * looks_step, exponent)
        if shorter < gap:
            break
        found = shorter
        passes = i
    if passes < steps:
        state[r, STEPS] = passes
        clock[r, END] = clock[r, NOW] + found


@compiled
def verify(r, work, fleet, rules):
    """Take over the drafts that were accepted in one pass, of all answers under way."""
    state, items = fleet.state, fleet.items
    j = 0
    while j < state[r, RUNNING]:
        request = items[r, j]
        luck = uniform(rules.seed, request, work.draws[request])
        work.draws[request] += 1
        tokens = 1
        for i in range(rules.drafts):
            tokens += luck < rules.powers[i]
        work.left[request] -= tokens
        work.context[request] += tokens
        state[r, CONTEXT] += tokens
        if work.left[request] > 0:
            j += 1
            continue
        state[r, CONTEXT] -= work.context[request]
        state[r, RUNNING] -= 1
        items[r, j] = items[r, state[r, RUNNING]]
        leave(r, request, work, fleet, rules)


@compiled
def end_answers(r, work, fleet, rules):
    """End the blocks and answers whose passes are done."""
    state, keys, items = fleet.state, fleet.keys, fleet.items
    while state[r, RUNNING] > 0 and keys[r, 0] == state[r, COUNTER]:
        request = items[r, 0]
        pop(keys[r], items[r], state[r, RUNNING])
        state[r, RUNNING] -= 1
        if rules.kind == DIFFUSION:
            if work.first[request] == 0.0:
                work.first[request] = fleet.clock[r, NOW]
            state[r, CONTEXT] -= work.context[request]
            work.left[request] -= 1
            if work.left[request] > 0:
                work.context[request] += rules.block
                work.draws[request] += 1
                passes = passes_of_block(rules.seed, request, work.draws[request], rules.passes)
                start(r, request, work.context[request], passes, fleet)
                continue
        elif rules.kind == AR:
            state[r, CONTEXT] -= prompt_tokens(request, work) + work.output[request] - 1
        else:
            tokens = prompt_tokens(request, work) + work.output[request]
            state[r, CONTEXT] -= tokens
            state[r, WIDE] -= tokens * tokens
            work.first[request] = fleet.clock[r, NOW]
        leave(r, request, work, fleet, rules)


@compiled
def begin_answers(r, work, fleet, rules):
    """Begin the answers to prompts that have been read."""
    state = fleet.state
    for j in range(state[r, READING]):
        request = fleet.reads[r, j]
        prompt, answer = prompt_tokens(request, work), np.int64(work.output[request])
        if rules.kind == DIFFUSION:
            work.left[request] = (answer + rules.block - 1) // rules.block
            work.context[request] = prompt
            start(r, request, prompt, passes_of_block(rules.seed, request, 0, rules.passes), fleet)
            continue
        work.first[request] = fleet.clock[r, NOW]
        if answer == 1:
            leave(r, request, work, fleet, rules)
        elif rules.kind == AR:
            start(r, request, prompt, answer - 1, fleet)
        else:
            work.left[request] = answer - 1
            work.context[request] = prompt
            fleet.items[r, state[r, RUNNING]] = request
            state[r, RUNNING] += 1
            state[r, CONTEXT] += prompt
    state[r, READING] = 0


@compiled
def commit(r, work, fleet, rules):
    """Take the pending passes as done: tokens, blocks and answers that end with them."""
    state, clock, steps = fleet.state, fleet.clock, fleet.state[r, STEPS]
    begin, until = clock[r, NOW], clock[r, END]
    clock[r, NOW] = until
    if steps == 0:
        return
    clock[r, BUSY_S] += max(0.0, min(until, rules.to_s) - max(begin, rules.from_s))
    state[r, COUNTER] += steps
    if rules.kind == SPECULATIVE:
        verify(r, work, fleet, rules)
    else:
        if rules.kind == AR:
            state[r, CONTEXT] += steps * state[r, RUNNING]
        end_answers(r, work, fleet, rules)
    begin_answers(r, work, fleet, rules)


# --- All replicas --------------------------------------------------------------------------------


@compiled
def arrive(r, i, work, fleet, rules):
    """Put an arrival in the line of a replica, and wake the replica or shorten what it has pending."""
    state, clock = fleet.state, fleet.clock
    now = work.arrival[i]
    passed(r, now, fleet, rules)
    state[r, INSIDE] += 1
    state[r, WAITING] += 1
    if state[r, WAITING] > 1:
        work.following[state[r, TAIL]] = i
        state[r, TAIL] = i
        return
    state[r, HEAD], state[r, TAIL] = i, i
    if clock[r, END] == np.inf:
        clock[r, NOW], clock[r, END] = now, now
    elif (
        state[r, STEPS] > 1
        and state[r, HELD] < rules.slots
        and clock[r, RESERVED] + held_byte(i, work, rules) <= rules.memory_byte
    ):
        cut(r, now, fleet, rules.scalars[OVERLAP])


@compiled
def serve(begin, stop, drain, work, fleet, rules):
    """Serve the arrivals from one to another; at the end let everything inside finish."""
    state, clock = fleet.state, fleet.clock
    replicas = state.shape[0]
    for i in range(begin, stop):
        now, chosen = work.arrival[i], 0
        for r in range(replicas):
            while clock[r, END] < now:
                commit(r, work, fleet, rules)
                compose(r, work, fleet, rules)
            if state[r, INSIDE] < state[chosen, INSIDE]:
                chosen = r
        if rules.routing == RANDOM:
            chosen = min(np.int64(uniform(rules.seed, i, -1) * replicas), replicas - 1)
        arrive(chosen, i, work, fleet, rules)
    if drain:
        for r in range(replicas):
            while clock[r, END] < np.inf:
                commit(r, work, fleet, rules)
                compose(r, work, fleet, rules)
