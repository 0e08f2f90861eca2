"""Published figures of diffusion, speculation and scaling: each agrees with its neighbours and is possible."""

import pytest

from analysis.inputs import InputError
from analysis.reference import decoder_tables, model_config, tables

DIFFUSION = decoder_tables.diffusion()
SPECULATION = decoder_tables.speculation()

#: The ratios that the sources print themselves, beside the rates that they print (vLLM post and recipe of June 2026,
#: LLaDA2.2 report, Fast-dLLM tables): a rate typed wrong breaks its ratio.
PRINTED = {
    "dg-h100-diffusion": 5.1,
    "dg-h200-diffusion": 6.0,
    "dg-h100-mtp": 2.0,
    "dg-h200-mtp": 2.0,
    "dg-recipe-diffusion": 1.9,
    "dg-recipe-diffusion-decode": 6.3,
    "fd12-llada-gsm8k-5-shot-256-cache-parallel": 8.1,
    "fd12-llada-gsm8k-5-shot-512-cache-parallel": 11.0,
    "fd34-llada-gsm8k-8-shot-1024-dual-cache-parallel": 27.6,
}


@pytest.mark.parametrize(("setting", "ratio"), PRINTED.items())
def test_a_ratio_is_the_quotient_of_its_rates(setting, ratio):
    (row,) = DIFFUSION[DIFFUSION["id"] == setting].itertuples()
    assert row.gain == pytest.approx(ratio, abs=0.051)


def test_settings_are_one_row_each_and_baselines_exist():
    for frame in (DIFFUSION, SPECULATION):
        assert frame["id"].is_unique
    assert set(DIFFUSION["against"]) - {""} <= set(tables.all_rows("diffusion")["id"])


def test_backbones_are_shipped_and_accelerators_known_or_named_as_missing():
    shipped = set(model_config.names())
    known = set(tables.all_rows("accelerators")["accelerator"])
    #: parts without a data sheet in accelerators.csv: their rows stand for ratios of rates alone
    without_sheet = {"h800", "a800", "rtx-3090", "m1-ultra", ""}
    for frame in (DIFFUSION, SPECULATION):
        assert set(frame["backbone"]) - {""} <= shipped
        assert set(frame["accelerator"]) - known <= without_sheet


def test_tokens_per_pass_are_possible():
    """A pass keeps at most what it drafts and the token of the target; a block at most its own length."""
    drafted = SPECULATION[SPECULATION["tokens_per_pass"].notna() & SPECULATION["draft_length"].notna()]
    assert len(drafted) > 250
    assert (drafted["tokens_per_pass"] <= drafted["draft_length"] + 1).all()
    assert (SPECULATION["tokens_per_pass"].dropna() >= 1).all()
    blocks = DIFFUSION[DIFFUSION["tokens_per_pass"].notna() & DIFFUSION["block_tokens"].notna()]
    assert (blocks["tokens_per_pass"] <= blocks["block_tokens"]).all()


def test_no_used_speed_up_is_above_its_own_tokens_per_pass():
    """A pass with drafts is never cheaper than one without, so a gain above the tokens per pass is an error."""
    both = SPECULATION[SPECULATION["tokens_per_pass"].notna() & SPECULATION["gain"].notna()]
    assert len(both) > 300
    assert (both["gain"] <= both["tokens_per_pass"] * 1.001).all()


def test_rows_left_out_are_those_that_break_it():
    """25 runs of Llama-4-Scout beat their own tokens per pass: they keep the tokens and lose the rates."""
    rows = tables.all_rows("speculation")
    left_out = rows[rows["unused"] == "above-tokens-per-pass"]
    wide = left_out.pivot_table(index="id", columns="quantity", values="value")
    tokens = rows[rows["quantity"] == "tokens_per_pass"].set_index("id")["value"]
    rates = wide.dropna(subset=["output_rate", "baseline_rate"])
    assert (rates["output_rate"] / rates["baseline_rate"] > tokens[rates.index]).all()
    assert set(left_out["model"]) == {"llama-4-scout"}


def test_eagle3_falls_with_the_batch_as_printed():
    """Tables 3 of EAGLE-3: 1.81 at batch 2, 1.38 at 64; EAGLE is below 1 from 24 on."""
    table = SPECULATION[(SPECULATION["source"] == "eagle3") & (SPECULATION["accelerator"] == "h100-sxm")]
    gain = table.pivot_table(index="method", columns="batch", values="gain")
    assert (gain.loc["eagle-3", 2], gain.loc["eagle-3", 64]) == (1.81, 1.38)
    assert (gain.loc["eagle", gain.columns >= 24] < 1).all()
    assert (gain.loc["eagle", gain.columns < 24] > 1).all()


def test_a_claim_of_a_maker_is_no_measurement():
    closed = DIFFUSION[DIFFUSION["method"] == "closed"]
    assert set(closed[closed["id"] != "mercury-small-api"]["status"]) <= {"reported", "quoted"}
    assert DIFFUSION[DIFFUSION["source"].str.startswith("llada2")]["status"].eq("reported").all()


def test_training_compute_of_llada_is_six_n_d():
    """Table 18: 1B parameters on 37.75B tokens are 2.2e20 FLOP, so the smallest point is that one."""
    points = decoder_tables.scaling("llada")
    assert points["training_flop"].min() == pytest.approx(2.2e20)
    assert points["value"].between(0, 100).all()
    assert set(points["task"]) == {"mmlu", "cmmlu", "arc-c", "piqa", "gsm8k", "humaneval"}


def test_losses_fall_with_compute_and_diffusion_is_above():
    points = decoder_tables.scaling("smdm").query("quantity == 'loss'")
    loss = points.pivot_table(index="training_flop", columns="decoder", values="value")
    assert (loss.diff().dropna() < 0).all().all()
    assert (loss["diffusion"] > loss["ar"]).all()


def test_an_unknown_study_or_coefficient_is_refused():
    with pytest.raises(InputError, match="study: got 'chinchila'"):
        decoder_tables.scaling("chinchila")
    with pytest.raises(InputError, match=r"coefficient: got 'compute-gab'.*compute-gap"):
        decoder_tables.scaling_coefficient("smdm", "optimal", "compute-gab")
