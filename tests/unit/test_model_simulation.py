"""Simulated serving: the compiled loop against the plain rules, laws of queues, and the closed form in its domain."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs import InputError
from analysis.model import decoders, decoding
from analysis.model.simulation import Estimate, Requests, Run, Server, Traffic, compiled, serve, serve_runs
from analysis.model.simulation.compiled import growing_s, overlapped, uniform
from analysis.model.simulation.plain import serve_plainly
from analysis.model.simulation.plain import uniform as plain_uniform
from analysis.reference.efficiency import efficiency
from analysis.reference.model_config import shipped
from analysis.reference.specs import Decoder, Efficiency, Precision, Replica
from analysis.reference.tables import SNAPSHOT, accelerator

H100 = accelerator("h100-sxm", as_of=SNAPSHOT)
AR = Decoder.autoregressive()


def server(model: str = "llama-3.1-8b", gpus: int = 1, *, ideal: bool = False, weights: str = "fp8", **rules) -> Server:
    replica = Replica(shipped(model).architecture, Precision.of(weights), H100, gpus=gpus)
    return Server(replica, efficiency=Efficiency() if ideal else efficiency(replica), **rules)


LARGE = server("llama-3.1-70b", 8)
SMALL = server()
MIXED = server("gpt-oss-20b")
SKEWED = replace(MIXED, replica=replace(MIXED.replica, expert_skew=0.5))


# --- The compiled loop and the plain rules


def mixed(count: int, rate: float, *, seed: int = 3, longest: int = 2500) -> Requests:
    draw = np.random.default_rng(5)
    lengths = draw.integers(20, longest, 200), draw.integers(1, 60, 200), draw.integers(0, 2, 200) * 10
    return Traffic(*lengths).draw(rate_req_per_s=rate, count=count, seed=seed)


@pytest.mark.parametrize(
    ("its", "rate", "replicas"),
    [
        (LARGE, 30.0, 1),
        (server(ideal=True), 60.0, 2),
        (server(chunk_tokens=256), 40.0, 3),
        (server(slots=3, prompts_per_pass=1), 40.0, 2),
        (server(decoder=Decoder.speculative(acceptance=0.7, draft_length=4, draft_cost=0.05)), 40.0, 2),
        (server(decoder=Decoder.diffusion(block_tokens=32, passes=7.3)), 60.0, 2),
        (server(decoder=Decoder.diffusion(block_tokens=8, passes=4), slots=4, chunk_tokens=700), 60.0, 1),
        (server("llada-8b", decoder=Decoder.full_sequence(passes=16.5)), 8.0, 2),
        (server("gpt-oss-20b", chunk_tokens=300), 40.0, 1),
        (server("gpt-oss-20b", decoder=Decoder.speculative(acceptance=0.6, draft_length=2)), 40.0, 1),
        (SKEWED, 40.0, 1),
        (replace(SKEWED, decoder=Decoder.speculative(acceptance=0.6, draft_length=2, draft_cost=0.1)), 40.0, 1),
        (replace(SKEWED, decoder=Decoder.full_sequence(passes=5)), 20.0, 1),
        (server("deepseek-v3.2", 16, ideal=True), 40.0, 1),
        (server("deepseek-v3.2", 16, decoder=Decoder.diffusion(block_tokens=32, passes=4)), 20.0, 1),
    ],
    ids=lambda value: f"{value.decoder.kind}-{value.replica.architecture.name}" if isinstance(value, Server) else "",
)
def test_the_compiled_loop_agrees_with_the_plain_rules(its: Server, rate: float, replicas: int) -> None:
    """The plain rules take the time of each pass from the calibrated model itself, so this binds both."""
    requests = mixed(40, rate)
    first, end = serve_plainly(its, requests, replicas=replicas, seed=9)
    run = serve(its, requests, replicas=replicas, seed=9)
    latency = end - requests.arrival_s
    assert run.end_s == pytest.approx(end, abs=1e-9 * latency.min())
    assert run.first_s == pytest.approx(first, abs=1e-9 * latency.min())


def test_a_window_that_starts_anew_is_followed_through_its_bend() -> None:
    """Llama 4 reads its cache in chunks of 8,192 tokens: prompts end shortly before a chunk does."""
    requests = Requests(np.linspace(0.0, 0.5, 12), 8170 + np.arange(12), 30)
    its = server("llama-4-scout", 8)
    _, end = serve_plainly(its, requests)
    assert serve(its, requests).end_s == pytest.approx(end, rel=1e-9)


def test_memory_holds_requests_back_by_the_same_rule() -> None:
    """16 GB of weights in 24 % of 80 GiB leave room for ten requests of 3,000 tokens at 131 kB each."""
    roomy = server(weights="bf16")
    tight = replace(roomy, rule=replace(roomy.rule, share=0.24))
    requests = Requests(np.arange(30) * 1e-3, 3000 + 10 * np.arange(30), 60)
    _, end = serve_plainly(tight, requests)
    assert serve(tight, requests).end_s == pytest.approx(end, rel=1e-9)
    assert np.sort(end)[9] < np.sort(serve(roomy, requests).end_s)[0] < end[-1] / 1.2


def test_a_block_is_held_whole_however_short_its_answer() -> None:
    """The same memory with blocks of 1,024: 60 tokens take the room of 1,024, and 1,025 that of 2,048."""
    roomy = server(weights="bf16", decoder=Decoder.diffusion(block_tokens=1024, passes=4))
    tight = replace(roomy, rule=replace(roomy.rule, share=0.24))
    ends = {}
    for answer in (60, 1024, 1025, 2048):
        requests = Requests(np.arange(20) * 1e-3, 3000, answer)
        ends[answer] = serve_plainly(tight, requests)[1]
        assert serve(tight, requests).end_s == pytest.approx(ends[answer], rel=1e-9)
    assert ends[60] == pytest.approx(ends[1024], rel=1e-12)
    assert ends[1025] == pytest.approx(ends[2048], rel=1e-12)
    assert ends[60][-1] > serve(roomy, Requests(np.arange(20) * 1e-3, 3000, 60)).end_s[-1]


def test_requests_of_the_same_moment_share_the_pass() -> None:
    requests = Requests([1.0, 1.0, 1.0], 500, 5)
    _, end = serve_plainly(SMALL, requests)
    run = serve(SMALL, requests)
    assert run.end_s == pytest.approx(end, rel=1e-12)
    assert len(set(run.first_s.tolist())) == 1


@given(
    cached=st.floats(1e-6, 1e-2),
    looks=st.floats(1e-6, 1e-2),
    steps=st.tuples(st.floats(0.0, 1e-4), st.floats(0.0, 1e-4)),
    passes=st.integers(1, 400),
    exponent=st.sampled_from([1.0, 1.5, 2.0, 3.0, math.inf]),
)
def test_the_sum_over_growing_passes_is_the_sum(
    cached: float, looks: float, steps: tuple[float, float], passes: int, exponent: float
) -> None:
    direct = sum(overlapped(cached + i * steps[0], looks + i * steps[1], exponent) for i in range(passes))
    assert growing_s(cached, steps[0], looks, steps[1], passes, exponent) == pytest.approx(direct, rel=1e-10)


def test_both_draw_the_same_numbers() -> None:
    drawn = [uniform(seed, request, draw) for seed in (0, 7) for request in (0, 99) for draw in (-1, 3)]
    assert drawn == [plain_uniform(seed, request, draw) for seed in (0, 7) for request in (0, 99) for draw in (-1, 3)]
    assert np.mean([uniform(1, i, 0) for i in range(4000)]) == pytest.approx(0.5, abs=0.02)


def test_without_a_place_for_compiled_code_it_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba refuses to cache where neither the folder of the source nor the user's own can be written."""
    plain = compiled.numba.njit

    def njit(**options: object) -> object:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(compiled.numba, "njit", njit)
    assert compiled.compiled(lambda x: x + 1)(2) == 3


