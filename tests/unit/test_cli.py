"""The command line keeps its contract: answers on stdout, one line and exit 2 for everything else."""

import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest

from analysis.cli import cli, main
from analysis.evidence import cases
from analysis.inputs import InputError
from analysis.reference import efficiency, tables
from analysis.reference.model_config import replica
from analysis.reference.tables import DATA, NEWEST

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
    assert refused(capsys, "price").startswith("COMMAND: got 'price', expected breakeven or capacity or claims or cost")
    assert refused(capsys).startswith("COMMAND: got nothing, expected breakeven or capacity or claims or cost")
    assert refused(capsys, "prices").startswith("COMMAND: got nothing, expected check or import")


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
        (
            ["--node", "p5.48xlarge", "--as-of", "2001"],
            "--node: got 'p5.48xlarge', expected one in node_prices as of 2001-12-31: there is none",
        ),
    ],
)
def test_unknown_names_list_the_nearest(capsys, arguments, line):
    rest = ["--tok-per-s", "1", "--token-kind", "output", "--utilization", "1"]
    assert refused(capsys, "cost", *rest, *arguments).startswith(line)


PASS = ["--gpus", "8", "--batch", "1", "--context", "1"]


@pytest.mark.parametrize(
    ("arguments", "where", "kind"),
    [
        (["step", "--model", "foo", "--gpu", "h100-sxm", *PASS], "--model", "models"),
        (["step", "--model", "phi-4", "--gpu", "foo", *PASS], "--gpu", "gpus"),
        (["step", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", *PASS, "--engine", "foo"], "--engine", "engines"),
        (["model", "foo"], "model", "models"),
        (["cost", "--node", "foo", "--tok-per-s", "1", "--token-kind", "total", "--utilization", "1"],
         "--node", "nodes"),
        (["breakeven", "--node", "foo", "--ownership", "sunk", "--node-req-per-s", "1", "--api", "gpt-5",
          "--input-tokens", "1", "--output-tokens", "1"], "--node", "nodes"),
        (["breakeven", "--node-usd-per-hour", "1", "--node-req-per-s", "1", "--api", "foo",
          "--input-tokens", "1", "--output-tokens", "1"], "--api", "apis"),
    ],
)  # fmt: skip
def test_an_unknown_name_says_which_command_lists_the_known_ones(capsys, arguments, where, kind):
    line = refused(capsys, *arguments)
    assert line.startswith(f"{where}: got 'foo', expected ")
    assert line.endswith(f", or another that 'names {kind}' lists")
    assert answer(capsys, "names", kind)[kind]


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
    assert main(["claims", "--only", "C36"]) == 0
    assert "C36  by definition" in capsys.readouterr().out


def test_unknown_claim_lists_the_nearest(capsys):
    line = refused(capsys, "claims", "--only", "C360")
    assert line.startswith("--only: got 'C360', expected a registered claim: ")
    assert "C36" in line.rpartition(": ")[2].split(", ")


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
        f"{sys.executable} -m analysis names | head -c 1",
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


# --- own prices

BREAKEVEN = ["--node-req-per-s", "2", "--api", "gpt-5", "--input-tokens", "8000", "--output-tokens", "300"]
TYPED = [*BREAKEVEN, "--node-usd-per-hour", "36"]
NAMED = [*BREAKEVEN, "--node", "p5.48xlarge"]


@pytest.fixture
def price_file(tmp_path):
    def write(*lines):
        path = tmp_path / "ours.csv"
        path.write_text("\n".join(("instance,term,model,token_kind,quantity,value,unit", *lines, "")), encoding="utf-8")
        return str(path)

    return write


def test_breakeven_by_hand(capsys):
    """36 an hour over 7,200 requests is half a cent; 8,000 x 1.25 + 300 x 10 per million is 1.3 cents."""
    found = answer(capsys, "breakeven", *TYPED)
    assert found["owned_usd_per_request"] == pytest.approx(0.005)
    assert found["api_usd_per_request"] == pytest.approx(0.013)
    assert found["breakeven_utilization"] == pytest.approx(5 / 13)
    assert found["winner"] == "owned"
    assert found["api_ttft_s"] == 0.89
    idle = answer(capsys, "breakeven", *TYPED, "--utilization", "0.2")
    assert (idle["winner"], idle["owned_usd_per_request"]) == ("api", pytest.approx(0.025))
    assert main(["breakeven", *TYPED]) == 0
    assert "winner at 100% of the hour: owned; break-even at 0.3846 of the hour" in capsys.readouterr().out


def test_breakeven_bills_cached_hidden_and_batch_tokens(capsys):
    cached = answer(capsys, "breakeven", *TYPED, "--cached-tokens", "8000", "--thinking-tokens", "700")
    assert cached["api_usd_per_request"] == pytest.approx((8000 * 0.125 + 1000 * 10) / 1e6)
    newest = [*TYPED, "--as-of", "2026-11-20"]
    standard, batch = (answer(capsys, "breakeven", *newest, "--tier", tier) for tier in ("standard", "batch"))
    assert batch["api_usd_per_request"] == pytest.approx(standard["api_usd_per_request"] / 2)


def test_breakeven_by_the_way_to_have_the_node(capsys):
    """Rented at list price 55.04, reserved at the quoted 33, bought for under half, sunk for power."""
    price = {
        way: answer(capsys, "breakeven", *NAMED, "--ownership", way)["price_usd_per_node_hour"]
        for way in ("rent", "reserved", "bought", "sunk")
    }
    assert (price["rent"], price["reserved"]) == (55.04, 33)
    assert 5 < price["bought"] < 16
    assert price["sunk"] == pytest.approx(10.2 * 0.75 * 1.3 * 0.08)
    let = answer(capsys, "breakeven", *NAMED, "--ownership", "sunk", "--sublet-usd-per-hour", "15")
    assert let["price_usd_per_node_hour"] == pytest.approx(price["sunk"] + 15)


def test_breakeven_takes_the_cheapest_seller_or_the_named_one(capsys):
    llama = ["llama-3.3-70b" if word == "gpt-5" else word for word in TYPED]
    cheapest = answer(capsys, "breakeven", *llama)
    groq = answer(capsys, "breakeven", *llama, "--seller", "groq")
    assert cheapest["api_seller"] == "deepinfra"
    assert groq["api_usd_per_request"] == pytest.approx((8000 * 0.59 + 300 * 0.79) / 1e6)
    assert cheapest["api_usd_per_request"] < groq["api_usd_per_request"]
    assert cheapest["api_ttft_s"] is None


def test_breakeven_against_a_free_api_has_no_break_even(capsys, price_file):
    free = price_file(",,gpt-5,input,price,0,USD/Mtok", ",,gpt-5,output,price,0,USD/Mtok")
    found = answer(capsys, "breakeven", *TYPED, "--prices", free)
    assert (found["breakeven_utilization"], found["winner"], found["api_usd_per_request"]) == (None, "api", 0)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--cached-tokens", "9000"], "--cached-tokens: got 9000.0, expected at most the tokens of the prompt"),
        (["--api", "gpt-55"], "--api: got 'gpt-55', expected one in api_prices as of 2026-07-20: gpt-5"),
        (["--seller", "groq"], "--seller: got 'groq', expected one who sells gpt-5 in tier standard: openai"),
        (["--tier", "night"], "--tier: got 'night', expected one in api_prices"),
        (["--utilization", "0"], "--utilization: got 0.0, expected a fraction above 0 and at most 1"),
        (["--node-req-per-s", "0"], "--node-req-per-s: got 0.0, expected a number above 0"),
        (["--output-tokens", "0"], "--output-tokens: got 0.0, expected a number above 0"),
        (["--ownership", "steal"], "--ownership: got 'steal', expected rent or reserved or bought or sunk"),
        (["--node", "p5.48xlarge"], "--node or --node-usd-per-hour: got both, expected one"),
        (["--prices", "/nowhere.csv"], "/nowhere.csv: got No such file or directory, expected a readable file"),
    ],
)
def test_breakeven_refuses_in_one_line(capsys, arguments, line):
    assert refused(capsys, "breakeven", *TYPED, *arguments).startswith(line)


