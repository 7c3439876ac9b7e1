# The commands of this project; `make` lists them. build/ has their recipes, and what is needed more rarely.

.DEFAULT_GOAL := help
.PHONY: help test test-long test-servers lint generate quickstart robustness robustness-long robustness-controls fleet fleet-long release-check

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## Run the tests of the library and its programs, but not those in a browser
	build/test.sh

test-long: ## What needs more time: small worlds exhaustively, random worlds, real processes under faults
	build/test-long.sh

test-servers: ## What every kind must pass, and clusters and Sentinel, on Valkey and on Redis 8
	build/test-servers.sh

lint: ## gofmt, go vet, staticcheck; modules are tidy, and the generated code is up to date
	build/lint.sh

generate: ## Generate the Go of the messages, and the rules for ACL users in docs/acl.md
	build/generate.sh

quickstart: ## Run the quickstart on an embedded Redis
	go run ./examples/quickstart

robustness: ## Real processes under faults, judged: a short round
	build/robustness.sh short

robustness-long: ## The same for longer, with a look at leaks: make robustness-long TIME=30m
	build/robustness.sh long $(TIME)

robustness-controls: ## Break each safety rule in turn: the suite must notice
	build/robustness.sh controls

fleet: ## Nodes with a singleton and grains under all faults, judged: a short round, and broken rules
	build/fleet.sh short

fleet-long: ## The same for longer, without broken rules: make fleet-long TIME=30m
	build/fleet.sh long $(TIME)

release-check: ## What those who import the modules get: the API's changes, and modules that build by themselves
	build/release-check.sh
