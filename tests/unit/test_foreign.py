"""Anybody's measurements: spellings are forgiven, what is unknown is skipped with the reason, damage is refused."""

import pytest

from analysis.evidence import foreign
from analysis.evidence.cases import shipped_cases
from analysis.evidence.validation import by_regime, errors
from analysis.inputs import InputError

HEADER = (
    "id,model,weights_dtype,gpu,n_gpus,tp,engine,engine_version,batch_or_concurrency,"
    "input_tokens,output_tokens,metric,value,unit,regime,note"
)
GOOD = "a,Llama 3.1 70B,FP8,H100 SXM,8,8,vLLM,0.10,4,1024,1024,tpot_s,0.0091,s,,"


@pytest.fixture
def read(tmp_path):
    def run(*rows, header=HEADER, raw=None):
        path = tmp_path / "own.csv"
        path.write_bytes(raw if raw is not None else "\n".join((header, *rows, "")).encode())
        return foreign.read(path)

    return run


def test_spellings_are_forgiven(read):
    (case,), skipped = read(GOOD)
    assert not skipped
    m = case.measured
    assert (m.model, m.accelerator, m.engine, m.weights) == ("llama-3.1-70b", "h100-sxm", "vllm", "fp8")
    assert case.regime == "batching_dense"


def test_a_row_is_predicted_as_the_shipped_row_of_the_same_conditions(read):
    """infx-001 and its kin: 70B in 8 bit on H100; lengths here are exact, there upper ends."""
    (case,), _ = read(GOOD)
    (row,) = errors([case]).to_dict("records")
    assert row["predicted"] == pytest.approx(0.0095, rel=0.03)
    assert row["error"] == pytest.approx(row["predicted"] / row["measured"] - 1)


def test_milliseconds_are_seconds(read):
    (first,), _ = read(GOOD)
    (second,), _ = read(GOOD.replace("0.0091,s", "9.1,ms"))
    assert second.measured.value == pytest.approx(first.measured.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("Llama 3.1 70B", "Own-7B"), "own-7b"),
        (("H100 SXM", "Cray-1"), "cray-1"),
        (("vLLM,0.10", "my-engine,1"), "my-engine"),
        (("vLLM,0.10", ","), "engine not given"),
        (("tpot_s", "joules"), "joules"),
        ((",4,1024", ",many,1024"), "many"),
        (("0.0091,s,,", "0.0091,s,,SUSPECT: twice its neighbours"), "contradicts itself"),
        (("0.0091,s,,", "0.0091,s,,MTP3 SPECULATIVE"), "speculative"),
        (("0.0091,s,,", "0.0091,s,,TP4PP2"), "pipeline"),
        (("tpot_s", "ttft_s"), "queue"),
        (("0.0091", "-1"), "-1"),
        (("0.0091", "nan"), "nan"),
        (("0.0091,s", "0.0091,h"), "'h'"),
        (("8,8,vLLM", "8,3,vLLM"), "tp: got 3"),
        (("FP8,H100 SXM,8,8", "bf16,H100 SXM,1,1"), "fit"),
        (("FP8", "int3"), "int3"),
        ((",1024,1024,", ",,1024,"), "prompts"),
        ((",1024,1024,", ",1024,,"), "answers"),
    ],
)
def test_what_is_not_known_is_skipped_with_the_reason(read, change, reason):
    damaged = GOOD.replace(*change)
    assert damaged != GOOD
    cases, skipped = read(damaged, GOOD)
    assert len(cases) == 1
    assert [row["id"] for row in skipped] == ["a"]
    assert reason.lower() in skipped[0]["reason"].lower()


@pytest.mark.parametrize(
    ("engine", "version", "note", "name"),
    [
        ("TensorRT-LLM", "0.8.0", "", "tensorrt-llm-session"),
        ("TensorRT-LLM", "0.17", "", "tensorrt-llm"),
        ("NIM (TensorRT-LLM)", "1.3.0", "", "tensorrt-llm"),
        ("vLLM", "2023-11", "", "vllm-2023"),
        ("vLLM", "0.6.4", "run with --enforce-eager", "vllm-eager"),
    ],
)
def test_releases_that_worked_in_another_way_have_their_own_class(read, engine, version, note, name):
    (case,), _ = read(GOOD.replace("vLLM,0.10", f"{engine},{version}").replace("s,,", f"s,,{note}"))
    assert case.measured.engine == name


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b"", "row 1: got nothing"),
        (b"model,gpu\na,b\n", "a column metric"),
        (f"{HEADER}\n{GOOD}caf".encode() + b"\xe9\n", "UTF-8"),
    ],
    ids=["empty", "without a column", "not UTF-8"],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(read, raw, named):
    with pytest.raises(InputError, match=named):
        read(raw=raw)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        foreign.read(tmp_path / "absent.csv")


def test_regimes_are_told_apart_by_what_was_measured(read):
    cases, skipped = read(
        GOOD.replace(",4,1024", ",1,1024"),
        GOOD.replace(",4,1024,1024,tpot_s,0.0091,s", ",max,1024,1024,output_tokens_per_s_total,5000,tok/s"),
        GOOD.replace(",4,1024,1024,tpot_s", ",1,1024,1,ttft_s"),
        GOOD.replace("Llama 3.1 70B,FP8", "gpt-oss-120b,mxfp4"),
    )
    assert not skipped
    assert [case.regime for case in cases] == ["single_stream_dense", "max_load_dense", "prefill_dense", "batching_moe"]
    in_order = ["single_stream_dense", "batching_moe", "max_load_dense", "prefill_dense"]
    assert list(by_regime(errors(cases)).index) == in_order


def test_the_shipped_rows_hold_what_their_column_says():
    """A guard for the table itself: static engines are never scored as continuous ones, layer splits never."""
    for case in shipped_cases()[0]:
        assert case.measured.layout in ("tp", "tp-ep", "dp-attention")
        assert case.measured.value > 0