# --- What must hold for any server


@pytest.mark.parametrize("decoder", [AR, Decoder.diffusion(block_tokens=32, passes=8)], ids=lambda d: d.kind)
def test_a_request_alone_takes_the_floor(decoder: Decoder) -> None:
    """One request at a time: the latency of the closed form, whose context is the mean one."""
    its = replace(LARGE, decoder=decoder)
    floor = decoders.request_s(its.replica, decoder, input_tokens=1500, output_tokens=300, efficiency=its.efficiency)
    run = serve(its, Requests(np.arange(5) * 100.0, 1500, 300))
    assert run.mean_s() == pytest.approx(floor, rel=2e-4)


def test_accepted_drafts_yield_what_the_geometric_law_says() -> None:
    decoder = Decoder.speculative(acceptance=0.7, draft_length=4)
    its = replace(LARGE, decoder=decoder)
    run = serve(its, Requests(np.arange(200) * 100.0, 1000, 2000))
    cycles = run.passes / 200 - 1
    assert 1999 / cycles == pytest.approx(decoder.tokens_per_pass, rel=0.01)


def test_an_adaptive_number_of_passes_has_its_mean() -> None:
    its = replace(SMALL, decoder=Decoder.diffusion(block_tokens=32, passes=7.3))
    run = serve(its, Requests(np.arange(100) * 100.0, 1000, 320))
    assert (run.passes / 100 - 1) / 10 == pytest.approx(7.3, rel=0.01)


