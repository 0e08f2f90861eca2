"""Doors refuse with name, value and expectation; what they accept they return unchanged."""

from pathlib import Path

import numpy as np
import pytest

from analysis.inputs import (
    InputError,
    Words,
    fraction,
    not_negative,
    or_one_line,
    positive,
    scalar_or_array,
    share,
    show,
    whole,
    write_files,
)


@pytest.mark.parametrize(
    ("door", "inside", "outside"),
    [
        (positive, [1e-300, 1, 1e300], [0, -1]),
        (not_negative, [0, 1], [-1e-9]),
        (fraction, [1e-9, 1], [0, 1.2, -0.1]),
        (share, [0, 0.5, 1], [-0.1, 1.0001]),
        (whole, [1, 2, 1e6], [0, 1.5, -1]),
    ],
)
def test_door_accepts_its_domain_and_names_the_first_value_outside(door, inside, outside):
    assert door("x", inside).tolist() == [float(v) for v in inside]
    for value in [*outside, np.nan, np.inf, -np.inf]:
        with pytest.raises(InputError, match=r"^x: got ") as refusal:
            door("x", [inside[0], value])
        assert refusal.value.got == pytest.approx(value, nan_ok=True)
        assert refusal.value.expected == door.expected


@pytest.mark.parametrize("text", ["1_000", " 1", "1 ", "", "0x10", "١", "1e", "--1", "one", "1,5", "nan", "inf"])
def test_parse_takes_plain_decimal_notation_only(text):
    """Python's float would take the first three and the digits of any script."""
    with pytest.raises(InputError, match=r"^--x: got .*, expected a number above 0$"):
        positive.parse("--x", text)


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("1.", 1), (".5", 0.5), ("+2", 2), ("1e-3", 1e-3), ("1E3", 1e3)])
def test_parse_reads_plain_numbers(text, value):
    assert positive.parse("--x", text) == value


def test_text_and_objects_are_refused_not_converted():
    with pytest.raises(InputError, match="x: got 'half', expected a number above 0"):
        positive("x", "half")
    with pytest.raises(InputError):
        positive("x", None)


def test_a_refusal_is_one_line_whatever_the_value():
    refusal = InputError("x", "a\nb\x00" * 100, "less")
    assert "\n" not in str(refusal)
    assert "\x00" not in str(refusal)
    assert len(str(refusal)) < 120
    assert show(Words("an unknown option")) == "an unknown option"
    assert str(refusal.at("--y")).startswith("--y: got ")


def test_scalars_stay_scalars():
    assert isinstance(scalar_or_array(np.array(2.0)), float)
    assert scalar_or_array(np.array([2.0])).shape == (1,)


def test_files_appear_whole_together_or_not_at_all(tmp_path: Path) -> None:
    """The second one has no folder to lie in, so the first is as it was and nothing is left beside it."""
    (tmp_path / "a").write_text("old")
    with pytest.raises(InputError, match="b: got No such file or directory, expected a file that can be written"):
        write_files([(tmp_path / "a", "new"), (tmp_path / "absent" / "b", "new")])
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]
    write_files([(tmp_path / "a", "new\n"), (tmp_path / "b", "new\n")])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"new\n", "b": b"new\n"}


def test_a_file_that_is_replaced_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path: Path) -> None:
    (tmp_path / "old").touch(mode=0o600)
    (tmp_path / "usual").touch()
    write_files([(tmp_path / "old", ""), (tmp_path / "new", "")])
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_maintainers_command_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        raise InputError("data/x.csv", Words("Read-only file system"), "a file that can be written")

    with pytest.raises(SystemExit) as ended:
        or_one_line(command)
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err == "error: data/x.csv: got Read-only file system, expected a file that can be written\n"
    )
