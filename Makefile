# Commands of a developer, carried out by tools/. `make up` and `make test` need nothing before them.
PYTHON := .venv/bin/python
STACK ?= local
# Python keeps what it compiles: pytest would compile all tests in every run.
unexport PYTHONDONTWRITEBYTECODE
# Survives a new checkout in the same folder. Other checkouts have their own: mypy goes by path, size and second.
MYPY_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/soperator-pulumi/mypy/$(subst /,-,$(CURDIR))
# CMD as one word of the shell: a line of a recipe cannot hold the newlines of a command of several lines.
define NEWLINE


endef
NL = nl="$$(printf '\n.')"; nl="$${nl%.}"
COMMAND = '$(subst $(NEWLINE),'"$$nl"',$(subst ','\'',$(value CMD)))'
.DEFAULT_GOAL := help
.PHONY: help up preview preflight review rendered-review drift render refresh down machine-kill machine-start lab env ssh admin dashboard images test check affected build format bench soak soak-report docs site pictures dist lock

help:  ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/; s/\$$\$$/$$/' | expand -t 15

up: .venv/.installed  ## start a cluster on this machine (or take that of KUBECONFIG) and deploy Slurm; MACHINES=3 for several
	@POLICY_PACKS="$(POLICY)" $(PYTHON) -m tools.up --stack $(STACK) $(if $(MACHINES),--machines '$(MACHINES)')

preflight: .venv/.installed  ## check the Kubernetes of a stack before anything is applied: make preflight STACK=prod; WRITE_SIZES=1 first writes the sizes of its nodes
	@$(PYTHON) -m tools.preflight_stack --stack $(STACK) $(if $(WRITE_SIZES),--write-sizes) $(if $(JSON),--json) $(OPTIONS)

preview: .venv/.installed  ## print what `make up` would change, and the nodes and jobs it would touch; with POLICY=policy, judge it
	@POLICY_PACKS="$(POLICY)" $(PYTHON) -m tools.preview --stack $(STACK)

review: .venv/.installed  ## print a preview as Markdown, for the summary of a job in CI: make -s review STACK=prod POLICY=policy
	@POLICY_PACKS="$(POLICY)" $(PYTHON) -m tools.review --stack $(STACK)

rendered-review: .venv/.installed  ## print what a change does to a stack's manifests, without credentials: make -s rendered-review STACK=prod BASE=main
	@$(PYTHON) -m tools.rendered_review --stack $(STACK) $(if $(BASE),--base '$(BASE)')

drift: .venv/.installed  ## list differences between a stack's program and the cluster, and fail if there are any
	@$(PYTHON) -m tools.drift --stack $(STACK)

render: .venv/.installed  ## write the manifests that `make up` would apply: make render STACK=prod DIR=manifests/prod
	@$(PYTHON) -m tools.render --stack $(STACK) $(if $(DIR),--folder $(DIR))

refresh: .venv/.installed  ## record changes made behind Pulumi's back, so that the next `make up` sees them
	@$(PYTHON) -m tools.refresh --stack $(STACK)

down: .venv/.installed  ## stop everything that `make up` started
	@$(PYTHON) -m tools.down --stack $(STACK)

machine-kill: .venv/.installed  ## end a machine of the embedded Kubernetes as a loss of power does: make machine-kill N=2
	@$(PYTHON) -m tools.kube machine-kill $(if $(N),--number '$(N)')

machine-start: .venv/.installed  ## start a machine that was killed: make machine-start N=2
	@$(PYTHON) -m tools.kube machine-start $(if $(N),--number '$(N)')

lab: $(if $(BARE),.venv/.installed,build)  ## start Slurm on a kernel with cgroup v2 and AppArmor, and open a shell there; its end ends all: make lab, or make lab CMD='make ssh CMD=sinfo'
	@$(NL); $(PYTHON) -m tools.lab $(if $(MEMORY_MIB),--memory-mib '$(MEMORY_MIB)') $(if $(MACHINES),--machines '$(MACHINES)') $(if $(BARE),--without-slurm) $(COMMAND)