@pytest.mark.parametrize(
    ("node", "way", "line"),
    [
        ("p5.48xlarg", "bought", "--node: got 'p5.48xlarg', expected one in nodes as of 2026-07-20: p5.48xlarge"),
        ("p4d.24xlarge", "sunk", "--node: got 'p4d.24xlarge', expected a node like one that could be bought by"),
        ("p6-b200.48xlarge", "reserved", "--ownership: got 'reserved', expected a price of p6-b200.48xlarge with a"),
    ],
)
def test_a_node_that_cannot_be_had_that_way_is_refused(capsys, node, way, line):
    assert refused(capsys, "breakeven", *BREAKEVEN, "--node", node, "--ownership", way).startswith(line)


def test_own_prices_reach_every_command_that_reads_prices(capsys, price_file):
    ours = price_file("p5.48xlarge,,,,price,20,USD/node_hour", ",,gpt-5,output,price,8,USD/Mtok")
    found = answer(capsys, "breakeven", *NAMED, "--prices", ours)
    assert (found["price_usd_per_node_hour"], found["source"]) == (20, "own-prices")
    assert found["api_usd_per_request"] == pytest.approx((8000 * 1.25 + 300 * 8) / 1e6)
    words = ["--node", "p5.48xlarge", "--tok-per-s", "1000", "--token-kind", "output", "--utilization", "1"]
    assert answer(capsys, "cost", *words, "--prices", ours)["price_usd_per_node_hour"] == 20


