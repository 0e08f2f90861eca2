# Each command sets up what it needs in .venv and repeats nothing that is done.
PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help book pdf test soak mutants pythons notebooks calibrate bench serve lock clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.txt requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON): got an older Python, expected 3.11 or newer (make PYTHON=python3.12 ...)" >&2; exit 2; }
	@echo "setting up .venv (some minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	@touch $@

book: $(READY)  ## build the site into _build/html; with PRICES=file.csv OUT=folder again with own prices
	@$(if $(PRICES),$(if $(OUT),,echo "error: OUT: got nothing, expected a new folder beside PRICES=$(PRICES)" >&2; exit 2))
	@$(if $(PRICES)$(OUT),$(BIN)/python -m analysis report $(if $(PRICES),--prices "$(PRICES)") $(if $(OUT),--out "$(OUT)"),$(BIN)/python -m analysis.publish.site)

pdf: book  ## print every page of the site into _build/report.pdf, by the system's Chromium
	@$(BIN)/python -m analysis.publish.pdf

test: $(READY)  ## check everything: style, types, floors, units, data, claims, notebooks, site
	@$(BIN)/python -m pytest

soak: $(READY)  ## check what takes long, before a release: odd prices, failing disks, other machines and Pythons, mutants
	@$(BIN)/python -m pytest -m soak
	@$(MAKE) --no-print-directory pythons mutants

pythons: $(READY)  ## run the core of the suite on the other Pythons that are here
	@$(BIN)/python tests/pythons.py $(PYTHONS)

mutants: $(READY)  ## change each formula a little, say which changes no test notices; MODULES=model/cost.py for one
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -r tests/mutants/requirements.txt
	@$(BIN)/python tests/mutants/run.py $(MODULES)

notebooks: $(READY)  ## execute and normalise every chapter
	@$(BIN)/python -m analysis.publish.notebooks

calibrate: $(READY)  ## fit the constants on the declared measurements, write data/derived
	@$(BIN)/python -m analysis.evidence.calibration
	@$(BIN)/python -m analysis.evidence.accuracy
	@$(BIN)/python -m analysis.evidence.validation

bench: $(READY)  ## measure the budgets against a named baseline; with STORE=1 keep them for the page on speed
	@$(BIN)/python tests/bench/bench.py $(if $(STORE),--store)

serve: book  ## build the site and show it at http://127.0.0.1:8000
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

lock:  ## resolve requirements.txt again (on Python 3.11) and write requirements.lock
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install --disable-pip-version-check --upgrade setuptools wheel
	@grep -v -e '^-c' -e '^-e' requirements.txt > build/lock/direct.txt
	@build/lock/bin/python -m pip install --disable-pip-version-check -r build/lock/direct.txt
	@{ echo "# Written by make lock on Python 3.11: every package of a full installation, pinned."; build/lock/bin/python -m pip freeze --all --exclude pip; } > requirements.lock

clean:  ## remove what was built, keep .venv
	@rm -rf _build build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
