# make demo      train until the pendulum balances, with a curve and a video, in minutes
# make install   .venv with every extra but ppo and bench
# make quick     lint and the core's tests, in about a minute
# make test      formatter, linter, type checker, tests
# make test-ppo  the tests that need PyTorch and Stable-Baselines3
# make test-data the tests that need Minari, gymnax and brax
# make torture   kills, damage and nonsense until the targets are met or an hour is over; goes on where it was; writes docs/reliability.md
# make bench     speed side by side with Stable-Baselines3 and SBX; see docs/performance.md
# make race      seconds of training to a return, side by side with SBX; resumes, hours
# make parity    our baselines beside their published results; resumes, hours
# make docs      the documentation as a site, in build/site; no warning and no dead link
# make docs-serve  the same, shown in a browser while you write
# make reference  docs/reference anew, from the code
# make lock      requirements.lock anew, from pyproject.toml
# make lock-docs requirements-docs.lock anew

PYTHON ?= python3
BIN := .venv/bin
EXTRAS := classic mujoco dmc robotics box2d pybullet plot video tensorboard wandb export experiments tune hub dev

.PHONY: demo install quick quick-list test test-ppo test-data lint bench race parity torture docs docs-serve reference lock lock-docs clean

demo: .venv/.ready
	rm -rf demo
	$(BIN)/adac train adac/PendulumSparse-v0 --agent adac-td3 --steps 30000 \
		--eval-every 1000 --eval-episodes 30 --stop-return 1700 --out demo/run
	$(BIN)/adac plot demo/run -o demo/learning-curve.png
	$(BIN)/adac eval demo/run --episodes 3 --video demo/pendulum.mp4

install: .venv/.atlas

.venv/.ready: requirements.lock pyproject.toml
	sh tools/venv.sh $(PYTHON)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

.venv/.atlas: .venv/.ready requirements-atlas.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --require-hashes \
		-r requirements-atlas.lock
	touch $@

lint: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typed_calls.py

# What needs no simulator but MuJoCo and no extra but dev: also run on Python 3.12 and 3.13.
QUICK := tests/tools/test_rooms.py tests/tools/test_reference.py tests/test_networks.py tests/test_svgd.py \
	tests/test_settings.py tests/test_presets.py tests/test_replay.py tests/test_returns.py tests/test_normalise.py \
	tests/test_doctor.py tests/test_looks.py

quick: .venv/.ready lint
	$(BIN)/python -m pytest -q -n 2 -m 'not slow' $(QUICK)

quick-list:
	@echo $(QUICK)

test: .venv/.atlas lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The peers have an environment of their own on top of .venv, so with the same JAX and simulators.
.venv-bench/.ppo: .venv/.ready tools/venv_on_top.sh
	sh tools/venv_on_top.sh .venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet 'adac[ppo,zoo]'
	touch $@

.venv-bench/.ready: .venv-bench/.ppo
	.venv-bench/bin/python -m pip install --quiet 'adac[bench]'
	touch $@

test-ppo: .venv-bench/.ppo
	.venv-bench/bin/python -c 'import stable_baselines3' # or its tests would be skipped
	.venv-bench/bin/python -m pytest tests/experiments/test_ppo.py tests/sb3

# Theirs is an environment of its own: Minari wants an older Gymnasium. gymnax imports six without
# saying so; dmc has the pin of MuJoCo, which brax would move.
.venv-data/.ready: .venv/.ready tools/venv_on_top.sh
	sh tools/venv_on_top.sh .venv .venv-data
	.venv-data/bin/python -m pip install --quiet 'adac[data,dmc]' gymnax six brax
	touch $@

test-data: .venv-data/.ready
	.venv-data/bin/python -c 'import minari, gymnax, brax.envs' # or its tests would be skipped
	.venv-data/bin/python -m pytest tests/test_data.py tests/test_jit.py -k 'minari or gymnax or brax'

bench: .venv-bench/.ready
	$(BIN)/python benchmarks/speed.py $(BENCH)
	$(BIN)/python tools/readme_speed.py

race: .venv-bench/.ready
	$(BIN)/python benchmarks/race.py $(RACE)

parity: .venv/.ready
	$(BIN)/adac sweep experiments/parity_pendulums.toml --publish
	$(BIN)/adac sweep experiments/parity.toml --publish
	$(BIN)/python benchmarks/parity.py

torture: .venv/.ready
	PYTHONPATH=tools $(BIN)/python -m torture $(TORTURE)

lock: .venv/.ready
	$(BIN)/python -m pip install --quiet pip-tools==7.6.2
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --annotation-style=line \
		$(addprefix --extra ,$(EXTRAS)) -o requirements.lock pyproject.toml

# The site's environment has MkDocs only: the pages read the source, they do not import it.
.venv-docs/.ready: requirements-docs.lock tools/venv.sh
	sh tools/venv.sh $(PYTHON) .venv-docs
	.venv-docs/bin/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	touch $@

docs: .venv-docs/.ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --clean
	@echo build/site/index.html

docs-serve: .venv-docs/.ready
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs serve --strict

reference: .venv/.ready
	$(BIN)/python tools/reference.py

lock-docs: .venv/.ready
	$(BIN)/python -m pip install --quiet pip-tools==7.6.2
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' \
		| $(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --annotation-style=line \
		-o requirements-docs.lock -

clean:
	rm -rf .venv .venv-bench .venv-data .venv-docs demo build dist
