"""Importers: they read each format's units and traps, and doubt what they read. All rows here are made up."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis import cli
from analysis.inputs import InputError
from analysis.reference import price_feeds, tables
from analysis.reference.price_feeds import Imported, files, names

TODAY = date(2026, 11, 30)


def imported(tmp_path: Path, form: str, content: Any, *, name: str = "feed", **options: Any) -> Imported:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return price_feeds.import_feed(form, path, today=TODAY, **options)


def values(found: Imported, *parts: str) -> dict[tuple[str, ...], float]:
    """Prices of the offers whose keys hold the given parts, by the other keys."""
    return {
        tuple(key for key in offer.keys if key not in parts): offer.value
        for offer in found.offers
        if set(parts) <= set(offer.keys)
    }


def kinds(found: Imported, place: str | None = None) -> list[tuple[str, bool, str]]:
    return [(f.verdict, f.used, f.kind) for f in found.findings if place in (None, f.place)]


def chat(read: Any, written: Any, **more: Any) -> dict[str, Any]:
    return {"mode": "chat", "input_cost_per_token": read, "output_cost_per_token": written, **more}


# LiteLLM


def test_litellm_counts_in_dollars_per_single_token(tmp_path: Path) -> None:
    found = imported(tmp_path, "litellm", {"x/a": chat(1e-07, 7.499999e-07, cache_read_input_token_cost=2.5e-08)})
    assert values(found, "x", "a", "standard") == {("input",): 0.1, ("output",): 0.75, ("cached-input",): 0.025}
    assert found.findings == []


def test_litellm_tiers_come_by_suffix_by_list_and_by_the_hour(tmp_path: Path) -> None:
    more = {
        "input_cost_per_token_batches": 5e-07,
        "output_cost_per_token_above_272k_tokens_priority": 9e-06,
        "off_peak_pricing": {"input_cost_per_token": 4e-07, "windows": [{"hours_utc": "16:30-00:30"}]},
    }
    steps = [
        {"range": [0, 32000], "input_cost_per_token": 1e-07, "output_cost_per_token": 4e-07},
        {"range": [32000, 1e6], "input_cost_per_token": 2e-07, "output_cost_per_token": 8e-07},
    ]
    found = imported(
        tmp_path, "litellm", {"x/a": chat(1e-06, 4e-06, **more), "x/b": {"mode": "chat", "tiered_pricing": steps}}
    )
    assert values(found, "a") == {
        ("x", "input", "standard"): 1,
        ("x", "output", "standard"): 4,
        ("x", "input", "batch"): 0.5,
        ("x", "output", "above-272k-priority"): 9,
        ("x", "input", "off-peak"): 0.4,
    }
    assert values(found, "b") == {
        ("x", "input", "standard"): 0.1,
        ("x", "output", "standard"): 0.4,
        ("x", "input", "above-32k"): 0.2,
        ("x", "output", "above-32k"): 0.8,
    }
    (hours,) = [offer.note for offer in found.offers if offer.keys[3] == "off-peak"]
    assert "16:30-00:30" in hours


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"alias_of": "x/a"}, "alias"),
        ({"mode": "image_generation", "input_cost_per_token": 1e-06}, "not-text"),
        ({"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06}, "not-text"),
        ({"mode": "completion", "output_cost_per_second": 0.001}, "missing-price"),
        (chat(None, None), "missing-price"),
        (chat(0.02, 0.06), "scale"),
        (chat(1e-12, 1e-12), "scale"),
        (chat(-1, 1e-06), "no-price"),
        (chat(True, 1e-06), "not-a-number"),
        (chat("about 1", 1e-06), "not-a-number"),
        (chat(10**400, 1e-06), "not-a-number"),
        ("text", "no-entry"),
    ],
)
def test_litellm_refuses_with_a_kind(tmp_path: Path, entry: Any, kind: str) -> None:
    found = imported(tmp_path, "litellm", {"x/bad": entry, "x/a": chat(1e-07, 4e-07)})
    assert ("refused", False, kind) in kinds(found, "x/bad")
    assert not values(found, "bad", "standard", "input")
    assert len(values(found, "a")) == 2


@pytest.mark.parametrize(
    ("entry", "kind", "used"),
    [
        (chat(0, 0), "free-or-unknown", False),
        (chat(1e-06, 0), "zero-output", False),
        (chat(1e-07, 1e-04), "ratio", False),
        (chat(1e-06, 2e-06, cache_read_input_token_cost=2e-06), "cached-above-input", False),
        (chat(1e-06, 2e-06, input_cost_per_token_batches=2e-06), "batch-above-standard", False),
        (chat(1e-06, 2e-06, cache_read_input_token_cost=1e-06), "cached-odd", True),
        (chat(1e-06, 2e-06, cache_read_input_token_cost=0), "cached-odd", True),
        (chat(1e-06, 5e-07), "output-below-input", True),
        (chat(1e-06, 2e-06, deprecation_date="2026-03-01"), "deprecated", True),
    ],
)
def test_litellm_flags_and_says_whether_it_used(tmp_path: Path, entry: Any, kind: str, used: bool) -> None:
    found = imported(tmp_path, "litellm", {"x/odd": entry})
    flags = [flag for flag in found.flagged if flag.kind == kind]
    assert flags
    for flag in flags:
        assert flag.used is used
        if kind != "deprecated":
            assert any(f"odd: {flag.column}" == f"{o.keys[1]}: {o.column}" for o in found.offers) is used


def test_zero_is_free_where_the_name_says_so(tmp_path: Path) -> None:
    found = imported(tmp_path, "litellm", {"x/a:free": chat(0, 0)})
    assert values(found, "x", "a-free", "standard") == {("input",): 0, ("output",): 0}


def test_a_price_of_two_sellers_is_compared_with_the_median_of_all(tmp_path: Path) -> None:
    feed = {f"{who}/m-70b": chat(5e-07, 1e-06) for who in ("s1", "s2", "s3")} | {
        "s4/m-70b-instruct": chat(5e-07, 1e-05)
    }
    found = imported(tmp_path, "litellm", feed)
    assert kinds(found) == [("flagged", False, "sellers")]
    assert values(found, "s4") == {("m-70b-instruct", "input", "standard"): 0.5}


def test_a_price_is_compared_with_what_the_shipped_tables_have(tmp_path: Path) -> None:
    """Llama 3.3 70B at DeepInfra is in the tables at 0.32 to 0.39 for output."""
    key = "deepinfra/meta-llama/Llama-3.3-70B-Instruct-Turbo"
    found = imported(tmp_path, "litellm", {key: chat(1.3e-07, 3.9e-06)})
    assert kinds(found) == [("flagged", False, "shipped")]
    assert values(found, "deepinfra") == {("llama-3.3-70b", "input", "standard"): 0.13}


def test_one_name_with_two_prices_is_not_used(tmp_path: Path) -> None:
    found = imported(tmp_path, "litellm", {"x/m": chat(1e-06, 2e-06), "x/M": chat(1e-06, 3e-06)})
    assert values(found) == {("x", "m", "input", "standard"): 1}
    assert sorted(kinds(found)) == [("flagged", False, "two-prices")] * 2 + [("refused", False, "same-price")]


# Public bug reports with the right answer


def test_a_price_per_million_100000_times_too_high_is_refused(tmp_path: Path) -> None:
    """https://github.com/BerriAI/litellm/issues/23503: 0.71 per million, listed as 0.071 per token."""
    key = "wandb/meta-llama/Llama-3.3-70B-Instruct"
    wrong = imported(tmp_path, "litellm", {key: chat(0.071, 0.071)})
    assert wrong.offers == []
    assert kinds(wrong) == [("refused", False, "scale")] * 2
    right = imported(tmp_path, "litellm", {key: chat(7.1e-07, 7.1e-07)})
    assert values(right, "wandb-coreweave", "llama-3.3-70b") == {
        ("input", "standard"): 0.71,
        ("output", "standard"): 0.71,
    }


