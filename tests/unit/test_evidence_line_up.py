"""Decisions on named workloads: consistent with the model that they call."""

import numpy as np
import pytest

from analysis.evidence import line_up
from analysis.evidence.claims import rivals
from analysis.model import head_to_head as h2h
from analysis.reference.efficiency import efficiency, memory_rule
from analysis.reference.model_config import replica
from analysis.reference.tables import SNAPSHOT

NODE = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=8)
REACHED, RULE = efficiency(NODE, "vllm"), memory_rule("vllm")


@pytest.fixture(scope="module")
def found():
    return line_up.decisions(NODE, efficiency=REACHED, rule=RULE, slots=256).set_index("workload")


def test_every_workload_has_a_winner_that_leads(found):
    assert len(found) == len(line_up.WORKLOADS)
    assert (found["over_plain"] >= 1).all()
    assert (found["over_second"] >= 1).all()


def test_diffusion_wins_where_it_keeps_more_than_it_must(found):
    """The line-up keeps four tokens in a pass."""
    wins = found["winner"].str.startswith("diffusion")
    assert (wins == (found["tokens_to_win"] < 4)).all()
    assert wins["a question, alone"]
    assert not wins["the overnight queue"]


def test_speculation_wins_where_it_is_accepted_more_than_it_must(found):
    central = rivals.MEDIAN_ACCEPTANCE
    wins = found["winner"] == "speculation"
    assert (found.loc[wins, "acceptance_to_win"] <= central).all()
    assert (found.loc[~wins & (found["winner"] != "prompt look-up"), "acceptance_to_win"] > central).all()


def test_the_queue_fills_the_memory(found):
    assert 100 < found.loc["the overnight queue", "batch"] <= 256
    assert found.loc["a question, alone", "batch"] == 1


def test_a_full_node_counts_all_its_replicas():
    two = replica("llama-3.1-70b", "h100-sxm", as_of=SNAPSHOT, gpus=2, weights="fp8")
    load = {"input_tokens": 1000, "output_tokens": 300}
    frame = line_up.when_full(
        {"two": two}, {"two": efficiency(two, "vllm")}, **load, rule=RULE, slots=256, node_gpus=8
    ).set_index("rival")
    plain = frame.loc["one token at a time"]
    alone = h2h.best(two, h2h.one_by_one(), batch=plain["batch"], **load, efficiency=efficiency(two, "vllm"))
    assert plain["node_req_per_s"] == pytest.approx(4 * alone.req_per_s)
    assert plain["over_plain"] == 1
    assert frame.loc["speculation", "over_plain"] >= 1
    assert np.isfinite(frame["node_req_per_s"]).all()


def test_on_the_backbone_of_the_measured_canvas_the_passes_decide_the_lone_question():
    """17 passes beat drafts, 33 do not: the page must not show one without the other."""
    gemma = replica("gemma-4-26b-a4b", "h100-sxm", as_of=SNAPSHOT, weights="fp8")
    at = {"efficiency": efficiency(gemma, "vllm"), "rule": RULE, "slots": 256}
    with_17, with_33, without = (
        line_up.decisions(gemma, **at, canvas_passes=passes).set_index("workload").loc["a question, alone"]
        for passes in ((17.0,), (33.0,), ())
    )
    assert with_17["winner"] == "diffusion, canvas of 17 passes"
    assert with_33["winner"] == without["winner"] == "speculation"
    assert 256 / 33 < with_17["canvas_to_win"] < 256 / 17
    assert with_17["acceptance_to_win"] > with_33["acceptance_to_win"]


def test_gains_are_quotients_of_latencies():
    frame = line_up.gains(NODE, rivals.line_up(), batch=[1, 8], input_tokens=500, output_tokens=300, efficiency=REACHED)
    load = {"batch": 8.0, "input_tokens": 500, "output_tokens": 300, "efficiency": REACHED}
    plain, drafts = (h2h.best(NODE, each, **load).request_s for each in rivals.line_up()[:2])
    assert frame.loc["speculation", 8] == pytest.approx(plain / drafts)


def test_at_long_contexts_the_full_model_still_has_a_border():
    """The closed form gives blocks every batch from some 13,000 tokens on; attention over a block says otherwise."""
    found = line_up.long_contexts(
        NODE,
        input_tokens=[13_400, 60_000],
        output_tokens=300,
        batch=[32, 64],
        efficiency=REACHED,
        rule=RULE,
        slots=256,
    ).set_index("input_tokens")
    assert found.loc[13_400, "passes_32"] > 1 > found.loc[13_400, "passes_64"]
    assert found["ending"].tolist() == ["crosses", "ahead to the last"]
    assert found.loc[60_000, "room"] < 32
    assert np.isnan(found.loc[60_000, "passes_32"])
