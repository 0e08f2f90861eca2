"""The predicates of chapter 2 on numbers worked out by hand."""

import numpy as np
import pytest

from analysis.evidence.claims import roofline
from analysis.evidence.claims.ledger import verdicts
from analysis.evidence.claims.registry import REGISTRY, Context
from analysis.evidence.claims.verdict import share_and_verdict
from analysis.evidence.scenarios import fixed
from analysis.reference.tables import NEWEST, SNAPSHOT

TODAY = Context(SNAPSHOT)
PLAIN = {"bytes_per_weight": np.array([2.0, 1.0, 0.5]), "kv_byte_per_weight": 0.0, "kv_flop_per_byte": 1.0}


def one(claim_id, **point):
    """Ask one claim about one point: true or false, and the number behind it."""
    outcome = REGISTRY[claim_id].test({name: np.array([value]) for name, value in point.items()}, TODAY)
    return bool(np.ravel(outcome.true)[0]), float(np.ravel(outcome.value)[0])


def test_intensity_by_format_without_a_cache():
    """2 operations over 2, 1 and half a byte."""
    assert roofline.stream_intensity(PLAIN).tolist() == [1, 2, 4]


def test_a_cache_pulls_the_intensity_towards_its_own():
    """As many cache bytes as weight bytes, with 7 operations on each: (2 + 2 * 7) / (2 + 2) = 4."""
    point = {"bytes_per_weight": 2.0, "kv_byte_per_weight": 2.0, "kv_flop_per_byte": 7.0}
    assert roofline.stream_intensity(point) == 4


@pytest.mark.parametrize(("bytes_per_weight", "near"), [(2.0, True), (1.0, True), (0.5, False)])
def test_near_one_is_half_to_twice(bytes_per_weight, near):
    point = {"bytes_per_weight": bytes_per_weight, "kv_byte_per_weight": 1e-9, "kv_flop_per_byte": 1.0}
    assert one("C08", **point)[0] == near


def test_a_pass_of_a_mixture_reads_its_share():
    """A twentieth of the weights, a tenth of which is looked up: 4.5 %."""
    common = {"looked_up_share": 0.1, "active_share": 0.05, "streams": 1, "tokens_per_pass": 1.0}
    assert one("C05", kind="mixture of experts", **common) == (False, pytest.approx(0.045))
    assert one("C05", kind="dense", **common) == (True, pytest.approx(0.9))


@pytest.mark.parametrize("change", [{"streams": 2}, {"tokens_per_pass": 2.0}], ids=["two streams", "two drafts kept"])
def test_sharing_a_pass_ends_the_reading_for_every_token(change):
    claim = REGISTRY["C05"]
    assert share_and_verdict(claim, fixed(claim.space(TODAY), **change), TODAY)[1] == "fails"


def test_a_small_model_on_many_chips_and_a_wafer():
    """8 GPUs with 256 MB hold a model of 2 billion weights in 4 bit (1 GB); one of 70 billion in 16 bit needs 140."""
    node = {"on_chip_byte": 256e6, "inner_levels": 1.0, "gpus": 8}
    assert one("C06", **node, params=2e9, bytes_per_weight=0.5) == (False, pytest.approx(1 / 2.048))
    assert one("C06", **node, params=70e9, bytes_per_weight=2.0) == (True, pytest.approx(140 / 2.048))
    wafer = {"on_chip_byte": 44e9, "inner_levels": 1.0, "gpus": 1}
    assert not one("C06", **wafer, params=8e9, bytes_per_weight=2.0)[0]


def test_one_stream_on_the_leanest_gpu_and_a_prompt():
    """The H20's ridge is 37 in 16 bit: one position in 16 bit waits 37 times as long for memory, 74 none at all."""
    stream = {"gpu": "h20 bf16", "bytes_per_weight": 2.0, "kv_byte_per_weight": 1e-12, "kv_flop_per_byte": 1.0}
    ideal = {"mfu": 1.0, "mbu": 1.0}
    assert one("C07", **stream, **ideal, positions=1) == (True, pytest.approx(37))
    assert one("C07", **stream, **ideal, positions=74) == (False, pytest.approx(0.5))


def test_weights_wider_than_the_unit_computes_are_no_case():
    point = {"gpu": ["h100-sxm fp8"], "bytes_per_weight": [2.0], "kv_byte_per_weight": [0.1], "kv_flop_per_byte": [1.0]}
    point |= {"mfu": [1.0], "mbu": [1.0], "positions": [1]}
    outcome = REGISTRY["C07"].test({name: np.array(value) for name, value in point.items()}, TODAY)
    assert not outcome.defined.any()


@pytest.mark.parametrize(
    ("gpu", "true", "ridge"),
    [
        ("h100-sxm bf16", True, 295.3),
        ("h20 bf16", False, 37),
        ("b300-sxm int8", False, 19.8),
        ("gb200 fp4", False, 1250),
    ],
)
def test_hundreds_by_part(gpu, true, ridge):
    """989.4 / 3.35; 148 / 4; 153.5 / 7.75; 10,000 / 8."""
    assert one("C09", gpu=gpu, faster_memory=1.0) == (true, pytest.approx(ridge, rel=2e-3))


def test_only_gpus_are_asked_about_hundreds():
    assert not [name for name in roofline.gpu_ridges(as_of=SNAPSHOT) if name.startswith(roofline.NOT_GPUS)]


@pytest.mark.parametrize("as_of", [SNAPSHOT, NEWEST])
def test_the_parts_that_fail_are_named(as_of):
    (found,) = verdicts(as_of=as_of, only="C09")
    assert found.boundary.true_when == "is not"
    assert "h20 bf16" in found.decided_by
    assert "h100-sxm bf16" not in found.decided_by


def test_every_format_has_a_width():
    formats = {name.split()[1] for name in roofline.gpu_ridges(as_of=NEWEST)}
    assert formats <= set(roofline.FORMAT_BYTES)