def test_one_zero_missing_is_seen_beside_other_sellers(tmp_path: Path) -> None:
    """https://github.com/SWE-bench/SWE-bench/issues/11: 0.06 per 1,000 tokens is 6e-05 a token, not 6e-04."""
    feed = {f"{who}/gpt-4": chat(3e-05, 6e-05) for who in ("openai", "azure", "openrouter")}
    feed["other/gpt-4"] = chat(3e-05, 6e-04)
    found = imported(tmp_path, "litellm", feed)
    assert set(values(found, "gpt-4", "output").values()) == {60}
    assert kinds(found, "other/gpt-4") == [("flagged", False, "sellers")]


def test_free_input_beside_priced_output_is_a_price(tmp_path: Path) -> None:
    """https://github.com/BerriAI/litellm/pull/37328: 200 output tokens at 5e-06 cost 0.001."""
    found = imported(tmp_path, "litellm", {"x/a": chat(0, 5e-06)})
    prices = values(found, "x", "a", "standard")
    assert prices["input",] == 0
    assert 200 * prices["output",] / 1e6 == pytest.approx(0.001, rel=1e-12)
    assert found.findings == []


def test_no_price_is_made_up_for_a_model_that_has_none(tmp_path: Path) -> None:
    """https://github.com/1jehuang/jcode/issues/1057: a fallback of 15 and 60 would have billed 2,666."""
    found = imported(tmp_path, "litellm", {"x/a": chat(1e-06, 2e-06), "x/b": {"mode": "chat"}}, as_of=TODAY)
    assert kinds(found, "x/b") == [("refused", False, "missing-price")]
    price_feeds.write(found, tmp_path / "api_prices.csv")
    schema = tables.SCHEMAS["api_prices"]
    rows = tables.load(tmp_path / "api_prices.csv", schema, ["litellm"])
    with pytest.raises(InputError, match="model: got 'b'"):
        tables.as_of_day(rows, schema, TODAY).where(model="b")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"mode": "chat"}, [("refused", False, "missing-price")]),
        (chat(None, 2e-06), [("flagged", True, "one-sided")]),
        (chat(2e-06, None), [("flagged", True, "one-sided")]),
    ],
)
def test_a_missing_price_is_refused_and_half_a_price_warned_of(
    tmp_path: Path, entry: Any, expected: list[tuple[str, bool, str]]
) -> None:
    """https://github.com/majiayu000/litellm-rs/pull/688: a missing price is never 0."""
    found = imported(tmp_path, "litellm", {"x/a": entry})
    assert kinds(found) == expected
    assert 0 not in values(found).values()


