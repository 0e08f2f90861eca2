"""Run the core of the suite on the other Pythons that the lock serves: ``python tests/pythons.py [PYTHON...]``.

Each gets an environment of its own under build/. One that is not on this computer is passed over, and said so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.12", "3.13")
#: Formulas, data, claims, and two chapters whose stored outputs were made on another Python.
CORE = ("tests/unit", "tests/data", "tests/claims", "analysis", "book/cost.ipynb", "book/roofline.ipynb")


def works(python: str) -> bool:
    """Whether a command is a Python that starts; a shim may stand for one that is not there."""
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def find(version: str) -> str | None:
    """Find a Python of a version by its name, or where pyenv keeps it."""
    kept = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    return next((name for name in (f"python{version}", *map(str, kept)) if works(name)), None)


def run(python: str) -> bool:
    """Set an environment up and run the core in it."""
    said = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    version = said.stdout.split()[1]
    folder = ROOT / "build" / f"python-{version}"
    ours = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / ".ready").exists():
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        install = [ours, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", "requirements.txt"]
        subprocess.run(install, cwd=ROOT, check=True)
        (folder / ".ready").touch()
    done = subprocess.run([ours, "-m", "pytest", "-q", *CORE], cwd=ROOT, check=False)
    print(f"{version}: {'passed' if done.returncode == 0 else 'FAILED'}", flush=True)
    return done.returncode == 0


def main() -> None:
    """Run on the named Pythons, else on those of the versions above that are here."""
    good = True
    for wanted in sys.argv[1:] or VERSIONS:
        python = wanted if sys.argv[1:] else find(wanted)
        if python is None:
            print(f"{wanted}: skipped, no Python of this version here", flush=True)
        else:
            good &= run(python)
    sys.exit(not good)


if __name__ == "__main__":
    main()