def test_claims_with_own_prices_name_the_verdict_of_the_book(capsys, price_file):
    """A listed 45 for the plan of a year contradicts the quoted 33."""
    ours = price_file("p5.48xlarge,plan-1yr,,,price,45,USD/node_hour")
    (found,) = answer(capsys, "claims", "--only", "C40", "--prices", ours)
    assert (found["verdict"], found["verdict_book"]) == ("contradicted", "unsupported")
    assert main(["claims", "--only", "C40", "--prices", ours]) == 0
    assert "contradicted (the book: unsupported)" in capsys.readouterr().out
    (same,) = answer(capsys, "claims", "--only", "C36", "--prices", ours)
    assert same["verdict"] == same["verdict_book"]


@pytest.mark.soak
def test_the_ledger_survives_prices_that_are_all_alike_or_zero(capsys, price_file):
    for value in ("20", "0"):
        found = answer(capsys, "claims", "--prices", price_file(f"p5.48xlarge,,,,price,{value},USD/node_hour"))
        assert len(found) > 5


def test_prices_check_answers_in_full_and_exits_with_the_first_refusal(capsys, price_file):
    bad = price_file("p5.48xlarge,,,,price,6.88,USD/node_hour", "p5.48xlarge,spot,,,price,-1,USD/node_hour")
    assert main(["prices", "check", bad, "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == "error: ours.csv row 3, column value: got -1.0, expected a number, 0 or above\n"
    found = json.loads(out)
    assert [row["row"] for row in found["refused"]] == [3]
    assert found["flagged"][0]["reason"].startswith("looks like the price of one accelerator")
    assert found["rows"][0]["matches"] > 10


def test_prices_check_of_a_good_file_exits_with_success(capsys, price_file):
    good = price_file("p5.48xlarge,on-demand,,,price,41,USD/node_hour")
    assert main(["prices", "check", good]) == 0
    assert capsys.readouterr().out.startswith("row 2: p5.48xlarge on-demand price 41 USD/node_hour, ")
    assert answer(capsys, "prices", "check", good)["refused"] == []


def test_the_help_of_prices_check_shows_a_file_that_passes(capsys, tmp_path):
    assert main(["prices", "check", "--help"]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    path = tmp_path / "shown.csv"
    path.write_text("\n".join(line for line in shown if line.count(",") > 5) + "\n")
    found = answer(capsys, "prices", "check", str(path))
    assert (len(found["rows"]), found["refused"]) == (4, [])


def test_the_list_of_commands_shows_each_sentence_whole(capsys):
    for words in ([], ["prices"]):
        assert main([*words, "--help"]) == 0
        assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


@pytest.mark.parametrize("name", sorted(set(cli.commands) - {"prices", "measure-host"}))
def test_help_ends_with_an_example_that_runs(name, capsys, monkeypatch):
    """The example of a report takes minutes: the options of its line are parsed, and it is not run."""
    monkeypatch.chdir(DATA.parent)
    assert main([name, "--help"]) == 0
    (line,) = re.findall(r"For example:\n +python -m analysis (.*)", capsys.readouterr().out, re.DOTALL)
    words = line.replace("\\\n", " ").split()
    assert words[0] == name
    if name == "report":
        cli.commands[name].make_context(name, words[1:])
    else:
        assert main(words) == 0


def test_prices_check_of_no_file_and_of_an_empty_one(capsys, tmp_path):
    assert refused(capsys, "prices", "check", str(tmp_path / "no.csv")).startswith(str(tmp_path / "no.csv"))
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert refused(capsys, "prices", "check", str(empty)).startswith("empty.csv row 1: got nothing")


def test_a_bad_price_file_in_the_environment_is_one_line(capsys, monkeypatch, price_file):
    monkeypatch.setenv("ANALYSIS_PRICES", price_file("p5.48xlarge,,,,price,-1,USD/node_hour"))
    assert refused(capsys, "breakeven", *NAMED).startswith("ours.csv row 2, column value: got -1.0")
    assert refused(capsys, "claims", "--only", "C40").startswith("ours.csv row 2, column value: got -1.0")


# --- passes

NODE = ["--gpu", "h100-sxm", "--gpus", "8"]
STEP = ["step", "--model", "llama-3.1-70b", *NODE, "--batch", "1", "--context", "2048"]


def test_the_ideal_step_of_the_articles_node(capsys):
    found = answer(capsys, *STEP, "--ideal")
    assert found["step_s"] * 1e3 == pytest.approx(5.21, abs=0.005)
    assert found["floor_s"] == pytest.approx(found["step_s"], rel=1e-3)
    assert (found["kind"], found["bound"], found["tau"], found["fits"]) == ("ideal", "weights", 1, True)
    assert found["node_tok_per_s"] == pytest.approx(1 / found["step_s"])
    assert "nearest_measured" not in found


def test_the_calibrated_step_is_called_a_prediction_and_stands_beside_a_measurement(capsys):
    """Expected between 9.5 and 12.5 ms; the nearest row is 8-bit weights on the same node, 9.1 ms at four streams."""
    found = answer(capsys, *STEP)
    assert 9.5e-3 < found["step_s"] < 12.5e-3
    assert found["kind"] == "prediction"
    near = found["nearest_measured"]
    assert (near["weights"], near["gpus"], near["concurrency"]) == ("fp8", 8, 4)
    assert near["step_s"] == pytest.approx(9.1e-3, rel=0.01)
    assert near["predicted_s"] == pytest.approx(near["step_s"], rel=0.1)


def test_of_measurements_that_are_equally_near_the_one_of_the_asked_engine_is_named(monkeypatch):
    rows = cases.all_rows("measured")
    row = rows[rows["id"] == answer_id(engine="vllm")]
    twin = row.assign(id="twin", engine="sglang")
    monkeypatch.setattr(cases, "all_rows", lambda name: pd.concat([rows, twin], ignore_index=True))
    assert [answer_id(engine=engine) for engine in ("vllm", "sglang")] == [row["id"].item(), "twin"]


def answer_id(*, engine):
    one = replica("llama-3.1-70b", "h100-sxm", as_of=NEWEST, gpus=8)
    return cases.nearest_step(one, batch=1, engine=engine)["id"]


def test_a_damaged_table_is_not_blamed_on_the_gpu(capsys, monkeypatch):
    def accelerator(name, *, as_of):
        raise InputError("accelerators.csv row 219, column source", "nosource", "a key of sources.csv")

    monkeypatch.setattr(tables, "accelerator", accelerator)
    line = refused(capsys, *STEP)
    assert line == "accelerators.csv row 219, column source: got 'nosource', expected a key of sources.csv"


def test_a_group_without_constants_is_one_line(capsys, monkeypatch):
    groups = efficiency._groups() | {("accelerator", "h100-sxm"): "hoper"}
    monkeypatch.setattr(efficiency, "_groups", lambda: groups)
    line = refused(capsys, *STEP)
    assert line.startswith(
        "groups.csv, column group: got 'hoper', expected a group with constants, such as ada, ampere"
    )


def test_a_prompt_that_does_not_fit_is_told_as_a_step_is(capsys):
    huge = ["--model", "llama-3.1-405b", "--gpu", "h100-sxm", "--gpus", "1"]
    assert main(["prefill", *huge, "--prompt", "1500"]) == 0
    said = capsys.readouterr().out
    assert main(["step", *huge, "--batch", "1", "--context", "1500"]) == 0
    assert said.splitlines()[0] == capsys.readouterr().out.splitlines()[0]
    assert said.startswith("does not fit: memory holds 0 such sequences; times as if there were room\n")
    found = answer(capsys, "prefill", *huge, "--prompt", "1500")
    assert (found["fits"], found["max_batch"]) == (False, 0)
    assert answer(capsys, "prefill", "--model", "llama-3.1-8b", *huge[2:], "--prompt", "1500")["fits"]


def test_rates_of_a_node_count_all_its_replicas(capsys):
    one, four = (answer(capsys, *STEP, "--weights", "fp8", "--tp", tp) for tp in ("8", "2"))
    assert (one["replicas"], four["replicas"]) == (1, 4)
    assert four["node_tok_per_s"] == pytest.approx(4 / four["step_s"])
    assert four["stream_tok_per_s"] < one["stream_tok_per_s"]


@pytest.mark.parametrize(
    ("options", "reserved", "words"),
    [
        (["--ideal"], 0, "90% of each card, less weights"),
        ([], 3e9, "90% of each card, less weights and 3 GB of workspace"),
        (["--engine", "tensorrt-llm"], 3e9, "90% of what weights and 3 GB of workspace leave of each card"),
    ],
    ids=["ideal", "vllm", "tensorrt-llm"],
)
def test_a_step_says_how_memory_is_divided(capsys, options, reserved, words):
    found = answer(capsys, *STEP, *options)
    assert (found["usable_memory_share"], found["workspace_byte_per_gpu"]) == (0.9, reserved)
    assert main([*STEP, *options]) == 0
    assert f"memory holds {found['max_batch']} such sequences, by {words}\n" in capsys.readouterr().out


def test_reading_a_prompt(capsys):
    options = ["prefill", "--model", "llama-3.1-70b", *NODE, "--prompt", "2048"]
    ideal, found = answer(capsys, *options, "--ideal"), answer(capsys, *options)
    assert ideal["prefill_s"] * 1e3 == pytest.approx(36.1, abs=0.2)
    assert ideal["floor_s"] == pytest.approx(ideal["prefill_s"], rel=0.02)
    assert found["prefill_s"] > found["floor_s"]
    assert found["bound"] == "matmul"
    cached = answer(capsys, *options, "--cached", "1024")
    assert cached["prefill_s"] < found["prefill_s"]


def test_own_measurements_are_compared(capsys, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(
        "id,model,weights_dtype,gpu,n_gpus,tp,engine,batch_or_concurrency,input_tokens,output_tokens,metric,value\n"
        "a,llama-3.1-70b,fp8,h100-sxm,8,8,vllm,4,1024,1024,tpot_s,0.0091\n"
        "b,llama-3.1-70b,fp8,abacus,8,8,vllm,4,1024,1024,tpot_s,0.0091\n",
        encoding="utf-8",
    )
    found = answer(capsys, "validate", str(path))
    assert set(found["regimes"]) == {"batching_dense"}
    assert found["regimes"]["batching_dense"]["scored"] == 1
    assert [row["id"] for row in found["rows"]] == ["a"]
    assert found["rows"][0]["measured"] == 0.0091
    assert found["skipped"][0]["id"] == "b"
    assert "abacus" in found["skipped"][0]["reason"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*STEP, "--tp", "3"], "--tp: got 3, expected a divisor of the 8 GPUs"),
        ([*STEP[:-1], "-5"], "--context: got -5.0, expected a number, 0 or above"),
        (["step", "--model", "lama-3.1-70b", *NODE, "--batch", "1", "--context", "1"], "--model: got 'lama-3.1-70b'"),
        (["step", "--model", "llama-3.1-70b", "--gpu", "h100", "--gpus", "8", "--batch", "0", "--context", "1"],
         "--batch: got 0.0, expected a whole number, 1 or above"),
        (["step", "--model", "llama-3.1-70b", "--gpu", "h100-smx", "--gpus", "8", "--batch", "1", "--context", "1"],
         "--gpu: got 'h100-smx'"),
        ([*STEP, "--engine", "vlm"], "--engine: got 'vlm'"),
        (["step", "--model", "llama-3.1-70b", "--gpu", "tpu-v5e", "--gpus", "8", "--batch", "1", "--context", "1"],
         "--gpu (without --ideal): got 'tpu-v5e'"),
        (["prefill", "--model", "llama-3.1-70b", *NODE, "--prompt", "100", "--cached", "100"], "--cached: got 100.0"),
        (["step", "--model", "llama-3.1-70b", "--gpu", "h100-sxm", "--gpus", "6", "--batch", "1", "--context", "1"],
         "--tp: got 6.0"),
        (["validate", "absent.csv"], "absent.csv: got No such file"),
    ],
)  # fmt: skip
def test_passes_that_cannot_be_are_refused(capsys, arguments, line):
    assert refused(capsys, *arguments).startswith(line)


# --- what breaks other tools


def test_a_file_of_measurements_without_rows_scores_none(capsys, tmp_path):
    shipped = (DATA / "example_measurements.csv").read_text().splitlines()
    (tmp_path / "none.csv").write_text(shipped[0] + "\n")
    assert answer(capsys, "validate", str(tmp_path / "none.csv")) == {"regimes": {}, "rows": [], "skipped": []}


def test_a_ragged_row_or_a_column_twice_is_refused(capsys, tmp_path):
    header, row, *_ = (DATA / "example_measurements.csv").read_text().splitlines()
    path = tmp_path / "mine.csv"
    path.write_text(f"{header}\n{row},more\n")
    assert refused(capsys, "validate", str(path)).startswith("mine.csv row 2: got too many cells, expected ")
    path.write_text(f"{header},id\n{row},x\n")
    assert refused(capsys, "validate", str(path)).startswith("mine.csv row 1: got the column id twice")


@pytest.mark.parametrize("blank", ["weights_dtype", "n_gpus"])
def test_what_decides_a_time_has_no_default(capsys, tmp_path, blank):
    header, row, *_ = (DATA / "example_measurements.csv").read_text().splitlines()
    cells = row.split(",")
    cells[header.split(",").index(blank)] = ""
    (tmp_path / "mine.csv").write_text(f"{header}\n{','.join(cells)}\n")
    found = answer(capsys, "validate", str(tmp_path / "mine.csv"))
    assert found["rows"] == []
    assert found["skipped"][0]["reason"].startswith(f"{blank} is blank")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_result_beyond_floating_point_is_refused(capsys, as_json):
    words = ["--node-usd-per-hour", "1e308", "--tok-per-s", "1", "--token-kind", "output", "--utilization", "1"]
    assert refused(capsys, "cost", *words, *as_json).startswith("the answer: got a number beyond what a computer holds")


def test_a_number_too_small_to_be_told_from_zero_is_no_zero(capsys):
    words = ["--tok-per-s", "1", "--token-kind", "output", "--utilization", "1"]
    assert refused(capsys, "cost", *words, "--node-usd-per-hour", "1e-400").startswith(
        "--node-usd-per-hour: got '1e-400'"
    )
    assert answer(capsys, "cost", *words, "--node-usd-per-hour", "-0")["price_usd_per_node_hour"] == 0


@pytest.mark.parametrize("day", ["1900", "2024", "2025-06"])
def test_a_claim_says_that_its_data_begin_later(capsys, day):
    found = answer(capsys, "claims", "--as-of", day)
    absent = [row for row in found if row["decided_by"].startswith("no data on that day")]
    assert absent
    assert {row["verdict"] for row in absent} <= {"undefined", "unsupported"}


def test_names_from_outside_cannot_move_the_cursor(capsys, tmp_path):
    assert refused(capsys, "cost", "--\x1b[31mfo\no").startswith(r"--\x1b[31mfo\no: got an unknown option")
    assert refused(capsys, "prices", "check", str(tmp_path / "a\nb\x1b[2J.csv")).count("\x1b") == 0


@pytest.mark.parametrize(
    "command", [["prices", "check"], ["validate"], ["model"], ["prices", "import", "--out", "no.csv", "litellm"]]
)
def test_pipes_devices_and_folders_are_not_read(capsys, tmp_path, command):
    os.mkfifo(tmp_path / "pipe.json")
    assert "a pipe or a device" in refused(capsys, *command, str(tmp_path / "pipe.json"))
    (tmp_path / "folder.json").mkdir()
    assert "Is a directory" in refused(capsys, *command, str(tmp_path / "folder.json"))


def test_an_import_writes_over_neither_its_feed_nor_a_device(capsys, tmp_path):
    feed = tmp_path / "feed-2026-07-01.json"
    feed.write_text('{"gpt-5": {"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": 1e-06}}')
    (tmp_path / "there").mkdir()
    same = tmp_path / "there" / ".." / feed.name
    before = feed.read_bytes()
    assert refused(capsys, "prices", "import", "litellm", str(feed), "--out", str(same)).startswith("--out: got ")
    (tmp_path / "out.report.csv").mkdir()
    out = tmp_path / "out.csv"
    assert refused(capsys, "prices", "import", "litellm", str(feed), "--out", str(out)).startswith("--out: got ")
    assert refused(capsys, "prices", "import", "litellm", str(feed), "--out", os.devnull).startswith("--out: got ")
    assert feed.read_bytes() == before
    assert not out.exists()


def test_a_full_disk_behind_standard_output_is_one_line():
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "analysis", "claims", "--only", "C36"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith("error: output: got No space left on device")
    assert "Traceback" not in run.stderr


def test_a_forgiven_spelling_is_named_in_the_answer(capsys):
    words = ["--model", "llama-3-70b", "--gpu", "h100", "--gpus", "8", "--tp", "4"]
    for command in (["step", *words, "--batch", "1", "--context", "2048"], ["prefill", *words, "--prompt", "2048"]):
        found = answer(capsys, *command)
        assert (found["model"], found["gpu"], found["tp"], found["replicas"]) == ("llama-3.1-70b", "h100-sxm", 4, 2)
        assert main(command) == 0
        assert "this is llama-3.1-70b, weights bf16, cache bf16, on 2 x 4 h100-sxm" in capsys.readouterr().out


GEMMA = ["step", "--model", "gemma-4-26b-a4b", "--gpu", "h100-sxm", "--gpus", "1", "--weights", "fp8", "--batch", "1"]


def test_a_step_of_diffusion_reads_all_experts_and_stays_memory_bound(capsys):
    """256 positions in 17 passes: 15.06 tokens each; 25.2 GB over 3.35 TB/s; 77 FLOP/byte against a ridge of 591."""
    found = answer(capsys, *GEMMA, "--context", "1000", "--decoder", "diffusion", "--block", "256", "--passes", "17")
    assert found["tau"] == pytest.approx(256 / 17)
    assert found["floor_s"] == pytest.approx(25.2e9 / 3.35e12, rel=0.05)
    assert found["intensity_flop_per_byte"] == pytest.approx(77, rel=0.1)
    assert found["ridge_flop_per_byte"] == pytest.approx(591, rel=0.01)
    assert found["bound"] == "weights"
    assert found["stream_tok_per_s"] == pytest.approx(found["tau"] / found["step_s"])


def test_a_step_of_speculation_adds_its_drafts(capsys):
    plain = answer(capsys, *GEMMA, "--context", "1000")
    drafts = ["--decoder", "speculative", "--acceptance", "0.8", "--draft-length", "4"]
    found = answer(capsys, *GEMMA, "--context", "1000", *drafts, "--draft-cost", "0.1")
    assert found["tau"] == pytest.approx(3.3616)
    assert found["positions"] == 5
    assert found["draft_s"] == pytest.approx(0.4 * plain["step_s"])
    assert found["stream_tok_per_s"] == pytest.approx(3.3616 / (found["step_s"] + found["draft_s"]))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("--decoder diffusion --block 32", "--passes: got nothing, expected a value, as --decoder diffusion needs it"),
        ("--decoder diffusion --block 0 --passes 4", "--block: got 0.0, expected a whole number, 1 or above"),
        ("--decoder diffusion --block 32 --passes 0", "--passes: got 0.0, expected a number, 1 or above"),
        (
            "--decoder speculative --acceptance 1.1 --draft-length 4",
            "--acceptance: got 1.1, expected a fraction from 0 to 1",
        ),
        ("--acceptance 0.5", "--acceptance: got 0.5, expected no such option with --decoder ar"),
        ("--decoder tree", "--decoder: got 'tree', expected ar or speculative or diffusion"),
    ],
)
def test_decoders_that_cannot_be_are_one_line(capsys, options, line):
    assert refused(capsys, *GEMMA, "--context", "1000", *options.split()) == line