env: .venv/.installed  ## print shell settings: eval "$$(make -s env)"
	@$(PYTHON) -m tools.env

ssh: .venv/.installed  ## log in, or run one command: make ssh CMD='sinfo'
	@$(NL); $(PYTHON) -m tools.ssh --stack $(STACK) $(if $(CLUSTER),--cluster $(CLUSTER)) $(COMMAND)

admin: .venv/.installed  ## open a root shell in the jail, or run one command: make admin CMD='apt-get install -y jq'
	@$(NL); $(PYTHON) -m tools.admin --stack $(STACK) $(if $(CLUSTER),--cluster $(CLUSTER)) $(COMMAND)

dashboard: .venv/.installed  ## draw the dashboards into one page of HTML: make dashboard PROMETHEUS=http://localhost:9090 NAMESPACE=hpc
	@$(PYTHON) -m tools.dashboard $(if $(PROMETHEUS),--prometheus $(PROMETHEUS)) $(if $(NAMESPACE),--namespace $(NAMESPACE)) $(if $(HOURS),--hours $(HOURS)) $(if $(OUTPUT),--output $(OUTPUT))

images: .venv/.installed  ## build the container images; with REGISTRY=..., push them there; SLURM=26.05 for that version, with PMIx by SLURM_SOURCE=slurm-26.05.5.tar.bz2
	@$(PYTHON) -m tools.images $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(SLURM),--slurm $(SLURM)) $(if $(SLURM_SOURCE),--source '$(SLURM_SOURCE)') $(if $(BASE),--base $(BASE)) $(if $(MIRROR),--mirror $(MIRROR))

check: .venv/.installed  ## check format, lint, types and layers, and run the tests that take seconds
	@MYPY_CACHE_DIR=$(MYPY_CACHE) $(PYTHON) -m tools.check

affected: .venv/.installed  ## run the tests that changes since BASE can break: make affected TIERS='unit rendered'; with LIST=1, list them
	@$(PYTHON) -m tools.affected $(if $(BASE),--base '$(BASE)') $(if $(TIERS),--tiers '$(TIERS)') $(if $(LIST),--list)

build: .venv/.installed  ## fetch and build the servers and images of a cluster, where the cache has none
	@$(PYTHON) -m tools.build

test: check build  ## run what CI runs: `make check`, then engines and clusters for real
	@$(PYTHON) -m tests.cluster.fetch
	@# Four processes on two cores: a test of a cluster waits for most of its time.
	@$(PYTHON) -m pytest -n 4 --dist loadfile --no-loadscope-reorder --maxfail 30 tests/engine tests/cluster

bench: build  ## measure ratios against the alternatives, and print them with their goals in one table; BENCH_SIZE=smallest shows that it works
	@$(PYTHON) -m pytest -s tests/bench

soak: build  ## run all tests in full numbers of kills, rounds and fault traces, or one part of them: make soak PART=3/29
	@$(PYTHON) -m tools.soak $(if $(PART),--part '$(PART)')

soak-report: .venv/.installed  ## print which parts of `make soak` passed, at which commit, and when
	@$(PYTHON) -m tools.soak.report

format: .venv/.installed  ## format the sources
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

docs: .venv/.installed  ## regenerate what is written from the sources: reference pages, the typed arguments
	@$(PYTHON) -m tools.docs

site: .venv/.installed  ## build the pages and the Python API as a site with search: make site DIR=site
	@$(PYTHON) -m tools.site $(if $(DIR),--folder '$(DIR)')

pictures: .venv/.installed  ## draw the pictures of docs/pictures again, by Graphviz and Chromium (apt-get install graphviz chromium)
	@$(PYTHON) -m tools.pictures

dist: .venv/.installed  ## build the wheel and the source distribution in dist/
	@$(PYTHON) -m tools.dist

lock: .venv/.installed  ## regenerate requirements.lock from pyproject.toml
	@tools/lock.sh

.venv/.installed: requirements.lock tools/venv.sh
	@tools/venv.sh && touch $@
