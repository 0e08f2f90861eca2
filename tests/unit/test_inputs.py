"""Doors refuse with name, value and expectation; what they accept they return unchanged."""

import numpy as np
import pytest

from analysis.inputs import InputError, Words, fraction, not_negative, positive, scalar_or_array, share, show, whole


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