# --- options that would change nothing, and what is beyond the model

TYPED_COST = ["cost", *IDENTITY, "--utilization", "1"]
SOLVED = ["cost", "--tok-per-s", "1", "--utilization", "1", "--token-kind", "output", "--usd-per-mtok", "2"]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ([*TYPED_COST, "--region", "us-east-1"], "--region: got 'us-east-1'"),
        ([*TYPED_COST, "--term", "on-demand"], "--term: got 'on-demand'"),
        ([*TYPED_COST, "--as-of", "2026-07"], "--as-of: got '2026-07-31'"),
        ([*SOLVED, "--solve", "node-usd-per-hour", "--region", "x"], "--region: got 'x'"),
        (["breakeven", *TYPED, "--region", "us-east-1"], "--region: got 'us-east-1'"),
        (["breakeven", *NAMED, "--ownership", "bought", "--region", "x"], "--region: got 'x'"),
        (["breakeven", *NAMED, "--sublet-usd-per-hour", "0"], "--sublet-usd-per-hour: got 0.0"),
        (["breakeven", *TYPED, "--ownership", "sunk", "--sublet-usd-per-hour", "2"], "--sublet-usd-per-hour: got 2.0"),
        ([*STEP, "--ideal", "--engine", "vllm"], "--engine: got 'vllm'"),
        (["prefill", "--model", "phi-4", *NODE, "--prompt", "9", "--ideal", "--engine", "vllm"], "--engine: got"),
        (["prices", "import", "litellm", "x.json", "--out", "y.csv", "--provider", "me"], "--provider: got 'me'"),
        (["names", "gpus", "--as-of", "2026"], "--as-of: got '2026-12-31'"),
    ],
)  # fmt: skip
def test_an_option_that_would_change_nothing_is_refused(capsys, arguments, option):
    line = refused(capsys, *arguments)
    assert line.startswith(option)
    assert ", expected no such option with" in line or ", expected no such option where" in line