def test_the_first_token_is_there_after_the_prompt_and_the_first_block_after_its_passes() -> None:
    prompt = decoding.prefill_s(SMALL.replica, input_tokens=2000, efficiency=SMALL.efficiency)
    assert serve(SMALL, Requests([0.0], 2000, 50)).first_s[0] == pytest.approx(prompt, rel=1e-12)
    blocks = replace(SMALL, decoder=Decoder.diffusion(block_tokens=32, passes=4))
    one_block = decoders.cycle(
        SMALL.replica, blocks.decoder, batch=1, context_tokens=2000, efficiency=SMALL.efficiency
    ).cycle_s
    run = serve(blocks, Requests([0.0], 2000, 33))
    assert run.first_s[0] == pytest.approx(prompt + 4 * one_block, rel=1e-12)
    assert run.end_s[0] > run.first_s[0] + 4 * one_block


def test_cached_tokens_are_seen_and_not_computed() -> None:
    whole, mostly = (serve(SMALL, Requests([0.0], 4000, 1, cached)).end_s[0] for cached in (0, 3500))
    asked = decoding.prefill_s(SMALL.replica, input_tokens=4000, cached_tokens=3500, efficiency=SMALL.efficiency)
    assert mostly == pytest.approx(asked, rel=1e-12)
    assert mostly < whole / 3


def test_the_number_inside_is_the_integral_of_stays_and_obeys_littles_law() -> None:
    requests = Traffic(1500, 300, length_cv=0.5).draw(rate_req_per_s=4.0, count=40_000, seed=2)
    run = serve(LARGE, requests, replicas=2)
    begin, until = requests.arrival_s[run.counted][[0, -1]]
    stays = np.clip(np.minimum(run.end_s, until) - np.maximum(requests.arrival_s, begin), 0, None)
    assert run.inside == pytest.approx(stays.sum() / (until - begin), rel=1e-9)
    arrived = (run.counted.stop - run.counted.start - 1) / run.window_s
    assert run.inside == pytest.approx(arrived * run.mean_s(), rel=0.01)


def test_one_token_answers_one_at_a_time_are_the_single_server_queue() -> None:
    """Poisson arrivals, equal jobs: the mean wait is rho S / (2 (1 - rho)), exact."""
    single = replace(SMALL, slots=1)
    job = float(decoding.prefill_s(SMALL.replica, input_tokens=2000, efficiency=SMALL.efficiency))
    found = serve_runs(single, Traffic(2000, 1), rate_req_per_s=0.6 / job, count=60_000, runs=5, seed=1)
    mean = found.mean_s()
    exact = job + 0.6 * job / (2 * 0.4)
    assert mean.value == pytest.approx(exact, rel=0.02)
    assert mean.low <= exact <= mean.high


