"""The command ``capacity``: the keys of its contract, its identity, and one line for what it can't answer."""

import json

import pytest

from analysis.cli import main

NODE = ["--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--gpus", "8", "--tp", "8", "--node-usd-per-hour", "55.04"]
LOAD = ["--rate-req-per-s", "5", "--input-tokens", "1500", "--output-tokens", "300", "--percentile", "95"]
KEYS = {
    "feasible",
    "latency_floor_s",
    "nodes",
    "load",
    "busy",
    "lambda_sat_req_per_s",
    "u_day",
    "u_integer",
    "u_latency",
    "u_goodput",
    "utilization",
    "latency_p50_s",
    "latency_p95_s",
    "latency_p99_s",
    "saturated_usd_per_mtok",
    "cost_usd_per_mtok",
    "feasible_shapes",
}
NULL_WHERE_INFEASIBLE = KEYS - {"feasible", "latency_floor_s", "lambda_sat_req_per_s", "feasible_shapes"}


def answer(capsys, *arguments):
    assert main(["capacity", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert main(["capacity", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err.removeprefix("error: ").strip()


def test_keys_of_the_contract_and_the_exact_identity(capsys):
    found = answer(capsys, *NODE, *LOAD, "--budget-s", "6")
    assert set(found) >= KEYS
    product = found["u_day"] * found["u_integer"] * found["u_latency"] * found["u_goodput"]
    assert found["utilization"] == pytest.approx(product, rel=1e-12)
    assert found["cost_usd_per_mtok"] == pytest.approx(found["saturated_usd_per_mtok"] / product, rel=1e-12)
    assert found["saturated_usd_per_mtok"] == pytest.approx(
        1e6 * 55.04 / (3600 * found["lambda_sat_req_per_s"] * 300), rel=1e-12
    )
    assert found["latency_p50_s"] < found["latency_p95_s"] < found["latency_p99_s"]
    assert found["load"] < found["busy"]


def test_infeasible_is_an_answer_and_names_the_shapes_that_can(capsys):
    found = answer(capsys, *NODE, *LOAD, "--budget-s", "1")
    assert found["feasible"] is False
    assert 2.3 < found["latency_floor_s"] < 4.5
    assert {found[key] for key in NULL_WHERE_INFEASIBLE} == {None}
    assert found["feasible_shapes"] == []
    narrow = [
        "--model",
        "llama-3.1-8b",
        "--gpu",
        "h100-sxm",
        "--gpus",
        "8",
        "--tp",
        "1",
        "--node-usd-per-hour",
        "55.04",
    ]
    other = answer(capsys, *narrow, *LOAD, "--budget-s", "1.3")
    assert other["feasible"] is False
    assert {shape["tp"] for shape in other["feasible_shapes"]} >= {8}
    assert main(["capacity", *NODE, *LOAD, "--budget-s", "1"]) == 0
    assert "infeasible" in capsys.readouterr().out


def test_published_targets_that_contradict_each_other_are_not_kept_together(capsys):
    """600 ms to the first token and 40 ms for each of 200 others can be kept by a card, 4 s for the whole cannot.

    https://kevinluzbetak.com/Design/AI_Systems/LLM-Inference-Service.html wants all three of a 70B model in 8 bit;
    0.6 + 200 x 0.04 is 8.6 s.
    """
    card = ["--model", "llama-3.3-70b", "--weights", "fp8", "--kv", "fp8", "--gpu", "h100-sxm", "--gpus", "1"]
    load = ["--rate-req-per-s", "0.05", "--input-tokens", "500", "--output-tokens", "200", "--percentile", "95"]
    targets = {("ttft", "0.6"): True, ("tpot", "0.04"): True, ("e2e", "8.6"): True, ("e2e", "4"): False}
    for (metric, budget), kept in targets.items():
        words = [*card, "--node-usd-per-hour", "3", *load, "--metric", metric, "--budget-s", budget]
        assert answer(capsys, *words)["feasible"] is kept, metric


@pytest.mark.parametrize("tp", [["--tp", "8"], []], ids=["one shape", "any shape"])
def test_the_printed_floor_is_where_it_ends(capsys, tp):
    node = [word for word in NODE if word not in ("--tp", "8")]
    node = [*node[:4], "--gpus", "8", "--node-usd-per-hour", "55.04", *tp]
    floor = answer(capsys, *node, *LOAD, "--budget-s", "1000")["latency_floor_s"]
    below, above = (answer(capsys, *node, *LOAD, "--budget-s", str(x * floor)) for x in (0.99, 1.5))
    assert (below["feasible"], below["nodes"]) == (False, None)
    assert above["nodes"] >= 1


def test_decoders_metrics_spares_and_a_named_node(capsys):
    small = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--gpus", "8", "--node", "p5.48xlarge"]
    diffusion = answer(
        capsys, *small, *LOAD, "--budget-s", "1", "--decoder", "diffusion", "--block", "32", "--passes", "8"
    )
    assert (diffusion["decoder"], diffusion["tp"] * diffusion["replicas"]) == ("diffusion", 8)
    assert diffusion["cheapest_node"]["usd_per_hour"] < diffusion["nodes"] * diffusion["price_usd_per_node_hour"]
    drafts = ["--decoder", "speculative", "--acceptance", "0.7", "--draft-length", "3"]
    tokens = answer(capsys, *small, *LOAD, "--budget-s", "0.05", "--metric", "tpot", *drafts, "--spares", "1")
    assert tokens["latency_floor_s"] < 0.02
    assert (tokens["spares"], tokens["nodes"]) == (1, 2)


def test_what_does_not_fit_says_so(capsys):
    found = answer(capsys, *NODE, *[w.replace("1500", "200000") for w in LOAD], "--budget-s", "1000")
    assert found["feasible"] is False
    assert "the model's context of 131,072" in found["reason"]


def test_more_nodes_than_anybody_has_are_no_answer(capsys):
    found = answer(capsys, *NODE, *["1e308" if word == "5" else word for word in LOAD], "--budget-s", "6")
    assert (found["feasible"], found["nodes"]) == (False, None)
    assert found["reason"] == "more than 1,000,000,000 nodes would be needed"


@pytest.mark.parametrize(
    "idle", [("--region", "us-east-1"), ("--term", "on-demand"), ("--as-of", "2020"), ("--as-of", "2026-07-20")]
)
def test_what_narrows_a_price_of_the_tables_is_refused_beside_a_typed_one(capsys, idle):
    line = refused(capsys, *NODE, *LOAD, "--budget-s", "6", *idle)
    assert line.startswith(f"{idle[0]}: got '")
    assert line.endswith("expected no such option with --node-usd-per-hour: the typed price is the price")


@pytest.mark.parametrize(
    ("day", "line"),
    [
        ("2020", "--node: got 'p5.48xlarge', expected one in node_prices as of 2020-12-31: there is none"),
        ("2023-08", "--term: got 'on-demand', expected one in node_prices as of 2023-08-31: reserved-1yr-estimate"),
    ],
)
def test_a_node_without_a_price_on_that_day_is_refused(capsys, day, line):
    named = [*NODE[:-2], "--node", "p5.48xlarge", "--as-of", day]
    assert refused(capsys, *named, *LOAD, "--budget-s", "6").startswith(line)


def test_outside_the_domain_there_are_no_percentiles(capsys):
    """Bursty arrivals: a count by extrapolation, and no percentile that nothing was compared with."""
    found = answer(capsys, *NODE, *LOAD, "--budget-s", "6", "--cv", "3")
    assert found["nodes"] >= answer(capsys, *NODE, *LOAD, "--budget-s", "6")["nodes"]
    assert found["extrapolated"] is True
    assert [found[f"latency_p{q}_s"] for q in (50, 95, 99)] == [None] * 3


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("5", "0", "--rate-req-per-s: got '0', expected a number above 0"),
        ("300", "0", "--output-tokens: got '0', expected a number, 1 or above"),
        ("95", "0", "--percentile: got '0', expected a number above 0 and below 100"),
        ("95", "100", "--percentile: got '100', expected a number above 0 and below 100"),
        ("95", "nan", "--percentile: got 'nan', expected a number above 0 and below 100"),
    ],
)
def test_impossible_numbers_get_one_line(capsys, old, new, line):
    load = [new if word == old else word for word in LOAD]
    assert refused(capsys, *NODE, *load, "--budget-s", "6").replace(f"got {float(new)}", f"got '{new}'") == line


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--budget-s", "-1"], "--budget-s: got -1.0, expected a number above 0"),
        (["--budget-s", "6", "--cached-tokens", "1500"], "--cached-tokens: got 1500.0"),
        (["--budget-s", "6", "--spares", "0.5"], "--spares: got 0.5, expected a whole number, 0 or above"),
        (["--budget-s", "6", "--spares", "1e308"], "--spares: got 1e+308, expected at most 1,000,000,000"),
        (["--budget-s", "6", "--block", "32"], "--block: got 32.0"),
        (["--budget-s", "6", "--node", "p5.48xlarge"], "--node or --node-usd-per-hour: got both"),
    ],
)
def test_impossible_options_get_one_line(capsys, more, line):
    assert refused(capsys, *NODE, *LOAD, *more).startswith(line)