def test_own_prices_beside_a_typed_price_of_a_node_are_refused(capsys, price_file):
    ours = price_file("p5.48xlarge,,,,price,20,USD/node_hour")
    assert refused(capsys, *TYPED_COST, "--prices", ours).startswith(
        "--prices: got 'ours.csv', expected no such option"
    )
    assert answer(capsys, "breakeven", *TYPED, "--prices", ours)["price_usd_per_node_hour"] == 36


@pytest.mark.parametrize(
    "command",
    [
        ["model", "phi-4", "--context"],
        ["step", "--model", "phi-4", *NODE, "--tp", "2", "--batch", "1", "--context"],
        ["prefill", "--model", "phi-4", *NODE, "--tp", "2", "--prompt"],
    ],
    ids=lambda command: command[0],
)
def test_a_context_beyond_the_model_is_an_answer_that_says_so(capsys, command):
    """Phi-4's config has max_position_embeddings 16384: the last token inside, and the first beyond."""
    inside, beyond = (answer(capsys, *command, tokens) for tokens in ("16384", "16385"))
    assert (inside["max_context_tokens"], inside["beyond_max_context"]) == (16384, False)
    assert (beyond["max_context_tokens"], beyond["beyond_max_context"]) == (16384, True)
    assert main([*command, "16385"]) == 0
    assert "beyond the model: its config ends at 16,384 tokens, and 16,385 are asked for" in capsys.readouterr().out
    assert main([*command, "16384"]) == 0
    assert "beyond" not in capsys.readouterr().out