def test_the_dearest_real_price_passes(tmp_path: Path) -> None:
    """o1-pro costs 150 and 600 USD per million tokens."""
    entry = {"mode": "responses", "litellm_provider": "openai", "input_cost_per_token": 1.5e-4}
    found = imported(tmp_path, "litellm", {"o1-pro": {**entry, "output_cost_per_token": 6e-4}})
    assert values(found, "openai", "o1-pro", "standard") == {("input",): 150, ("output",): 600}
    assert found.findings == []


# genai-prices, llm-prices, OpenRouter


def genai(prices: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"id": "deepseek", "models": [{"id": "m", "prices": prices, **more}]}]


def test_genai_prices_reads_steps_days_and_hours(tmp_path: Path) -> None:
    steps = {"base": 2, "tiers": [{"start": 200000, "price": 4}]}
    dated = [
        {"prices": {"input_mtok": 9, "output_mtok": 9}},
        {"constraint": {"start_date": "2026-09-01"}, "prices": {"input_mtok": steps, "output_mtok": 8}},
        {"constraint": {"start_date": "2027-01-01"}, "prices": {"input_mtok": 3, "output_mtok": 3}},
    ]
    found = imported(tmp_path, "genai-prices", genai(dated))
    assert values(found, "deepseek", "m") == {
        ("input", "standard"): 2,
        ("input", "above-200k"): 4,
        ("output", "standard"): 8,
    }
    assert {offer.as_of for offer in found.offers} == {"2026-09-01"}
    assert kinds(found) == [("refused", False, "another-day")] * 2
    earlier = imported(tmp_path, "genai-prices", genai(dated), as_of=date(2026, 7, 20))
    assert set(values(earlier).values()) == {9}

    hours = {"start_time": "00:30:00Z", "end_time": "16:30:00Z"}
    by_hour = [
        {"prices": {"input_mtok": 0.135, "output_mtok": 0.55}},
        {"constraint": hours, "prices": {"input_mtok": 0.27, "output_mtok": 1.1}},
    ]
    found = imported(tmp_path, "genai-prices", genai(by_hour))
    assert values(found, "output") == {("deepseek", "m", "standard"): 1.1, ("deepseek", "m", "off-peak"): 0.55}


@pytest.mark.parametrize(
    ("prices", "kind"),
    [
        ({}, "missing-price"),
        (None, "no-entry"),
        ({"output_audio_mtok": 3}, "missing-price"),
        ([{"constraint": {"weekday": 1}, "prices": {"input_mtok": 1}}], "unknown-constraint"),
        ([{"constraint": {"start_date": "soon"}, "prices": {"input_mtok": 1}}], "unknown-constraint"),
        ({"input_mtok": {"base": 1, "tiers": [{"price": 2}]}, "output_mtok": 2}, "no-range"),
        ({"input_mtok": 1.25e-06, "output_mtok": 1e-05}, "scale"),
    ],
)
def test_genai_prices_refuses_with_a_kind(tmp_path: Path, prices: Any, kind: str) -> None:
    assert ("refused", False, kind) in kinds(imported(tmp_path, "genai-prices", genai(prices)))


def period(read: float, written: float, start: str | None = None, end: str | None = None) -> dict[str, Any]:
    return {"input": read, "output": written, "input_cached": None, "from_date": start, "to_date": end}


def test_llm_prices_takes_the_period_of_the_day_and_tiers_from_ids(tmp_path: Path) -> None:
    models = [
        {"id": "m", "name": "M", "price_history": [period(2, 10, None, "2026-09-01"), period(3, 15, "2026-09-01")]},
        {"id": "m-200k", "name": "M >200k", "price_history": [period(6, 22.5)]},
        {"id": "old-32k", "name": "Old 32k", "price_history": [period(4, 8)]},
    ]
    found = imported(tmp_path, "llm-prices", {"vendor": "anthropic", "models": models})
    assert values(found, "anthropic", "output") == {
        ("m", "standard"): 15,
        ("m", "above-200k"): 22.5,
        ("old-32k", "standard"): 8,
    }
    assert kinds(found) == [("refused", False, "another-day")]
    rows = [{"vendor": "anthropic", "id": "m", "name": "M", **each} for each in models[0]["price_history"]]
    built = imported(tmp_path, "llm-prices", {"updated_at": "2026-08-05", "prices": rows}, as_of=date(2026, 7, 20))
    assert values(built, "m", "standard") == {("anthropic", "input"): 2, ("anthropic", "output"): 10}


def test_llm_prices_doubts_a_row_that_was_half_updated(tmp_path: Path) -> None:
    """o3 came down from 10 and 40 to 2 and 8; one feed kept the old prices beside the new cached one."""
    model = {"id": "o3", "name": "o3", "price_history": [period(10, 40) | {"input_cached": 0.5}]}
    found = imported(tmp_path, "llm-prices", {"vendor": "openai", "models": [model]})
    assert kinds(found) == [("flagged", False, "shipped")] * 2
    assert values(found) == {("openai", "o3", "cached-input", "standard"): 0.5}


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([period(1, 2, None, "2026-01-01"), period(12, 2, "2026-01-01")], ("flagged", True, "step-in-time")),
        ([period(1, 2), period(3, 4)], ("flagged", False, "two-prices")),
        ([period(1, 2, None, "2026-01-01")], ("refused", False, "missing-price")),
        ([period(1, 2, "yesterday")], ("refused", False, "no-date")),
        (["text"], ("refused", False, "no-entry")),
    ],
)
def test_llm_prices_doubts_histories(tmp_path: Path, history: Any, expected: tuple[str, bool, str]) -> None:
    model = {"id": "m", "name": "M", "price_history": history}
    assert expected in kinds(imported(tmp_path, "llm-prices", {"vendor": "v", "models": [model]}))


