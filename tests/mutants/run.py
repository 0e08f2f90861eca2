"""Change each formula a little and see whether a test notices: ``make mutants``.

For each module a scratch tree with the package, the tables and the module's own tests; mutmut makes the changes, runs
the tests that reach the changed function, and says which changes survived. Left alone are texts (a message may be
worded anew), what a refusal says, and the name that a door puts into its message; the condition that leads to a
refusal is changed like any other. So is `analysis.model.simulation.compiled`: numba compiles it before mutmut could
switch a change on, and the same rules in plain Python are changed instead.

``MUTANTS_CHILDREN`` says how many changes are tested at a time, by default as many as there are processors.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build" / "mutants"
#: The tests of each module: those that call it on purpose, not those that happen to pass through it. Left out is what
#: is built once and compared as a whole (`symbolic.workload`), or simulates (`evidence.waiting`): a minute each change.
TESTS = {
    "model/batching.py": ("test_model_batching.py",),
    "model/capacity.py": ("test_model_capacity.py",),
    "model/cost.py": ("test_model_cost.py", "test_symbolic_cost.py"),
    "model/decoders.py": ("test_by_hand.py", "test_model_decoders.py"),
    "model/decoding.py": ("test_by_hand.py", "test_model_decoding.py", "test_symbolic_decoding.py"),
    "model/head_to_head.py": ("test_model_head_to_head.py",),
    "model/ownership.py": ("test_by_hand.py", "test_model_ownership.py"),
    "model/prefill.py": ("test_by_hand.py", "test_model_prefill.py"),
    "model/queueing.py": ("test_model_queueing.py",),
    "model/replayed.py": ("test_model_replayed.py",),
    "model/roofline.py": ("test_by_hand.py", "test_model_roofline.py"),
    "model/simulation/plain.py": ("test_model_simulation.py",),
    "model/sparse.py": ("test_model_sparse.py",),
    "model/sweep.py": ("test_model_sweep.py",),
    "model/transformer.py": ("test_model_transformer.py",),
    "symbolic/cost.py": ("test_symbolic_cost.py", "test_model_cost.py", "test_model_ownership.py"),
    "symbolic/decoding.py": ("test_symbolic_decoding.py", "test_model_decoding.py", "test_model_batching.py"),
    "symbolic/decoders.py": ("test_symbolic_decoders.py", "test_model_head_to_head.py"),
    "symbolic/queueing.py": ("test_symbolic_queueing.py", "test_model_queueing.py"),
    "symbolic/roofline.py": ("test_symbolic_roofline.py", "test_model_roofline.py"),
    "symbolic/transformer.py": ("test_symbolic_transformer.py", "test_model_transformer.py"),
    "evidence/accuracy.py": ("test_accuracy.py",),
    "evidence/calibration.py": ("test_calibration.py",),
    "evidence/claims/registry.py": ("test_claims.py",),
    "evidence/claims/verdict.py": ("test_claims.py",),
    "evidence/curves.py": ("test_curves.py",),
    "evidence/decisions.py": ("test_decisions.py",),
    "evidence/diffusion.py": ("test_evidence_diffusion.py",),
    "evidence/scenarios.py": ("test_scenarios.py",),
    "evidence/sparse.py": ("test_evidence_sparse.py",),
    "evidence/speculation.py": ("test_evidence_speculation.py",),
    "evidence/validation.py": ("test_validation.py",),
}
CONFIG = """
[tool.mutmut]
source_paths = ["analysis"]
only_mutate = ["analysis/{module}"]
also_copy = ["data", "tests"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:nbval", "-p", "no:xdist", "-W", "ignore::DeprecationWarning"]
pytest_add_cli_args_test_selection = {tests}
use_git_change_detection = false
track_dependencies = false

[tool.pytest.ini_options]
addopts = "--import-mode=importlib --doctest-modules -m 'not soak'"
markers = ["soak: takes minutes", "browser: opens pages"]
doctest_optionflags = ["NORMALIZE_WHITESPACE"]
filterwarnings = ["error"]
"""
#: The first argument of a door is the name in its message, and a number is a float with or without being told so.
UNTOUCHED = (
    *("positive", "not_negative", "fraction", "share", "whole", "at_least_one", "_known_kind", "_pue"),
    *("asarray", "array", "errstate", "astype"),
)
#: mutmut 3.8.1 as it comes, but that it leaves texts, refusals and these calls' arguments alone.
ENTRY = """
import libcst as cst
from mutmut.mutation import file_mutation, mutators
from mutmut.__main__ import cli

UNTOUCHED = {untouched!r}


def operator_arguments(node):
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else getattr(node.func, "value", "")
    return () if name in UNTOUCHED else mutators.operator_arg_removal(node)


changed = {mutators.operator_string: None, mutators.operator_arg_removal: operator_arguments}
file_mutation.mutation_operators[:] = [
    (kind, changed.get(operator, operator))
    for kind, operator in file_mutation.mutation_operators
    if changed.get(operator, operator) is not None
]
visits = file_mutation.MutationVisitor._skip_node_and_children
file_mutation.MutationVisitor._skip_node_and_children = lambda self, node: (
    isinstance(node, cst.Raise) or visits(self, node)
)
cli()
"""


#: What a cache remembers hides changes: of the unchanged formulas, from which each changed process is forked, and of
#: the test before, after which a test does not seem to reach the function that it tests.
FORGET = '''

import sys

import pytest


@pytest.fixture(autouse=True)
def forget():
    """Let each test work everything out anew; the tables do not depend on the formulas."""
    for name, module in list(sys.modules.items()):
        if name.startswith("analysis.") and not name.startswith("analysis.reference"):
            for each in list(vars(module).values()):
                if callable(getattr(each, "cache_clear", None)):
                    each.cache_clear()
'''


def tree(module: str) -> Path:
    """Lay out a scratch tree in which one module is changed."""
    folder = SCRATCH / module.removesuffix(".py").replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tests" / "unit").mkdir(parents=True)
    ignore = shutil.ignore_patterns("__pycache__")
    for part in ("analysis", "data"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignore)
    for name in ("conftest.py", *TESTS[module]):
        text = (ROOT / "tests" / "unit" / name).read_text(encoding="utf-8")
        # a fixture made once would be made by the first test alone, and no other would seem to reach the formula
        text = text.replace('@pytest.fixture(scope="module")', "@pytest.fixture")
        (folder / "tests" / "unit" / name).write_text(text, encoding="utf-8")
    with (folder / "tests" / "unit" / "conftest.py").open("a") as conftest:
        conftest.write(FORGET)
    if (ROOT / "tests" / "golden").exists():
        shutil.copytree(ROOT / "tests" / "golden", folder / "tests" / "golden", ignore=ignore)
    selection = json.dumps([f"tests/unit/{name}" for name in TESTS[module]])
    (folder / "pyproject.toml").write_text(CONFIG.format(module=module, tests=selection))
    (folder / "entry.py").write_text(ENTRY.replace("{untouched!r}", repr(UNTOUCHED)))
    return folder


def mutmut(folder: Path, *arguments: str) -> str:
    """Run mutmut in a scratch tree."""
    done = subprocess.run(
        [sys.executable, "entry.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"error: mutmut in {folder}: got exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def survivors(module: str) -> tuple[int, int, list[str]]:
    """Change one module; return how many changes were noticed, how many there were, and those that were not."""
    folder = tree(module)
    mutmut(folder, "run", "--max-children", os.environ.get("MUTANTS_CHILDREN", str(os.cpu_count() or 1)))
    found = json.loads((folder / "mutants" / "analysis" / f"{module}.meta").read_text())["exit_code_by_key"]
    alive = sorted(name for name, status in found.items() if status in (0, 33, None))
    shown = []
    for name in alive:
        lines = mutmut(folder, "show", name).splitlines()
        changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        shown.append("\n".join([name.rpartition(".")[2], *changed]))
    return len(found) - len(alive), len(found), shown


def main() -> None:
    """Change the named modules, all by default; print what survived, and one row for each module."""
    unknown = [name for name in sys.argv[1:] if name not in TESTS]
    if unknown:
        raise SystemExit(f"error: module: got {unknown[0]!r}, expected {' or '.join(TESTS)}")
    table = ["| date | module | noticed | of |", "|---|---|---:|---:|"]
    for module in sys.argv[1:] or TESTS:
        killed, total, shown = survivors(module)
        print("\n".join([f"\n{module}: {killed} of {total} changes noticed", *shown]), flush=True)
        table.append(f"| {date.today().isoformat()} | `{module}` | {killed} | {total} |")
    print("\n" + "\n".join(table))


if __name__ == "__main__":
    main()