def test_busy_is_not_load() -> None:
    """A large model at a tenth of its load already computes most of the time."""
    sat = decoders.saturated_req_per_s(
        LARGE.replica, AR, input_tokens=1500, output_tokens=300, slots=256, efficiency=LARGE.efficiency
    )
    run = serve(LARGE, Traffic(1500, 300).draw(rate_req_per_s=sat / 10, count=4000, seed=1))
    assert run.busy > 0.8


# --- The closed form in its domain


def closed(its: Server, rate: float, *, prompt: float, answer: float) -> tuple[float, float, float]:
    """Mean, 95th percentile and load of the closed form: alpha = t(1), beta = t(2) - t(1)."""
    one, two = (
        decoders.served(its.replica, AR, batch=n, input_tokens=prompt, output_tokens=answer, efficiency=its.efficiency)
        for n in (1.0, 2.0)
    )
    floor, beta, p = one.request_s, two.cycle_s - one.cycle_s, one.prompt_s
    load = rate * (answer * beta + p)
    mean = floor / (1 - load)
    variance = rate * mean * (2 / 3 * (answer * beta) ** 2 + p**2 + answer * beta * p) / (1 - load) ** 2
    spread = math.log1p(variance / mean**2)
    return mean, mean * math.exp(1.6448536 * math.sqrt(spread) - spread / 2), load


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.4])
@pytest.mark.parametrize(("model", "gpus", "tokens"), [("llama-3.1-8b", 1, 1000.0), ("llama-3.1-70b", 8, 3000.0)])
def test_the_closed_form_holds_in_its_domain(model: str, gpus: int, tokens: float, share: float) -> None:
    """Mean within 2 % up to a load of 0.4, 95th percentile within 3 % up to 0.3, where these hold.

    Prompts cost at most 2 % of the floor, one of them a pass, and are several times the ridge batch, so that what
    they add does not depend on the others; concurrency stays below half the ridge batch and below the memory.
    """
    its = server(model, gpus, ideal=True, weights="bf16", prompts_per_pass=1)
    _, _, unit = closed(its, 1.0, prompt=tokens, answer=tokens)
    rate = share / unit
    mean, p95, load = closed(its, rate, prompt=tokens, answer=tokens)
    assert load == pytest.approx(share)
    alone = decoders.served(its.replica, AR, batch=1.0, input_tokens=tokens, output_tokens=tokens)
    ridge = H100.peak("bf16") / H100.mem_bw_byte_per_s
    assert alone.prompt_s < 0.02 * alone.request_s
    assert rate * mean < ridge / 2 < tokens / 3
    found = serve_runs(its, Traffic(tokens, tokens), rate_req_per_s=rate, count=15_000, runs=3, seed=4)
    assert found.mean_s().value == pytest.approx(mean, rel=0.02)
    if share <= 0.3:
        assert found.percentile_s(95).value == pytest.approx(p95, rel=0.03)


# --- Orders that must hold


def test_burstier_arrivals_wait_longer() -> None:
    found = [
        serve_runs(SMALL, Traffic(1500, 100, arrival_cv=cv), rate_req_per_s=12.0, count=8_000, seed=3).percentile_s(95)
        for cv in (1.0, 2.0, 4.0)
    ]
    for calmer, wilder in pairwise(found):
        assert wilder.high >= calmer.low
    assert found[-1].value > found[0].value


def test_a_higher_rate_of_the_same_arrivals_is_slower() -> None:
    """One sequence of arrivals for each seed, compressed: means grow without noise."""
    means = [
        serve(SMALL, Traffic(1500, 100).draw(rate_req_per_s=rate, count=3_000, seed=3)).mean_s()
        for rate in (2.0, 4.0, 6.0, 8.0)
    ]
    assert means == sorted(means)