def test_openrouter_reads_text_and_leaves_routers_and_aliases_out(tmp_path: Path) -> None:
    override = {"min_prompt_tokens": 200000, "prompt": "0.000004", "completion": "0.000018"}
    data = [
        {"id": "google/g-pro", "pricing": {"prompt": "0.000002", "completion": "0.000012", "overrides": [override]}},
        {"id": "~google/g-pro-latest", "pricing": {"prompt": "0.000002", "completion": "0.000012"}},
        {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
        {"id": "qwen/q:free", "pricing": {"prompt": "0", "completion": "0"}},
        {"id": "search/s", "pricing": {"prompt": "0.000001", "completion": "0.000001", "request": "0.005"}},
        {"id": "bad/n", "pricing": {"prompt": "1_0", "completion": "NaN"}},
    ]
    found = imported(tmp_path, "openrouter", {"data": data})
    assert values(found, "openrouter", "output") == {
        ("g-pro", "standard"): 12,
        ("g-pro", "above-200k"): 18,
        ("q-free", "standard"): 0,
        ("search-s", "standard"): 1,
    }
    assert kinds(found, "~google/g-pro-latest") == [("refused", False, "alias")]
    assert kinds(found, "openrouter/auto")[0] == ("refused", False, "no-price")
    assert kinds(found, "search/s") == [("flagged", True, "per-request")]
    assert kinds(found, "bad/n")[:2] == [("refused", False, "not-a-number")] * 2


# SkyPilot-shaped catalogs


HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone,GpuInfo"


def row(
    instance: str = "x9.large", accelerator: str = "Q900", count: str = "8", price: str = "50.0", spot: str = "",
    region: str = "us-x-1", zone: str = "", info: str = "",
) -> str:  # fmt: skip
    return f'{instance},{accelerator},{count},192,2048,{price},{spot},"{region}",{zone},"{info}"'


def catalog(tmp_path: Path, *rows: str, header: str = HEADER, name: str = "cloudy_vms.csv") -> Imported:
    return imported(tmp_path, "skypilot", "\n".join((header, *rows, "")), name=name)


def test_zones_of_a_region_count_once(tmp_path: Path) -> None:
    found = catalog(tmp_path, row(zone="a", spot="9"), row(zone="b", spot="12"))
    assert values(found, "cloudy", "x9.large", "us-x-1") == {("on-demand",): 50, ("spot",): 9}
    (spot,) = [offer for offer in found.offers if offer.keys[3] == "spot"]
    assert (spot.high, "cheapest zone" in spot.note) == (12, True)
    assert kinds(found) == [("refused", False, "another-zone")] * 2


def test_zones_with_two_list_prices_are_held_back(tmp_path: Path) -> None:
    found = catalog(tmp_path, row(zone="a"), row(zone="b", price="60"))
    assert found.offers == []
    assert kinds(found) == [("flagged", False, "zones-differ")] * 2


def test_an_accelerator_without_instance_costs_what_its_host_costs_too(tmp_path: Path) -> None:
    host = ",,,208,1872,9.5,3.0,us-mid1,us-mid1-a,"
    found = catalog(
        tmp_path,
        row("", "H900", "8", "80.0", "20.0", "us-mid1", "us-mid1-a"),
        "a9-highgpu-8g" + host,
        row("", "T4", "1", "0.35", "", "us-mid1", "us-mid1-a"),
        row("", "tpu-v5p-8", "1", "17.84", "", "us-mid1", "us-mid1-a"),
    )
    assert values(found, "cloudy", "a9-highgpu-8g", "us-mid1") == {("on-demand",): 89.5, ("spot",): 23}
    assert kinds(found, "row 4") == [("refused", False, "no-host")]
    assert kinds(found, "row 5") == [("refused", False, "slice")]
    assert ("flagged", True, "host-less") in kinds(found)


def test_a_host_priced_zero_is_a_missing_price(tmp_path: Path) -> None:
    found = catalog(tmp_path, row("", "H900", "8", "80.0"), "a9-highgpu-8g,,,208,1872,0.0,0.0,us-x-1,,")
    assert found.offers == []
    assert ("flagged", False, "zero-host") in kinds(found)
    assert kinds(found, "row 3") == [("flagged", False, "zero-price")]


@pytest.mark.parametrize("regions", [2, 5])
def test_a_commitment_passed_off_as_on_demand_is_held_back(tmp_path: Path, regions: int) -> None:
    dear = [row(region=f"us-x-{n}", price="78.4") for n in range(1, regions)]
    found = catalog(tmp_path, row(region="us-x-0", price="33.6"), *dear)
    assert ("flagged", False, "below-list") in kinds(found, "row 2")
    assert set(values(found).values()) == {78.4}


def test_low_prices_in_most_regions_are_seen_by_the_shipped_tables(tmp_path: Path) -> None:
    """The shipped tables have p5.48xlarge on demand at 55.04 and more: 20 in every region is no list price."""
    rows = [row("p5.48xlarge", "H100", price="20", region=f"us-x-{n}") for n in range(3)]
    found = catalog(tmp_path, *rows, name="aws_vms.csv")
    assert found.offers == []
    assert kinds(found).count(("flagged", False, "below-list")) == 3


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"spot": "0.00"}, ("refused", False, "no-spot")),
        ({"spot": "50.0"}, ("refused", False, "no-spot")),
        ({"spot": "57"}, ("flagged", False, "spot-above-list")),
    ],
)
def test_spot_that_is_none_or_above_the_list_is_not_used(
    tmp_path: Path, cells: dict[str, str], expected: tuple[str, bool, str]
) -> None:
    found = catalog(tmp_path, row(**cells))
    assert values(found) == {("cloudy", "x9.large", "us-x-1", "on-demand"): 50}
    assert kinds(found) == [expected]