def test_a_node_with_other_gpus_is_refused(capsys):
    work = [*LOAD, "--budget-s", "6", "--node", "p5.48xlarge"]
    four = ["--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--gpus", "4"]
    h200 = ["--model", "llama-3.1-70b", "--gpu", "h200-sxm", "--gpus", "8"]
    assert refused(capsys, *four, *work) == "--gpus: got 4, expected 8, as p5.48xlarge has"
    assert refused(capsys, *h200, *work) == "--gpu: got 'h200-sxm', expected h100-sxm, which p5.48xlarge has"


@pytest.mark.parametrize(
    ("rows", "said"), [(["0,100,10"], "one request"), (["0,100,10", "0,90,10", "0,80,10"], "3 requests at one moment")]
)
def test_a_trace_without_any_time_is_refused_by_its_file(capsys, tmp_path, rows, said):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens", *rows]) + "\n")
    line = refused(
        capsys,
        *NODE,
        "--rate-req-per-s",
        "1",
        "--budget-s",
        "6",
        "--percentile",
        "95",
        "--method",
        "simulation",
        "--trace",
        str(path),
    )
    assert line.endswith(f"trace.csv: got {said}, expected requests at different times")


def test_a_trace_is_replayed_with_its_lengths(capsys, tmp_path):
    """Few requests of a small model: an answer with all keys, no mean of the closed form among them."""
    rows = ["arrival_s,input_tokens,output_tokens", *(f"{i / 2},400,{40 + i % 20}" for i in range(600))]
    (tmp_path / "trace.csv").write_text("\n".join(rows) + "\n")
    small = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--gpus", "1", "--node-usd-per-hour", "4"]
    ask = ["--rate-req-per-s", "2", "--percentile", "95", "--budget-s", "2", "--method", "simulation"]
    trace = ["--trace", str(tmp_path / "trace.csv")]
    found = answer(capsys, *small, *ask, *trace)
    line = refused(capsys, *small, *ask, *trace, "--seed", "1")
    assert line == "--seed: got 1.0, expected no such option with --trace and --decoder ar: nothing is drawn"
    drafts = ["--decoder", "speculative", "--acceptance", "0.7", "--draft-length", "3"]
    assert answer(capsys, *small, *ask, *trace, *drafts, "--seed", "1")["feasible"]
    assert set(found) >= KEYS
    assert found["output_tokens"] == pytest.approx(49.5)
    assert found["nodes"] == 1
    product = found["u_day"] * found["u_integer"] * found["u_latency"] * found["u_goodput"]
    assert found["cost_usd_per_mtok"] == pytest.approx(found["saturated_usd_per_mtok"] / product, rel=1e-9)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--trace", "x.csv"], "--trace: got 'x.csv', expected --method simulation beside it"),
        (["--seed", "1"], "--seed: got 1.0, expected --method simulation beside it"),
        (["--trace", "x.csv", "--method", "simulation", "--cv", "2"], "--cv: got 2.0, expected nothing beside --trace"),
        (["--trace", "none.csv", "--method", "simulation"], "none.csv: got No such file or directory"),
    ],
)
def test_what_only_a_simulation_can_use_is_refused_without_one(capsys, more, line):
    assert refused(capsys, *NODE, *LOAD, "--budget-s", "6", *more).startswith(line)


def test_lengths_are_needed_without_a_trace(capsys):
    ask = ["--rate-req-per-s", "5", "--percentile", "95", "--budget-s", "6"]
    assert refused(capsys, *NODE, *ask) == "--input-tokens: got nothing, expected tokens of the prompt"
    assert (
        refused(capsys, *NODE, *ask, "--input-tokens", "9")
        == "--output-tokens: got nothing, expected tokens of the answer"
    )


def test_a_simulation_keeps_the_limit_of_the_model_and_takes_high_percentiles(capsys):
    small = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--gpus", "1", "--node-usd-per-hour", "3"]
    ask = ["--rate-req-per-s", "1", "--output-tokens", "50", "--budget-s", "60", "--method", "simulation"]
    found = answer(capsys, *small, *ask, "--percentile", "95", "--input-tokens", "150000")
    assert found["feasible"] is False
    assert "exceed the model's context of 131,072" in found["reason"]
    assert answer(capsys, *small, *ask, "--percentile", "99.99", "--input-tokens", "500")["nodes"] == 1