def test_names_lists_what_each_command_takes(capsys):
    found = answer(capsys, "names")
    assert list(found) == ["models", "gpus", "engines", "nodes", "apis"]
    assert {"llama-3.1-70b", "gpt-oss-120b"} <= set(found["models"])
    assert {"h100-sxm", "h200-sxm", "mi300x"} <= set(found["gpus"])
    assert "p5.48xlarge" in found["nodes"]
    assert all(names == sorted(set(names)) for names in found.values())
    assert answer(capsys, "names", "engines") == {"engines": found["engines"]}
    for model in found["models"]:
        assert answer(capsys, "model", model)["model"] == model
    for api in found["apis"][::9]:
        request = [api if word == "gpt-5" else word for word in TYPED]
        assert main(["breakeven", *request]) in (0, 2)
        assert "got '" + api not in capsys.readouterr().err
    assert main(["names", "nodes", "--as-of", "2001"]) == 0
    assert capsys.readouterr().out == "none on that day\n"
    assert refused(capsys, "names", "cats").startswith("KIND: got 'cats', expected models or gpus")


def test_owning_before_its_costs_are_known_is_refused_with_the_day(capsys):
    """The table has a price of the node by then, and no pue; found by a random command line."""
    line = refused(capsys, "breakeven", *NAMED, "--ownership", "bought", "--as-of", "2025-06")
    assert line == "--as-of: got '2025-06-30', expected a day from 2026-06-30, when pue is first known"
