"""Which tests answer for which module, when formulas are changed on purpose."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_each_module_and_each_test_named_there_exists() -> None:
    spec = importlib.util.spec_from_file_location("mutants_run", TESTS / "mutants" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    for module, tests in run.TESTS.items():
        assert (run.ROOT / "analysis" / module).is_file(), module
        assert all((TESTS / "unit" / name).is_file() for name in tests), module
    ast.parse(run.ENTRY.replace("{untouched!r}", repr(run.UNTOUCHED)))