@pytest.mark.parametrize(
    ("cells", "verdict", "kind"),
    [
        ({"price": ""}, "refused", "missing-price"),
        ({"price": "0.0"}, "flagged", "zero-price"),
        ({"price": "0e5"}, "flagged", "zero-price"),
        ({"price": "-3"}, "refused", "not-a-number"),
        ({"price": "1e999"}, "refused", "not-a-number"),
        ({"price": "fifty"}, "refused", "not-a-number"),
        ({"price": "50000"}, "flagged", "scale"),
        ({"price": "0.05"}, "flagged", "scale"),
        ({"accelerator": "H100", "price": "780"}, "flagged", "shipped"),
        ({"count": "0"}, "refused", "no-count"),
        ({"count": "many"}, "refused", "no-count"),
        ({"region": "0.00"}, "refused", "no-name"),
        ({"accelerator": ""}, "refused", "no-accelerator"),
    ],
)
def test_a_row_that_is_no_node_price_is_not_used(
    tmp_path: Path, cells: dict[str, str], verdict: str, kind: str
) -> None:
    found = catalog(tmp_path, row(**cells))
    assert found.offers == []
    assert (verdict, False, kind) in kinds(found, "row 2")


def test_part_of_an_accelerator_stays_a_part(tmp_path: Path) -> None:
    """0.167 of an A10 at 0.5 an hour is 3 for a whole one; rounded to 0 it would be infinite."""
    found = catalog(
        tmp_path, row(accelerator="A10", count="0.167", price="0.5"), row("y", "A10", "1.0", "3", region=", CA, NA")
    )
    assert values(found, "on-demand") == {("cloudy", "x9.large", "us-x-1"): 0.5, ("cloudy", "y", "ca-na"): 3}
    assert [offer.note for offer in found.offers] == ["0.167 A10", "1 A10"]


@pytest.mark.parametrize(
    ("info", "count", "expected"),
    [
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}", "8", []),
        ("H100", "8", []),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 80}}]}", "8", ["memory-unit"]),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 81920}", "8", ["memory-total"]),
        ("{'Gpus': __import__('os')}", "8", ["no-literal"]),
        ("{'Gpus': []}", "8", ["no-literal"]),
        ("{" * 1_500, "8", ["no-literal"]),
        ("{" + "1," * 1_500 + "}", "8", ["no-literal"]),
    ],
)  # fmt: skip
def test_texts_about_the_accelerator_are_read_as_python_literals(
    tmp_path: Path, info: str, count: str, expected: list[str]
) -> None:
    found = catalog(tmp_path, row(count=count, info=info))
    assert kinds(found) == [("flagged", True, kind) for kind in expected]
    assert set(values(found).values()) == {50}


def test_more_cells_than_names_are_a_list_in_the_last_column(tmp_path: Path) -> None:
    found = catalog(tmp_path, row() + ",V1,V2", row(region="us-x-2") + ",V2", header=f"{HEADER},Generation")
    assert len(found.offers) == 2
    assert ("flagged", True, "ragged") in kinds(found, "row 2")


@pytest.mark.parametrize("cells", ["x9.large,Q900,8", row() + ",surplus"])
def test_other_ragged_rows_are_refused(tmp_path: Path, cells: str) -> None:
    found = catalog(tmp_path, cells, row(region="us-x-2"))
    assert kinds(found, "row 2") == [("refused", False, "ragged")]
    assert len(found.offers) == 1


def test_one_list_for_all_regions_is_said(tmp_path: Path) -> None:
    found = catalog(tmp_path, row(region="a"), row(region="b"), row("y9", region="a"), row("y9", region="b"))
    assert kinds(found) == [("flagged", True, "one-list")]


def test_a_region_is_named_as_the_tables_name_it(tmp_path: Path) -> None:
    """They list Lambda's sizes once, under the region all; a price that differs by region stays where it is."""
    same = [row("gpu_8x_h100_sxm5", "H100", price="31.92", region=region) for region in ("us-east-1", "us-west-1")]
    found = catalog(tmp_path, *same, name="lambda_vms.csv")
    assert values(found) == {("lambda", "gpu_8x_h100_sxm5", "all", "on-demand"): 31.92}
    assert ("refused", False, "same-price") in kinds(found, "row 3")
    apart = catalog(tmp_path, same[0], same[1].replace("31.92", "30"), name="lambda_vms.csv")
    assert {offer.keys[2] for offer in apart.offers} == {"us-east-1", "us-west-1"}


