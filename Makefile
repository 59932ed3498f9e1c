# Run `make` to see what there is. Everything works on a fresh clone, as root or not, with
# Go, a C compiler and (for the tests) Python 3.

GO     ?= go
PYTHON ?= python3
# DuckDB's Go driver passes Arrow data only with this tag; every Go command needs it.
TAGS := duckdb_arrow
# Flags of the Go tests, for example TEST_FLAGS='-run TestArrows -v'.
TEST_FLAGS ?= -race -shuffle=on
# Packages to test, for example PKG=./catalog/...
PKG ?= ./...
# How long each fuzz target runs.
FUZZTIME ?= 30s
# Flags of `make linear`; -linear.seed repeats a run.
LINEAR ?= -linear.duration=2m
# Flags of `make bench`, for example BENCH='--quick --only load,commit --json out.json'.
BENCH ?=
# Arguments of catalogd for `make run` and `make demo`, for example ARGS='--listen 127.0.0.1:0'.
ARGS ?=

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4

VENV := .venv-test
# The program that the Python tests run; see conformance/requirements.txt.
export CATALOGD_TEST_PYTHON := $(CURDIR)/$(VENV)/bin/python
# DuckDB is C++ behind cgo.
export CGO_ENABLED := 1

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this text
	@awk 'BEGIN {FS = ":.*## "} /^[a-z\/-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## replay a year of flights and watch materialized views follow
	bin/catalogd demo $(ARGS)

.PHONY: run
run: build ## run a catalog on this machine, its own PostgreSQL included
	bin/catalogd dev $(ARGS)

.PHONY: build
build: cc ## build bin/catalogd
	$(GO) build -tags $(TAGS) -o bin/catalogd ./cmd/catalogd

.PHONY: generate
generate: ## regenerate api/rest and api/mvrest from openapi/
	$(GO) generate ./...

.PHONY: test
test: cc $(VENV)/.made ## run all tests
	$(GO) test -tags $(TAGS) -timeout 40m $(TEST_FLAGS) $(PKG)

.PHONY: test/race
test/race: cc $(VENV)/.made ## run all tests three times in different orders, with the race detector
	$(GO) test -tags $(TAGS) -timeout 60m -race -shuffle=on -count=3 $(PKG)

.PHONY: conformance
conformance: cc $(VENV)/.made ## run the suites that drive a started catalogd with real clients
	CATALOGD_SUITES=1 $(GO) test -tags $(TAGS) -timeout 40m -count=1 -v ./conformance/...

.PHONY: lint
lint: cc ## run the linters
	$(GO) run $(GOLANGCI) run

.PHONY: verify
verify: ## check that generated code, go.mod and formatting are as committed
	$(GO) generate ./...
	$(GO) mod tidy
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted with gofmt:" >&2; echo "$$unformatted" >&2; exit 1; fi
	@if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then \
		echo "WARNING: no git, or no repository: NOT checked that the generated files are the committed ones" >&2; \
		exit 0; fi; \
	git diff --exit-code || { echo "the files above differ from the commit: commit what 'make verify' made of them" >&2; exit 1; }; \
	untracked=$$(git ls-files --others --exclude-standard); if [ -n "$$untracked" ]; then \
		echo "neither committed nor ignored:" >&2; echo "$$untracked" >&2; exit 1; fi

.PHONY: bench
bench: build ## print ratios of catalogd's speed to floors and to Apache's reference server
	$(GO) run -tags $(TAGS) ./bench --catalogd bin/catalogd $(BENCH)

.PHONY: fuzz
fuzz: cc ## run each fuzz target for FUZZTIME
	@set -e; for dir in $$($(GO) list -tags $(TAGS) -f '{{.Dir}}' $(PKG)); do \
		for target in $$(grep -hos '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //'); do \
			echo "== $$target in $$dir"; \
			(cd "$$dir" && $(GO) test -tags $(TAGS) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) .); \
		done; \
	done

.PHONY: linear
linear: cc ## kill servers under concurrent clients and check that no answer was wrong
	$(GO) test -tags $(TAGS) -timeout 24h -count=1 -v -run '^TestLinear$$' ./cmd/catalogd $(LINEAR)

.PHONY: vuln
vuln: ## look for known vulnerabilities in what we call
	$(GO) run $(VULNCHECK) -tags $(TAGS) ./...

.PHONY: ci
ci: verify lint test ## what has to pass before a change lands

.PHONY: clean
clean: ## remove what make made; not .catalogd, which holds data
	rm -rf bin $(VENV)

.PHONY: cc
cc:
	@command -v "$$($(GO) env CC)" >/dev/null || { \
		echo "no C compiler ($$($(GO) env CC)): DuckDB needs one; install it: apt-get install build-essential, dnf install gcc-c++, xcode-select --install" >&2; exit 1; }

# Made anew when the requirements change.
$(VENV)/.made: conformance/requirements.txt
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV) || { \
		echo "cannot make a Python environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r conformance/requirements.txt
	@touch $@
