"""The shipped tables: complete, sourced, unique and plausible."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import analysis
from analysis.inputs import InputError
from analysis.reference import efficiency, model_config, tables
from analysis.reference.specs import COMPUTE_FORMATS, MODEL_CLASSES, Accelerator
from analysis.units import BASE_UNITS_PER, BYTE_PER_GB, BYTE_PER_GIB

ACCELERATORS = {part.name: part for part in tables.accelerators(as_of=tables.SNAPSHOT)}
DATES = (tables.SNAPSHOT, tables.NEWEST)


def test_the_package_under_test_reads_the_tables_of_this_tree() -> None:
    assert Path(analysis.__path__[0]).parent == Path(__file__).parents[2] == tables.DATA.parent


@pytest.mark.parametrize("name", tables.SCHEMAS)
def test_every_table_is_valid_and_has_no_blank_where_none_may_be(name: str) -> None:
    """The reader refuses blanks, unknown sources and duplicates; here the shipped files pass it, all dates."""
    rows, schema = tables.all_rows(name), tables.SCHEMAS[name]
    required = [*(set(schema.keys) - schema.may_be_blank), "quantity", "unit", "source", "locator", "status"]
    assert not rows.empty
    assert not (rows[required] == "").any().any()
    assert not rows[["value", "as_of"]].isna().any().any()
    assert not rows.duplicated([*schema.keys, "quantity", "as_of"]).any()


def test_every_source_is_used() -> None:
    used = {model.source for model in tables.api_models().values()}
    used |= {model_config.origin(name)[0] for name in model_config.names()}
    for name in tables.SCHEMAS:
        used |= set(tables.all_rows(name)["source"])
    assert used == set(tables.sources().index)


def test_no_source_was_read_before_it_was_published() -> None:
    for key, source in tables.sources().iterrows():
        if "undated" not in (source["published"], source["read"]):
            published, read = (tables.parse_date(str(key), source[column]) for column in ("published", "read"))
            assert published <= read or source["published"].startswith(source["read"]), key


def test_an_assumption_says_why() -> None:
    for name in tables.SCHEMAS:
        rows = tables.all_rows(name)
        assert (rows[rows["status"] == "assumed"]["note"] != "").all()


def test_there_is_enough_to_choose_from() -> None:
    """At least 25 accelerators, 60 node prices, and 40 API offers priced at both dates."""
    offers = tables.all_rows("api_prices").query("quantity == 'price'")
    days = {key: set(group["as_of"]) for key, group in offers.groupby(["seller", "model"])}
    feeds = {date(2026, 7, 19), date(2026, 11, 20)}
    assert len(ACCELERATORS) >= 25
    assert len(tables.all_rows("node_prices")) >= 60
    assert sum(feeds <= known for known in days.values()) >= 40


# --- accelerators


@pytest.mark.parametrize("part", ACCELERATORS.values(), ids=ACCELERATORS)
def test_the_ridge_of_an_accelerator_is_sane(part: Accelerator) -> None:
    """Dense 16-bit ridge points run from 37 (H20) to 560 (TPU v6e); a sparse peak or a wrong unit leaves that range."""
    assert 30 < part.peak("bf16") / part.mem_bw_byte_per_s < 600
    assert 0.2e12 < part.mem_bw_byte_per_s < 9e12
    assert 15e9 < part.mem_capacity_byte < 310e9


#: Parts whose 8-bit floating point is no faster than 16-bit, by their makers' own pages.
NO_FP8_GAIN = {"tpu-v5p", "tpu-v6e", "gaudi3"}


@pytest.mark.parametrize("part", ACCELERATORS.values(), ids=ACCELERATORS)
def test_peaks_of_number_formats_are_multiples_of_each_other(part: Accelerator) -> None:
    """Halving the width doubles the rate; a mixture of dense and sparse figures breaks that by a factor of two."""
    peaks = part.peak_flop_per_s
    assert set(peaks) <= set(COMPUTE_FORMATS)
    if "fp8" in peaks:
        assert peaks["fp8"] / peaks["bf16"] == pytest.approx(1 if part.name in NO_FP8_GAIN else 2, rel=0.03)
    if "tf32" in peaks:
        assert peaks["tf32"] / peaks["bf16"] == pytest.approx(0.5, rel=1e-3)
    if "fp4" in peaks:
        assert 1.9 <= peaks["fp4"] / peaks["fp8"] <= 4.01


def test_form_factors_are_different_parts() -> None:
    """The H100 is three: the PCIe card has 24 % less compute and 39 % less bandwidth than the SXM module."""
    sxm, pcie, nvl = (ACCELERATORS[f"h100-{form}"] for form in ("sxm", "pcie", "nvl"))
    assert 1 - pcie.peak("bf16") / sxm.peak("bf16") == pytest.approx(0.24, abs=0.005)
    assert 1 - pcie.mem_bw_byte_per_s / sxm.mem_bw_byte_per_s == pytest.approx(0.39, abs=0.005)
    assert sxm.peak("bf16") > nvl.peak("bf16") > pcie.peak("bf16")
    assert nvl.mem_bw_byte_per_s > sxm.mem_bw_byte_per_s


def test_gigabytes_and_gibibytes_are_told_apart() -> None:
    """A card sold as 80 GB reports 81,559 MiB (nvidia-smi, read 2026-11-30), 85.52 GB and almost 80 GiB."""
    h100 = ACCELERATORS["h100-sxm"]
    assert h100.mem_capacity_byte / BYTE_PER_GB == pytest.approx(85.52, abs=0.005)
    assert h100.mem_capacity_byte / BYTE_PER_GIB == pytest.approx(79.65, abs=0.005)
    assert ACCELERATORS["tpu-v5p"].mem_capacity_byte == 95 * BYTE_PER_GIB


def test_the_driver_and_the_data_sheet_agree_within_the_two_meanings_of_a_gigabyte() -> None:
    rows = tables.table("accelerators", as_of=tables.SNAPSHOT).rows
    sizes = rows[rows["quantity"].str.startswith("mem_") & (rows["quantity"] != "mem_bw")]
    size = (sizes["value"] * sizes["unit"].map(BASE_UNITS_PER)).groupby([sizes["accelerator"], sizes["quantity"]]).sum()
    ratio = size.unstack()["mem_capacity"] / size.unstack()["mem_nominal"]
    assert ratio.dropna().between(0.99, 1.08).all()


def test_links_are_one_way() -> None:
    """NVLink 4 is sold as 900 GB/s, which is 450 each way."""
    assert ACCELERATORS["h100-sxm"].link_byte_per_s == 450e9
    assert ACCELERATORS["a100-sxm-80gb"].link_byte_per_s == 300e9
    assert ACCELERATORS["a10"].link_byte_per_s is None


def test_figures_without_a_sheet_are_called_assumed() -> None:
    assert ACCELERATORS["h100-nvl"].assumed >= {"peak_fp8"}
    assert ACCELERATORS["h20"].assumed == {"peak_fp8", "link_bw_both"}
    assert ACCELERATORS["tpu7x"].assumed == {"mem_bw"}
    assert not ACCELERATORS["h100-sxm"].assumed


# --- nodes and their prices


def test_every_priced_instance_is_a_known_node_of_a_known_accelerator() -> None:
    prices, nodes = tables.all_rows("node_prices"), tables.all_rows("nodes")
    assert set(zip(prices["provider"], prices["instance"], strict=True)) == set(
        zip(nodes["provider"], nodes["instance"], strict=True)
    )
    assert set(nodes["accelerator"]) <= set(ACCELERATORS)
    assert set(nodes["value"]) <= {1, 2, 4, 8}


def test_a_node_is_known_on_every_day_on_which_it_has_a_price() -> None:
    for day in DATES:
        prices, nodes = (tables.table(name, as_of=day).rows for name in ("node_prices", "nodes"))
        assert set(prices["instance"]) == set(nodes["instance"])


def test_the_price_of_one_accelerator_for_an_hour_is_sane() -> None:
    """From 0.74 USD (a rented RTX 4090) to 26 (a B300 in the dearest region); a total taken for one GPU leaves that."""
    count = tables.all_rows("nodes").set_index(["provider", "instance"])["value"]
    prices = tables.all_rows("node_prices")
    per_gpu = prices["value"] / [count[key] for key in zip(prices["provider"], prices["instance"], strict=True)]
    assert per_gpu.between(0.5, 30).all()


def test_no_offer_is_far_below_the_others_of_its_kind() -> None:
    """A committed price that a feed passes off as on-demand shows as less than 60 % of the median."""
    rows = tables.all_rows("node_prices").query("term == 'on-demand'")
    median = rows.groupby(["provider", "instance"])["value"].transform("median")
    assert (rows["value"] >= 0.6 * median).all()


def test_p5_fell_from_98_to_55_in_june_2025() -> None:
    rows = tables.all_rows("node_prices").query(
        "instance == 'p5.48xlarge' and region == 'us-east-1' and term == 'on-demand'"
    )
    rows = rows[rows["as_of"] <= tables.SNAPSHOT]
    before = rows[rows["as_of"] <= tables.parse_date("day", "2025-06-04")]
    assert set(before["value"]) == {98.32}
    assert set(rows["value"]) - set(before["value"]) == {55.04}


def test_the_articles_price_is_quoted_with_its_range() -> None:
    node = tables.node("p5.48xlarge", as_of=tables.SNAPSHOT)
    price = node.price(term="plan-1yr")
    assert (price.value, price.low, price.high, price.status, price.source) == (33, 32.5, 33.5, "quoted", "radar2026")
    assert node.price(term="reserved-1yr-estimate").status == "assumed"


def test_singapore_rents_a100_and_no_h100() -> None:
    rows = tables.all_rows("node_prices").query("region == 'ap-southeast-1'")
    assert {key.split(".")[0] for key in rows["instance"]} == {"p4d", "p4de"}


def test_a_node_price_needs_its_region_where_several_have_one() -> None:
    node = tables.node("p5.48xlarge", as_of=tables.SNAPSHOT)
    assert node.price(term="on-demand", region="us-west-2").value == 55.04
    with pytest.raises(InputError, match=r"region: got nothing.*us-east-1"):
        node.price(term="on-demand")
    with pytest.raises(InputError, match="'ap-southeast-1'"):
        node.price(term="on-demand", region="ap-southeast-1")
    with pytest.raises(InputError, match=r"'plan-3yr'.*plan-1yr"):
        node.price(term="plan-3yr")


def test_an_instance_name_of_several_providers_needs_the_provider() -> None:
    with pytest.raises(InputError, match="differ in provider"):
        tables.node("h100-sxm", as_of=tables.NEWEST)
    assert tables.node("h100-sxm", provider="nebius", as_of=tables.NEWEST).price(term="on-demand").value == 3.85


# --- API prices


def test_api_prices_use_the_known_words() -> None:
    rows = tables.all_rows("api_prices")
    assert set(rows["token_kind"]) == {"input", "output", "cached-input"}
    assert set(rows["tier"]) == {"standard", "batch", "above-200k", "above-272k"}


def test_every_model_sold_has_a_class_and_every_class_a_model() -> None:
    assert set(tables.all_rows("api_prices")["model"]) == set(tables.api_models())
    assert {model.model_class for model in tables.api_models().values()} == set(MODEL_CLASSES)


@pytest.mark.parametrize("day", DATES)
def test_api_prices_are_plausible(day: date) -> None:
    """No feed slip of 1,000 or 100,000; cached input is no dearer than input, batch no dearer than standard."""
    prices = tables.table("api_prices", as_of=day).rows
    assert prices["value"].between(0.001, 300).all()
    by_kind = prices.set_index(["seller", "model", "tier", "token_kind"])["value"].unstack()
    assert (by_kind["cached-input"] < by_kind["input"])[by_kind["cached-input"].notna()].all()
    assert (by_kind["output"] >= by_kind["input"])[by_kind["output"].notna()].all()
    by_tier = prices.set_index(["seller", "model", "token_kind", "tier"])["value"].unstack()
    assert (by_tier["batch"] <= by_tier["standard"])[by_tier["batch"].notna()].all()
    for long in ("above-200k", "above-272k"):
        assert (by_tier[long] > by_tier["standard"])[by_tier[long].notna()].all()


def test_every_offer_prices_input_and_output() -> None:
    for day in DATES:
        prices = tables.api_prices(as_of=day).rows
        standard = prices[prices["tier"] == "standard"]
        kinds = standard.groupby(["seller", "model"])["token_kind"].agg(set)
        assert all({"input", "output"} <= offer for offer in kinds)


def test_known_prices_of_the_two_dates() -> None:
    """Read from the feeds of 2026-07-19 and 2026-11-20: a cut, a withdrawn offer, a corrected one."""

    def output(day: date, **keys: str) -> float:
        return float(tables.api_prices(as_of=day).one(token_kind="output", tier="standard", **keys)["value"])

    assert output(tables.SNAPSHOT, seller="openai", model="gpt-5.6-luna") == 6
    assert output(tables.NEWEST, seller="openai", model="gpt-5.6-luna") == 1.2
    assert output(tables.SNAPSHOT, seller="groq", model="llama-3.3-70b") == 0.79
    with pytest.raises(InputError, match=r"llama-3.3-70b"):
        output(tables.NEWEST, seller="groq", model="llama-3.3-70b")
    with pytest.raises(InputError, match="wandb-coreweave"):
        output(tables.SNAPSHOT, seller="wandb-coreweave", model="llama-3.3-70b")


# --- owning


def test_a_node_of_each_kind_can_be_bought_and_every_shared_cost_has_a_value() -> None:
    rows = tables.table("ownership", as_of=tables.SNAPSHOT).rows
    bought = sorted(set(rows["hardware"]) - {"any"})
    assert bought == ["dgx-b200", "dgx-h100", "hgx-h100", "hgx-h200"]
    for hardware in bought:
        node = tables.ownership(hardware, as_of=tables.SNAPSHOT)
        assert 20_000 < node.purchase_usd / 8 < 60_000
        assert 8 * 0.7 < node.power_kw < 8 * 2
        assert node.staff_usd_per_year == 0


def test_every_assumed_cost_of_owning_has_a_range() -> None:
    rows = tables.all_rows("ownership")
    shared = rows[rows["hardware"] == "any"]
    assert shared[["low", "high"]].notna().all().all()


def test_the_nodes_that_can_be_bought_are_found_by_accelerator_and_count() -> None:
    h200 = tables.node("p5en.48xlarge", as_of=tables.SNAPSHOT)
    assert tables.hardware_like(h200, as_of=tables.SNAPSHOT) == ["hgx-h200"]
    one = tables.node("p5.4xlarge", as_of=tables.NEWEST)
    assert tables.hardware_like(one, as_of=tables.NEWEST) == []


# --- how fast APIs answer


def test_latencies_are_plausible_and_add_up() -> None:
    """In the listing of June 2026 the whole answer is the wait for its first token plus 500 over the rate."""
    listing = tables.api_latency(as_of=tables.SNAPSHOT)
    assert listing["ttft_s"].dropna().between(0.05, 150).all()
    assert listing["output_tok_per_s"].dropna().between(10, 2000).all()
    whole = listing[listing["source"] == "aa-2026-06"]
    assert len(whole) == 54
    sum_of_parts = whole["ttfat_s"] + 500 / whole["output_tok_per_s"]
    assert (whole["e2e_s"] - sum_of_parts).abs().max() < 0.02
    assert (whole["ttfat_s"] >= whole["ttft_s"]).all()


def test_no_listed_model_answered_500_tokens_within_a_second() -> None:
    """The article's best unspoken argument: the fastest of 54 models took 2.55 seconds (Amazon Nova Micro)."""
    listing = tables.api_latency(as_of=tables.SNAPSHOT)
    fastest = listing.loc[listing[listing["source"] == "aa-2026-06"]["e2e_s"].idxmin()]
    assert (fastest["model"], fastest["e2e_s"]) == ("nova-micro", 2.55)