def test_columns_are_read_by_name(tmp_path: Path) -> None:
    header = "SpotPrice,Price,Region,AcceleratorCount,AcceleratorName,InstanceType"
    found = catalog(tmp_path, "9,50.0,us-x-1,8.0,Q900,x9.large", header=header)
    assert values(found, "x9.large", "us-x-1") == {("cloudy", "on-demand"): 50, ("cloudy", "spot"): 9}
    with pytest.raises(InputError, match=r"cloudy_vms.csv row 1, column Price: got .*, expected this column once"):
        catalog(tmp_path, row(), header=HEADER.replace(",Price", ",Cost"))


# Names, files, the command


def test_aliases_name_models_of_the_tables_once_for_each_seller() -> None:
    """An alias to a model that the tables lack would be a spelling that nothing reads."""
    known = set(tables.all_rows("api_prices")["model"])
    sellers = set(tables.all_rows("api_prices")["seller"])
    assert set(names.aliases().values()) <= known
    assert {who for who, _ in names.aliases()} <= sellers | {""}
    rows = files.read_text(tables.DATA / "model_aliases.csv").splitlines()
    assert len(rows) - 1 == len(names.aliases())


@pytest.mark.parametrize(
    ("raw", "form", "line"),
    [
        (b"", "litellm", r"feed row 1, column 1: got nothing, expected well-formed JSON"),
        (b'{"a": {"mode": ', "litellm", "row 1, column 16: got nothing, expected well-formed JSON"),
        (b'{"a": {}, "a": {}}', "litellm", "key a: got the key twice"),
        (b"[]", "litellm", "feed: got list, expected an object"),
        (b"{}", "genai-prices", "feed: got dict, expected a list of providers"),
        (b"{}", "llm-prices", "feed: got dict, expected a vendor with models"),
        (b'{"data": 3}', "openrouter", "feed key data: got 3, expected a list of models"),
        (b"[" * 200_000, "genai-prices", "feed: got too many levels"),
        (b"[" + b"9" * 5_000 + b"]", "genai-prices", "feed: got a number of thousands of digits"),
        (b'{"a": "\xe9"}', "litellm", "feed row 1: got byte 0xe9, expected UTF-8"),
        ('{"a": {}}'.encode("utf-16"), "litellm", "feed row 1: got byte 0xff, expected UTF-8"),
        (gzip.compress(b"{" * 9_000)[:-9], "litellm", "feed: got .*, expected a whole gzip file"),
        (gzip.compress(b" " * (files.LIMIT_BYTE + 1)), "litellm", "feed: got more than 16,777,216 bytes"),
        (b'{"a": {"mode": "\\ud800"}}', "litellm", "feed: got half a surrogate pair"),
        (HEADER.encode(), "skypilot", "feed row 2: got nothing, expected a row"),
        (b"", "skypilot", "feed row 1, column InstanceType: got nothing"),
        (f"{HEADER}\n{'x' * 200_000}".encode(), "skypilot", "feed row 2: got field larger than field limit"),
    ],
    ids=range(17),
)  # fmt: skip
def test_a_file_that_is_no_feed_is_refused_in_one_line(tmp_path: Path, raw: bytes, form: str, line: str) -> None:
    (tmp_path / "feed").write_bytes(raw)
    with pytest.raises(InputError, match=line) as refusal:
        price_feeds.import_feed(form, tmp_path / "feed", today=TODAY)
    assert "\n" not in str(refusal.value)


def test_a_file_of_200_megabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "feed").open("wb") as file:
        file.truncate(200 * 10**6)
    with pytest.raises(InputError, match="more than 16,777,216 bytes"):
        price_feeds.import_feed("litellm", tmp_path / "feed", today=TODAY)


