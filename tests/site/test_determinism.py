"""The same on every machine: stored outputs and pages do not depend on threads, clock, language, hashes or processor.

Each run takes as long as all chapters do; ``make soak`` runs them before a release.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path

import pytest
from numpy._core import _multiarray_umath as numpy_build

from analysis.evidence import calibration
from analysis.publish import notebooks, report, site
from analysis.publish.notebooks import ROOT

pytestmark = pytest.mark.soak

#: What this processor has beyond what every build of NumPy needs; without it the loops of a plainer processor run.
FEATURES = [name for name in numpy_build.__cpu_dispatch__ if numpy_build.__cpu_features__[name]]
PLACES = {
    "one thread, far east, hashes of 1": {
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
        "TZ": "Pacific/Kiritimati",
        "PYTHONHASHSEED": "1",
    },
    "four threads, far west, another language, hashes of 4242": {
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "4"),
        "TZ": "Pacific/Pago_Pago",
        "LC_ALL": "C",
        "LANG": "tr_TR.UTF-8",
        "PYTHONHASHSEED": "4242",
    },
    "an old processor": {"NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES), "OPENBLAS_CORETYPE": "Nehalem"},
}


def differences(left: Path, right: Path, at: str = "") -> list[str]:
    """List the files of two folders that differ, or that only one of them has."""
    both = filecmp.dircmp(left, right, ignore=[])
    unequal = filecmp.cmpfiles(left, right, both.common_files, shallow=False)[1:]
    found = [*both.left_only, *both.right_only, *unequal[0], *unequal[1]]
    below = [d for name in both.common_dirs for d in differences(left / name, right / name, f"{at}{name}/")]
    return [f"{at}{name}" for name in found] + below


@pytest.mark.parametrize("place", PLACES)
def test_stored_outputs_are_those_of_another_machine(place: str) -> None:
    if place == "an old processor" and not FEATURES:
        pytest.skip("this processor has no more than NumPy's baseline")
    changed, failed = notebooks.refresh(notebooks.chapters(), write=False, environment=PLACES[place])
    assert failed == []
    assert [path.name for path in changed] == []


def test_sites_of_two_folders_and_two_places_are_the_same_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another path, another time zone, other hashes, files of another day: no page may show any of it."""
    built = []
    for folder, place in zip(("here", "some other place/b"), list(PLACES.values())[:2], strict=True):
        tree = tmp_path / folder
        for part in (*report.PARTS, "analysis", "data"):
            source = ROOT / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            (tree / part).parent.mkdir(parents=True, exist_ok=True)
            copy(source, tree / part)
        for path in tree.rglob("*"):
            os.utime(path, (1e9 + len(built) * 1e8,) * 2)
        for name, value in place.items():
            monkeypatch.setenv(name, value)
        built.append(site.build(tree))
    assert differences(*built) == []


def test_a_difference_is_seen(tmp_path: Path) -> None:
    for name in ("left", "right"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "page.html").write_text(name)
    (tmp_path / "left" / "only.html").touch()
    assert differences(tmp_path / "left", tmp_path / "right") == ["only.html", "deep/page.html"]


def test_fitted_constants_are_those_of_the_table() -> None:
    """Fitted anew, the table of constants is the stored one, digit for digit."""
    rows = calibration.table(calibration.fit(calibration.fitting_cases()))
    stored = (ROOT / "data" / "derived" / "efficiency.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [",".join(row) for row in rows] == stored
