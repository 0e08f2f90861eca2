"""The command line keeps its contract: answers on stdout, one line and exit 2 for everything else."""

import json
import subprocess
import sys

import pytest

from analysis.cli import main

IDENTITY = ["--node-usd-per-hour", "33", "--tok-per-s", "3000", "--token-kind", "output"]


def refused(capsys, *arguments):
    """Run a command that must be refused; return its one line."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").strip()


def answer(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_cost_of_a_million_tokens(capsys):
    """33 dollars an hour over 3,000 tokens a second: 33e6 / 3600 / 3000."""
    assert main(["cost", *IDENTITY, "--utilization", "1"]) == 0
    assert capsys.readouterr().out == "3.0556 USD per million output tokens\n"
    found = answer(capsys, "cost", *IDENTITY, "--utilization", "1")
    assert found["cost_usd_per_mtok"] == pytest.approx(33e6 / 3600 / 3000, rel=1e-15)
    assert found["token_kind"] == "output"


@pytest.mark.parametrize(
    ("solve", "given", "key", "value"),
    [
        ("tok-per-s", ["--node-usd-per-hour", "36", "--utilization", "0.5"], "node_tok_per_s", 10_000),
        ("utilization", ["--node-usd-per-hour", "36", "--tok-per-s", "20000"], "utilization", 0.25),
        ("node-usd-per-hour", ["--tok-per-s", "1000", "--utilization", "0.5"], "price_usd_per_node_hour", 3.6),
    ],
)
def test_every_way_round(capsys, solve, given, key, value):
    found = answer(capsys, "cost", *given, "--token-kind", "total", "--solve", solve, "--usd-per-mtok", "2")
    assert found[key] == pytest.approx(value)
    assert found["token_kind"] == "total"


def test_a_cost_that_no_utilization_reaches_is_an_answer(capsys):
    found = answer(capsys, "cost", *IDENTITY, "--solve", "utilization", "--usd-per-mtok", "1")
    assert found["utilization"] == pytest.approx(3.0556, rel=1e-4)
    assert found["reachable"] is False


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--utilization", "1.2"], "--utilization: got 1.2, expected a fraction above 0 and at most 1"),
        (["--utilization", "0"], "--utilization: got 0.0, expected a fraction above 0 and at most 1"),
        (["--utilization", "nan"], "--utilization: got 'nan', expected a fraction above 0 and at most 1"),
        (["--utilization", "inf"], "--utilization: got 'inf', expected a fraction above 0 and at most 1"),
        (["--utilization", "half"], "--utilization: got 'half', expected a fraction above 0 and at most 1"),
        (["--utilization", ""], "--utilization: got nothing, expected a fraction above 0 and at most 1"),
        (["--utilization"], "--utilization: got nothing, expected a value after it"),
        ([], "--utilization: got nothing, expected a number"),
        (["--utilization", "1", "--node-usd-per-hour", "-3"], "--node-usd-per-hour: got -3.0, expected a number, 0 or"),
        (["--utilization", "1", "--tok-per-s", "0"], "--tok-per-s: got 0.0, expected a number above 0"),
        (["--utilization", "1", "--token-kind", "word"], "--token-kind: got 'word', expected output or input or total"),
        (["--utilization", "1", "--speed", "3"], "--speed: got an unknown option, expected"),
        (["--util", "1"], "--util: got an unknown option, expected --utilization"),
        (["--utilization", "1", "more"], "argument: got 'more', expected no more arguments"),
        (["--utilization", "1", "--usd-per-mtok", "3"], "--usd-per-mtok: got 3.0, expected --solve beside it"),
        (["--solve", "utilization"], "--usd-per-mtok: got nothing, expected a number"),
        (
            ["--solve", "utilization", "--usd-per-mtok", "3", "--utilization", "1"],
            "--utilization: got 1.0, expected nothing: it is what is solved for",
        ),
        (["--utilization", "1", "--as-of", "2026-13"], "--as-of: got '2026-13', expected an ISO date"),
        (["--utilization", "1", "--node", "p5.48xlarge"], "--node or --node-usd-per-hour: got both, expected one"),
    ],
)
def test_each_bad_input_gets_one_line(capsys, arguments, line):
    assert refused(capsys, "cost", *IDENTITY, *arguments).startswith(line)


def test_missing_price_and_missing_kind(capsys):
    line = refused(capsys, "cost", "--tok-per-s", "1", "--utilization", "1", "--token-kind", "output")
    assert line.startswith("--node or --node-usd-per-hour: got nothing, expected one of them")
    line = refused(capsys, "cost", "--tok-per-s", "1", "--utilization", "1")
    assert line.startswith("--token-kind: got nothing, expected ")


def test_unknown_and_missing_command(capsys):
    assert refused(capsys, "price").startswith("COMMAND: got 'price', expected claims or cost")
    assert refused(capsys).startswith("COMMAND: got nothing, expected claims or cost")


def test_named_node_says_whose_price_it_took(capsys):
    found = answer(
        capsys, "cost", "--node", "p5.48xlarge", "--tok-per-s", "3000", "--token-kind", "output", "--utilization", "1"
    )
    assert found["price_usd_per_node_hour"] == 55.04
    assert found["provider"] == "aws"
    assert found["cost_usd_per_mtok"] == pytest.approx(55.04e6 / 3600 / 3000)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--node", "p5.48xlarg"],
            "--node: got 'p5.48xlarg', expected one in node_prices as of 2026-07-20: p5.48xlarge",
        ),
        (["--node", "p5.48xlarge", "--region", "ap-southeast-1"], "--region: got 'ap-southeast-1', expected one in"),
        (["--node", "p5.48xlarge", "--term", "spit"], "--term: got 'spit', expected one in"),
        (["--node", "p5.48xlarge", "--as-of", "2001"], "--node: got 'p5.48xlarge', expected"),
    ],
)
def test_unknown_names_list_the_nearest(capsys, arguments, line):
    rest = ["--tok-per-s", "1", "--token-kind", "output", "--utilization", "1"]
    assert refused(capsys, "cost", *rest, *arguments).startswith(line)


KEYS = [
    "id",
    "paraphrase",
    "stated_in",
    "kind",
    "quantifier",
    "verdict",
    "close",
    "share_true",
    "share_undefined",
    "stated",
    "computed",
    "unit",
    "decided_by",
    "boundary",
    "chapter",
    "sources",
]


def test_claims_has_the_keys_of_the_contract(capsys):
    found = answer(capsys, "claims")
    assert [row["id"] for row in found] == sorted(row["id"] for row in found)
    for row in found:
        assert set(KEYS) <= row.keys()
    assert answer(capsys, "claims", "--only", "C36") == [row for row in found if row["id"] == "C36"]
    assert main(["claims"]) == 0
    assert "C36  by definition" in capsys.readouterr().out


def test_unknown_claim_lists_the_nearest(capsys):
    assert refused(capsys, "claims", "--only", "C360").startswith(
        "--only: got 'C360', expected a registered claim: C36"
    )


def test_as_a_process():
    """The module runs as `python -m analysis`, from any folder, with the same exit status."""
    run = subprocess.run(
        [sys.executable, "-m", "analysis", "cost", *IDENTITY, "--utilization", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "error: --utilization: got 2.0, expected a fraction above 0 and at most 1\n"


def test_a_reader_that_goes_away_is_no_error():
    run = subprocess.run(
        f"{sys.executable} -m analysis claims --json | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        executable="/bin/bash",
    )
    assert run.stderr == ""


def test_model_says_what_a_shipped_architecture_weighs(capsys):
    found = answer(capsys, "model", "llama-3.3-70b", "--context", "4096")
    assert found["params_total"] == found["params_active"] == 70_553_706_496
    assert found["weight_bytes"] == 141_107_412_992
    assert found["kv_bytes_per_token"] == 327_680
    assert found["kv_bytes_per_sequence"] == found["kv_bytes_per_sequence_reserved"] == 4096 * 327_680
    assert found["flop_per_token"] == 2 * found["params_matmul"]
    narrow = answer(capsys, "model", "llama-3.3-70b", "--weights", "fp8", "--kv", "int8", "--context", "4096")
    assert narrow["kv_bytes_per_sequence"] == found["kv_bytes_per_sequence"] / 2
    assert 0.5 < narrow["weight_bytes"] / found["weight_bytes"] < 0.52
    assert (narrow["weights"], narrow["kv"], narrow["compute"]) == ("fp8", "int8", "fp8")
    assert main(["model", "llama-4-scout"]) == 0
    assert "107,769,861,120 parameters" in capsys.readouterr().out


def test_model_keeps_the_released_format_unless_told(capsys):
    """MXFP4 is on the experts alone, and naming it does not spread it."""
    released, named = (
        answer(capsys, "model", "gpt-oss-20b"),
        answer(capsys, "model", "gpt-oss-20b", "--weights", "mxfp4"),
    )
    assert released == named
    assert released["weights"] == "mxfp4"
    assert released["weight_bytes"] < answer(capsys, "model", "gpt-oss-20b", "--weights", "bf16")["weight_bytes"] / 3


def test_model_reads_any_config_json(capsys, tmp_path):
    path = tmp_path / "mine.json"
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    path.write_text(json.dumps(config | {"intermediate_size": 128, "vocab_size": 1000, "vision_config": {"a": 1}}))
    found = answer(capsys, "model", str(path))
    assert found["params_total"] == 2 * 1000 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64
    assert found["left_out"] == ["vision_config"]
    assert main(["model", str(path)]) == 0
    assert capsys.readouterr().out.endswith("not counted: vision_config\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["model"], "NAME|CONFIG.json: got nothing"),
        (["model", "llama-3-8b"], "model: got 'llama-3-8b', expected a shipped architecture (llama-3.1-8b"),
        (["model", "nowhere/config.json"], "nowhere/config.json: got No such file or directory"),
        (["model", "phi-4", "--weights", "fp32"], "--weights: got 'fp32', expected bf16 or fp8"),
        (["model", "phi-4", "--kv", "int3"], "--kv: got 'int3', expected bf16 or fp8"),
        (["model", "phi-4", "--context", "0"], "--context: got 0.0, expected a whole number"),
        (["model", "phi-4", "--context", "nan"], "--context: got 'nan', expected a whole number"),
    ],
)
def test_model_refuses_in_one_line(capsys, arguments, line):
    assert refused(capsys, *arguments).startswith(line)