def test_a_packed_file_with_a_mark_is_read_and_its_name_tells_the_day(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + json.dumps({"x/\U0001f600a": chat(1e-06, 2e-06)}).encode()
    (tmp_path / "feed.2026-05-20.json.gz").write_bytes(gzip.compress(text))
    found = price_feeds.import_feed("litellm", tmp_path / "feed.2026-05-20.json.gz", today=TODAY)
    assert {offer.as_of for offer in found.offers} == {"2026-05-20"}


@given(st.text(max_size=30))
def test_no_cell_is_a_formula_or_breaks_the_row(text: str) -> None:
    written = files.cell(text)
    assert written[:1] not in {"=", "+", "-", "@"}
    assert written.isprintable()
    assert written == written.strip()


def test_the_result_has_the_columns_of_the_table_and_the_report_a_line_for_each_finding(tmp_path: Path) -> None:
    found = imported(tmp_path, "litellm", {"x/a": chat(1e-06, 2e-06), "=1+1/b": chat(-1, 2e-06)}, as_of=TODAY)
    out = tmp_path / "own.csv"
    price_feeds.write(found, out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["feed", "own.csv", "own.report.csv"]
    rows = tables.load(out, tables.SCHEMAS["api_prices"], ["litellm"])
    assert rows["value"].tolist() == [1, 2, 2]
    assert rows["locator"].tolist()[2] == "'=1+1/b: output_cost_per_token"
    with (tmp_path / "own.report.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["kind"] for line in lines] == [finding.kind for finding in found.findings]
    assert (lines[0]["verdict"], lines[0]["used"], lines[0]["got"]) == ("refused", "no", "'-1")


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, "litellm", {"x/a": chat(1e-06, 2e-06)})
    (tmp_path / "own.report.csv").mkdir()
    with pytest.raises(InputError, match=r"own.report.csv: got .*, expected a file that can be written"):
        price_feeds.write(found, tmp_path / "own.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["feed", "own.csv", "own.report.csv"]
    with pytest.raises(InputError, match="expected a file that can be written"):
        price_feeds.write(found, tmp_path / "absent" / "own.csv")


def test_the_command_counts_used_flagged_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert price_feeds.FORMATS == cli.FEED_FORMATS
    feed, out = tmp_path / "feed.json", tmp_path / "own.csv"
    feed.write_text(json.dumps({"x/a": chat(1e-06, 5e-07), "x/b": chat(0, 0), "x/c": {"mode": "ocr"}}))
    assert cli.main(["prices", "import", "litellm", str(feed), "--out", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert ([row["value"] for row in answer["rows"]], len(answer["flagged"]), len(answer["refused"])) == (
        [1, 0.5],
        3,
        1,
    )
    assert answer["refused"][0]["place"] == "x/c"
    assert [flag["used"] for flag in answer["flagged"]] == [True, False, False]
    assert out.read_text(encoding="utf-8").count("\n") == 3
    assert cli.main(["prices", "import", "litellm", str(feed), "--out", str(out)]) == 0
    assert "2 rows used, 3 flagged, 1 refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["litellm", "absent.json", "--out", "o.csv"], "absent.json: got No such file or directory"),
        (["csv", "feed.json", "--out", "o.csv"], "FORMAT: got 'csv', expected litellm or genai-prices or"),
        (["litellm", "feed.json"], "--out: got nothing, expected"),
        (["litellm", "o.csv", "--out", "o.csv"], "--out: got 'o.csv', expected another file than the feed"),
        (["litellm", "feed.json", "--out", ""], "--out: got '.', expected the name of a CSV file"),
        (["skypilot", "feed.json", "--out", "o.csv", "--provider", "!"], "--provider: got '!', expected a name"),
        (["litellm", "feed.json", "--out", "o.csv", "--as-of", "soon"], "--as-of: got 'soon', expected an ISO date"),
    ],
)
def test_the_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    assert cli.main(["prices", "import", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {line}")
    assert err.count("\n") == 1


# Damaged files


#: Models of the shipped tables, so that any price of theirs that is far off can be known.
KNOWN = {
    "gpt-5": (1.25, 10.0),
    "claude-sonnet-4-6": (3.0, 15.0),
    "gpt-4.1": (2.0, 8.0),
}
SOLD_BY = {"gpt-5": "openai", "claude-sonnet-4-6": "anthropic", "gpt-4.1": "openai"}


def feed_of(form: str, scale: float) -> Any:
    """Write the known models in one format, all prices off by a factor."""
    if form == "litellm":
        return {
            name: chat(read * scale / 1e6, written * scale / 1e6, litellm_provider=SOLD_BY[name])
            for name, (read, written) in KNOWN.items()
        }
    if form == "genai-prices":
        return [
            {
                "id": SOLD_BY[name],
                "models": [{"id": name, "prices": {"input_mtok": r * scale, "output_mtok": w * scale}}],
            }
            for name, (r, w) in KNOWN.items()
        ]
    if form == "llm-prices":
        models = [
            {"id": name, "name": name, "price_history": [period(r * scale, w * scale)]}
            for name, (r, w) in KNOWN.items()
            if SOLD_BY[name] == "openai"
        ]
        return {"vendor": "openai", "models": models}
    data = [
        {
            "id": f"{SOLD_BY[name]}/{name}",
            "pricing": {"prompt": f"{r * scale / 1e6:.24f}", "completion": f"{w * scale / 1e6:.24f}"},
        }
        for name, (r, w) in KNOWN.items()
    ]
    return {"data": data}


@pytest.mark.parametrize("form", ["litellm", "genai-prices", "llm-prices"])
@pytest.mark.parametrize("power", [-9, -6, -5, -3, -2, -1, 1, 2, 3, 5, 6, 9, 200])
def test_a_slip_of_the_unit_never_passes(tmp_path: Path, form: str, power: int) -> None:
    assert len(imported(tmp_path, form, feed_of(form, 1)).offers) >= 4
    found = imported(tmp_path, form, feed_of(form, 10.0**power))
    assert found.offers == []
    assert {finding.kind for finding in found.findings} & {"scale", "shipped", "not-a-number"}


@pytest.mark.parametrize("power", [-9, -6, -5, 5, 6, 9])
def test_a_slip_of_the_unit_of_a_seller_that_the_tables_lack_never_passes(tmp_path: Path, power: int) -> None:
    assert imported(tmp_path, "openrouter", feed_of("openrouter", 10.0**power)).offers == []


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(10**400), st.just([[[[]]]]),
    st.just({}), st.just("=cmd()"), st.just(-1), st.just("\ud800"),
)  # fmt: skip


def mutated(value: Any, draw: Any) -> Any:
    """Replace one part of a JSON value, or rename one key."""
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        action = draw(st.sampled_from(["into", "into", "into", "rename", "replace"]))
        if action == "rename":
            return {(draw(st.text(max_size=8)) if k == key else k): v for k, v in value.items()}
        return {**value, key: draw(JUNK) if action == "replace" else mutated(value[key], draw)}
    if isinstance(value, list) and value:
        at = draw(st.integers(0, len(value) - 1))
        return [mutated(v, draw) if n == at else v for n, v in enumerate(value)]
    return draw(JUNK)


RICH = {
    "litellm": {
        "gpt-5": chat(
            1.25e-06, 1e-05, litellm_provider="openai", deprecation_date="2026-01-01",
            cache_read_input_token_cost=1.25e-07,
            tiered_pricing=[{"range": [0, 1000], "input_cost_per_token": 1.25e-06}],
            off_peak_pricing={"input_cost_per_token": 1e-06, "windows": []},
        )
    },
    "genai-prices": genai(
        [
            {"prices": {"input_mtok": {"base": 2, "tiers": [{"start": 1000, "price": 4}]}, "output_mtok": 8}},
            {"constraint": {"start_date": "2026-01-01"}, "prices": {"input_mtok": 1, "output_mtok": 2}},
            {"constraint": {"start_time": "1", "end_time": "2"}, "prices": {"input_mtok": 3, "output_mtok": 9}},
        ]
    ),
    "llm-prices": {
        "vendor": "v",
        "models": [{"id": "m-200k", "name": "m", "price_history": [period(1, 2, None, "2026-01-01"), period(2, 4)]}],
    },
    "openrouter": {
        "data": [
            {
                "id": "a/b",
                "architecture": {"output_modalities": ["text"]},
                "expiration_date": "2026-01-01",
                "pricing": {
                    "prompt": "0.000001",
                    "completion": "0.000004",
                    "request": "0",
                    "overrides": [{"min_prompt_tokens": 1000, "prompt": "0.000002"}],
                },
            }
        ]
    },
}  # fmt: skip


def sound_or_refused(tmp_path: Path, form: str, raw: bytes) -> None:
    """One line, or nothing absurd and both files written so that they can be read."""
    (tmp_path / "feed").write_bytes(raw)
    out = tmp_path / "own.csv"
    try:
        found = price_feeds.import_feed(form, tmp_path / "feed", today=TODAY, provider="cloudy")
    except InputError as error:
        refusal = str(error)
        assert "\n" not in refusal
        return
    price_feeds.write(found, out)
    for offer in found.offers:
        high = 100 * 8 if found.table == "node_prices" else 700
        assert 0 <= offer.value <= high
        assert offer.value == 0 or offer.value >= 0.0005
    schema = tables.SCHEMAS[found.table]
    assert len(tables.read_csv_strict(out, schema.columns)) == len(found.offers)
    lines = tables.read_csv_strict(price_feeds.report_path(out), price_feeds.REPORT_COLUMNS)
    assert len(lines) == len(found.findings)
    assert found.offers or found.findings


SETTINGS = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("form", RICH)
@SETTINGS
@given(data=st.data())
def test_mutated_json_gives_findings_or_one_line(tmp_path: Path, form: str, data: st.DataObject) -> None:
    content: Any = RICH[form]
    for _ in range(data.draw(st.integers(1, 3))):
        content = mutated(content, data.draw)
    text = json.dumps(content)
    if data.draw(st.integers(0, 9)) == 0:
        text = text[: data.draw(st.integers(0, len(text)))]
    sound_or_refused(tmp_path, form, text.encode())


@SETTINGS
@given(data=st.data())
def test_mutated_catalogs_give_findings_or_one_line(tmp_path: Path, data: st.DataObject) -> None:
    lines = [HEADER, row(spot="9", info="{'Gpus': 1}"), row("", "H100", zone="a"), "a3-highgpu-8g,,,1,1,9,1,us-x-1,a,"]
    raw = bytearray("\n".join(lines).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.binary(max_size=3) | st.sampled_from([b",", b'"', b"9", b"0", b"\n"])
        )
    sound_or_refused(tmp_path, "skypilot", bytes(raw))


def test_what_an_import_writes_is_a_price_file(tmp_path: Path) -> None:
    """Rows for what the tables lack are counted as unused, so a whole feed can be handed to --prices."""
    content = {
        "gpt-5": chat(1e-06, 8e-06, litellm_provider="openai"),
        "nobody-knows-1": chat(1e-06, 8e-06, litellm_provider="openai"),
    }
    found = imported(tmp_path, "litellm", content, as_of=tables.SNAPSHOT)
    price_feeds.write(found, tmp_path / "ours.csv")
    checked = tables.check_prices(tmp_path / "ours.csv")
    assert len(checked.prices.rows) == len(checked.unused) == 2
    assert tables.read_prices(tmp_path / "ours.csv") == checked.prices


def test_the_shipped_example_is_a_feed_with_errors_and_gives_a_price_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed, out = tables.DATA / "examples" / "litellm-2026-07-20.json", tmp_path / "ours.csv"
    assert cli.main(["prices", "import", "litellm", str(feed), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"scale", "alias", "not-text"} <= {line["kind"] for line in told["refused"]}
    checked = tables.check_prices(out)
    assert len(checked.prices.rows) + len(checked.unused) == len(told["rows"])
    assert (len(checked.prices.rows) > 10, checked.refused) == (True, ())