def test_latency_covers_each_class_that_the_book_argues_about() -> None:
    listing = tables.api_latency(as_of=tables.SNAPSHOT)
    assert {"commodity", "frontier", "diffusion"} <= set(listing["class"])
    assert (listing["thinking"].isin(["high", "xhigh", "max", "on"])).sum() >= 10


def test_the_wait_for_a_model_names_who_was_measured() -> None:
    found = tables.ttft("mercury-2", as_of=tables.SNAPSHOT)
    assert found is not None
    assert (found["api_ttft_s"], found["api_ttft_seller"]) == (0.7, "inception")
    assert tables.ttft("o3", as_of=tables.SNAPSHOT) is None


# --- groups


def test_every_group_has_constants() -> None:
    """A family of accelerators has shares of both peaks, a class of engines the time of a layer."""
    for (kind, name), group in efficiency._groups().items():
        needed = {"accelerator": (f"{group}.mbu", f"{group}.mfu"), "engine": (f"{group}.layer",), "link": ()}[kind]
        assert set(needed) <= set(efficiency.constants()), name


# --- rules


def test_rules_say_yes_or_no() -> None:
    assert set(tables.all_rows("rules")["value"]) == {0, 1}


def test_tariffs_have_the_kinds_of_one_seller() -> None:
    batch = tables.tariffs("gpt-5", as_of=tables.NEWEST, tier="batch")["openai"]
    standard = tables.tariffs("gpt-5", as_of=tables.NEWEST)["openai"]
    assert batch.output_usd_per_mtok == standard.output_usd_per_mtok / 2 == 5
    assert tables.tariffs("llama-3.3-70b", as_of=tables.SNAPSHOT)["groq"].cached_usd_per_mtok is None
    with pytest.raises(InputError, match="one in api_prices as of 2026-07-20: gpt-5"):
        tables.tariffs("gpt-55", as_of=tables.SNAPSHOT)