def test_shortest_queue_beats_chance() -> None:
    requests = Traffic(1500, 100).draw(rate_req_per_s=40.0, count=5_000, seed=3)
    shortest, chance = (serve(SMALL, requests, replicas=4, routing=how) for how in ("shortest", "random"))
    assert shortest.percentile_s(95) < chance.percentile_s(95)


# --- Draws


def test_the_seed_fixes_everything_and_the_rate_only_scales() -> None:
    traffic = Traffic(1500, 300, arrival_cv=2.0, length_cv=0.5)
    slow, fast, other = (traffic.draw(rate_req_per_s=r, count=500, seed=s) for r, s in ((1.0, 1), (4.0, 1), (1.0, 2)))
    assert slow.arrival_s == pytest.approx(4 * fast.arrival_s)
    assert np.array_equal(slow.output_tokens, fast.output_tokens)
    assert not np.array_equal(slow.arrival_s, other.arrival_s)
    runs = [serve_runs(SMALL, traffic, rate_req_per_s=2.0, count=500, runs=2, seed=8).mean_s() for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 3.0])
def test_gaps_have_their_mean_and_spread(cv: float) -> None:
    gaps = np.diff(Traffic(arrival_cv=cv).draw(rate_req_per_s=2.0, count=200_000, seed=1).arrival_s)
    assert gaps.mean() == pytest.approx(0.5, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03, abs=1e-9)


def test_lengths_have_their_mean_and_spread() -> None:
    drawn = Traffic(2000, 300, 1000, length_cv=0.8).draw(rate_req_per_s=1.0, count=100_000, seed=1)
    for tokens, mean in ((drawn.input_tokens, 2000), (drawn.output_tokens, 300), (drawn.cached_tokens, 1000)):
        assert tokens.mean() == pytest.approx(mean, rel=0.02)
        assert tokens.std() / tokens.mean() == pytest.approx(0.8, rel=0.03)


def test_samples_are_drawn_together() -> None:
    drawn = Traffic([100, 2000], [10, 200]).draw(rate_req_per_s=1.0, count=1000, seed=1)
    assert set(zip(drawn.input_tokens.tolist(), drawn.output_tokens.tolist(), strict=True)) == {(100, 10), (2000, 200)}


def test_a_day_has_its_profile() -> None:
    """Three windows with rates 1:2:3 hold a sixth, a third and half of the arrivals, day after day."""
    traffic = Traffic(profile=[1.0, 2.0, 3.0], day_s=300.0)
    drawn = traffic.draw(rate_req_per_s=50.0, count=60_000, seed=1)
    shares = np.bincount((drawn.arrival_s % 300 // 100).astype(int)) / len(drawn)
    assert shares == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.01)
    assert drawn.rate_req_per_s == pytest.approx(50, rel=0.02)


def test_a_trace_is_replayed_as_it_was() -> None:
    trace = Requests([5.0, 6.0, 9.0], [10, 20, 30], [1, 2, 3])
    drawn = Traffic(trace=trace).draw(rate_req_per_s=1.0, count=99, seed=0)
    assert drawn.arrival_s.tolist() == [0.0, 0.5, 2.0]
    assert drawn.input_tokens.tolist() == [10, 20, 30]


# --- Answers


def test_metrics_of_a_run() -> None:
    requests = Requests([0.0, 10.0], 100, [11, 1])
    run = Run(requests, np.array([1.0, 10.5]), np.array([3.0, 10.5]), slice(0, 2), 0.1, 0.1, 12, 1)
    assert run.times_s("e2e").tolist() == [3.0, 0.5]
    assert run.times_s("ttft").tolist() == [1.0, 0.5]
    assert run.times_s("tpot").tolist() == [0.2]
    assert run.goodput(1.0) == 0.5


def test_an_interval_is_students() -> None:
    """Means 1, 2, 3: half width 4.3027 / sqrt(3)."""
    found = Estimate.of([1.0, 2.0, 3.0])
    assert (found.value, found.high - found.value) == (2.0, pytest.approx(4.302653 / math.sqrt(3), rel=1e-6))


def test_progress_is_told_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.model.simulation.serving.REPORT", 300)
    requests = Traffic(500, 50).draw(rate_req_per_s=10.0, count=1000, seed=1)
    told: list[tuple[int, int]] = []
    run = serve(SMALL, requests, progress=lambda done, of: told.append((done, of)))
    assert told == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]
    assert np.array_equal(run.end_s, serve(SMALL, requests).end_s)


