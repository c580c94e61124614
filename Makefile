# What a developer types. The work is in tools/; `make up` and `make test` need nothing before them.
PYTHON := .venv/bin/python
STACK ?= local
# Outlives a checkout that is made anew in the same folder. Others have their own: mypy goes by path, size and second.
MYPY_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/soperator-pulumi/mypy/$(subst /,-,$(CURDIR))
.DEFAULT_GOAL := help
.PHONY: help up preview refresh down env ssh admin images test check build format bench soak docs lock

help:  ## list these commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/; s/\$$\$$/$$/' | expand -t 10

up: .venv/.installed  ## start a cluster on this machine (or use the one of KUBECONFIG) and deploy Slurm
	@$(PYTHON) -m tools.up --stack $(STACK)

preview: .venv/.installed  ## show what `make up` would change, and which nodes and jobs it would touch
	@$(PYTHON) -m tools.preview --stack $(STACK)

refresh: .venv/.installed  ## record what was changed behind Pulumi's back, so that the next `make up` sets it right
	@$(PYTHON) -m tools.refresh --stack $(STACK)

down: .venv/.installed  ## stop all that `make up` started
	@$(PYTHON) -m tools.down --stack $(STACK)

env: .venv/.installed  ## print shell settings: eval "$$(make -s env)"
	@$(PYTHON) -m tools.env

ssh: .venv/.installed  ## log in, or run one command: make ssh CMD='sinfo'
	@$(PYTHON) -m tools.ssh '$(subst ','\'',$(value CMD))'

admin: .venv/.installed  ## root in the jail, or one command as root: make admin CMD='apt-get install -y jq'
	@$(PYTHON) -m tools.admin --stack $(STACK) '$(subst ','\'',$(value CMD))'

images: .venv/.installed  ## build the container images; REGISTRY=... pushes them there
	@$(PYTHON) -m tools.images $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(BASE),--base $(BASE)) $(if $(MIRROR),--mirror $(MIRROR))

check: .venv/.installed  ## format, lint, types, layers, and the tests that take seconds
	@.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy --cache-dir $(MYPY_CACHE)
	@PYTHONPATH=images/jail-tools .venv/bin/lint-imports --no-logo
	@$(PYTHON) -m pytest -n auto --dist loadfile tests/unit tests/rendered images

build: .venv/.installed  ## fetch and build all that a cluster is made of, where the cache lacks it
	@$(PYTHON) -m tools.build

test: check build  ## everything that CI checks: `make check`, then engines and clusters for real
	@$(PYTHON) -m tests.cluster.fetch
	@$(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/engine tests/cluster

bench: build  ## ratios against what one would use instead
	@$(PYTHON) -m pytest -s tests/bench

soak: build  ## the long series: kills, restarts and fault traces, in full numbers
	@$(PYTHON) -m tests.cluster.fetch
	@SOAK=1 $(PYTHON) -m pytest -s images tests/unit tests/rendered tests/engine tests/cluster

format: .venv/.installed  ## put the sources into shape
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

docs: .venv/.installed  ## renew docs/configuration.md from the specification
	@$(PYTHON) -m tools.docs

lock: .venv/.installed  ## renew requirements.lock from pyproject.toml
	@tools/lock.sh

.venv/.installed: requirements.lock tools/venv.sh
	@tools/venv.sh && touch $@
