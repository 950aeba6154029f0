# Targets are few; each sets up what it needs. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TESTDB := bin/testdb

PKG ?= ./...
TESTFLAGS ?=
FUZZTIME ?= 30s
# They run thousands of processes: ten times slower under the race detector, which
# the packages' own tests have. From their own folders, so that they print sums.
EXPLORERS := resume/resumetest client/efa/e2e
MODULE := github.com/replywake/replywake
BENCH ?= .
EXPLORE ?= long

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: $(TESTDB) ## Everything: gofmt, go vet, every test with the race detector and a real Postgres (PKG, TESTFLAGS)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w is needed on:" $$unformatted; exit 1; fi
	go vet ./...
	@internal/testdb/install.sh
	$(TESTDB) -- sh -c 'go list $(PKG) | grep -v -x $(EXPLORERS:%=-e $(MODULE)/%) | xargs -r go test -race -timeout 20m $(TESTFLAGS)'
	for dir in $(EXPLORERS); do if go list $(PKG) | grep -q -x $(MODULE)/$$dir; then (cd $$dir && $(CURDIR)/$(TESTDB) -- go test -timeout 20m $(TESTFLAGS)); fi; done

.PHONY: explore
explore: $(TESTDB) ## The explorers: every crash point, every mutant, every schedule of a preemption (EXPLORE=longest: of two; hours)
	@internal/testdb/install.sh
	for dir in $(EXPLORERS); do (cd $$dir && REPLYWAKE_EXPLORE=$(EXPLORE) $(CURDIR)/$(TESTDB) -- go test -count=1 -timeout 6h -v); done

.PHONY: test-docker
test-docker: $(TESTDB) ## The same tests on a Postgres that dockertest starts; needs a Docker engine (PKG)
	internal/testdb/docker/image.sh
	TESTDB_DOCKER=1 go test -race -count=1 -v -run 'Docker|Container' ./internal/testdb
	$(TESTDB) -docker -- go test -race -timeout 20m $(TESTFLAGS) $(PKG)

.PHONY: bench
bench: $(TESTDB) ## Every benchmark, with allocations (BENCH, a pattern)
	@internal/testdb/install.sh
	$(TESTDB) -- go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

.PHONY: fuzz
fuzz: ## Every fuzz target of every package, FUZZTIME each (30s)
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | sed -E 's|/[^/]*:func | |' | \
	while read -r dir target; do \
		echo "== $$dir $$target"; \
		(cd "$$dir" && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' . </dev/null); \
	done

.PHONY: lint
lint: ## golangci-lint with the reasons in .golangci.yml
	go run $(GOLANGCI_LINT) run ./...

.PHONY: demo
demo: ## The resume example, with no account, server or Docker
	go run ./examples/resume

.PHONY: tidy
tidy: ## Format the code and tidy the module
	gofmt -w .
	go mod tidy

# Built, not `go run`: that would hide signals and the exit status.
.PHONY: $(TESTDB)
$(TESTDB):
	@go build -buildvcs=false -o $@ ./internal/testdb/cmd/testdb