# --- Refusals


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Requests([], 1, 1), "arrival_s: got nothing"),
        (lambda: Requests([1.0, 0.5], 10, 10), "request 2: got 0.5, expected 1 or later"),
        (lambda: Requests([0.0, math.nan], 10, 10), "arrival_s: got nan"),
        (lambda: Requests([0.0], 10.5, 10), "input_tokens: got 10.5"),
        (lambda: Requests([0.0], 10, 0), "output_tokens: got 0"),
        (lambda: Requests([0.0], 10, 1, 10), "cached_tokens: got 10"),
        (lambda: Requests([0.0, 1.0], [10, 20, 30], 10), "input_tokens: got 3"),
        (lambda: server(slots=0), "slots: got 0"),
        (lambda: Traffic(10, 10).draw(rate_req_per_s=0.0, count=10, seed=0), "rate_req_per_s: got 0"),
        (lambda: Traffic(10, 10, arrival_cv=-1).draw(rate_req_per_s=1, count=10, seed=0), "arrival_cv: got -1"),
        (lambda: serve(SMALL, Requests([0.0], 4_000_000, 10)), "input_tokens + output_tokens: got 4000010"),
        (lambda: serve(server("llama-3.1-405b"), Requests([0.0], 10, 10)), "gpus: got 1"),
        (lambda: serve(SMALL, Requests([0.0], 10, 10), routing="best"), "routing: got 'best'"),
        (lambda: serve(SMALL, Requests([0.0], 10, 10)).times_s("itl"), "metric: got 'itl'"),
        (
            lambda: serve_runs(SMALL, Traffic(100, 10), rate_req_per_s=5, count=100).percentile_s(99),
            "requests: got 90, expected at least 1000",
        ),
        (
            lambda: serve_runs(SMALL, Traffic(2000, 200), rate_req_per_s=500, count=500),
            "requests: got 500, expected a run of at least ten mean latencies",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, named: str) -> None:
    with pytest.raises(InputError) as refusal:
        make()
    assert named in str(refusal.value)


# --- Before a release


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_any_server_agrees_with_the_plain_rules(seed: int) -> None:
    draw = np.random.default_rng(seed)
    decoder = [
        AR,
        Decoder.speculative(acceptance=draw.uniform(0, 1), draft_length=int(draw.integers(1, 7)), draft_cost=0.1),
        Decoder.diffusion(block_tokens=int(draw.integers(1, 65)), passes=draw.uniform(1, 20)),
        Decoder.full_sequence(passes=draw.uniform(1, 20)),
    ][seed % 4]
    model, gpus = [("llama-3.1-8b", 1), ("gpt-oss-20b", 1), ("gemma-4-31b", 4), ("deepseek-v2-lite", 2)][seed // 4 % 4]
    its = server(
        model,
        gpus,
        ideal=bool(draw.integers(2)),
        decoder=decoder,
        slots=int(draw.integers(1, 40)),
        chunk_tokens=int(draw.integers(50, 5000)),
        prompts_per_pass=int(draw.integers(1, 5)),
    )
    requests = mixed(40, draw.uniform(5, 100), seed=seed, longest=9000)
    replicas = int(draw.integers(1, 5))
    first, end = serve_plainly(its, requests, replicas=replicas, seed=seed)
    run = serve(its, requests, replicas=replicas, seed=seed)
    latency = end - requests.arrival_s
    assert run.end_s == pytest.approx(end, abs=1e-9 * latency.min())
    assert run.first_s == pytest.approx(first, abs=1e-9 * latency.min())
