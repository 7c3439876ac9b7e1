# The commands of this project. `make` lists them.

.DEFAULT_GOAL := help
SHELL := /bin/bash
GO ?= go
# Each module is checked with the dependencies that it asks for itself.
ALONE := GOWORK=off $(GO)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
APIDIFF := golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: redis
redis: ## Install redis-server if it is missing (Debian, Ubuntu)
	@command -v redis-server >/dev/null || \
	  { echo "installing redis-server"; sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	    $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq redis-server >/dev/null; }

# The package valkey-tools has the program of the server under another name, and needs the libraries of redis-server.
.PHONY: valkey
valkey: redis ## Fetch Valkey into bin/valkey, if it is missing: from the packages of Debian (in 12: its backports) or Ubuntu, and install nothing
	@[ -x bin/valkey/redis-server ] || { set -e; . /etc/os-release; suite=$$VERSION_CODENAME; [ "$$suite" != bookworm ] || suite=bookworm-backports; \
	  mkdir -p bin/valkey/lists; cd bin/valkey; from="-qq -o Dir::State::lists=$$PWD/lists -o Dir::Cache=$$PWD"; \
	  if [ "$$ID" = debian ]; then echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $$suite main" >sources.list; \
	    from="$$from -o Dir::Etc::sourcelist=$$PWD/sources.list -o Dir::Etc::sourceparts=/dev/null"; fi; \
	  apt-get $$from update; apt-get $$from download valkey-tools; dpkg-deb -x valkey-tools_*.deb .; rm -r lists valkey-tools_*.deb; \
	  ln -sf usr/bin/valkey-cli redis-cli; ln -sf usr/bin/valkey-check-rdb redis-sentinel; ln -sf usr/bin/valkey-check-rdb redis-server; }
	@bin/valkey/redis-server --version

APT8 = cd bin/redis8 && apt-get -qq -o Dir::State::lists=$$PWD/lists -o Dir::Cache=$$PWD -o Dir::Etc::sourcelist=$$PWD/sources.list -o Dir::Etc::sourceparts=/dev/null
DEBIAN_KEYS := /usr/share/keyrings/debian-archive-keyring.gpg
bin/redis8/source.tar.gz:
	@sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; [ -e $(DEBIAN_KEYS) ] || { $$sudo apt-get update -qq && $$sudo apt-get install -y -qq debian-archive-keyring >/dev/null; }
	@mkdir -p bin/redis8/lists; rm -f bin/redis8/redis_*
	@echo "deb-src [signed-by=$(DEBIAN_KEYS)] http://deb.debian.org/debian trixie main" >bin/redis8/sources.list
	@$(APT8) update
	@$(APT8) --download-only source redis
	@mv bin/redis8/redis_*.orig.tar.gz $@; rm -r bin/redis8/lists

bin/redis8/redis-server: | bin/redis8/source.tar.gz
	@dpkg -s g++ libssl-dev >/dev/null 2>&1 || { sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  $$sudo apt-get update -qq; DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq g++ libssl-dev >/dev/null; }
	@mkdir -p bin/redis8/source; tar xzf bin/redis8/source.tar.gz -C bin/redis8/source --strip-components=1
	@$(MAKE) -s -C bin/redis8/source/src MALLOC=libc OPTIMIZATION=-O1 BUILD_TLS=yes redis-server redis-cli >bin/redis8/build.log 2>&1 || { tail bin/redis8/build.log; exit 1; }
	@cd bin/redis8; ln -sf redis-server redis-sentinel; mv source/src/redis-cli source/src/redis-server .; rm -r source

.PHONY: redis8-source
redis8-source: bin/redis8/source.tar.gz ## Fetch the source of Redis 8 that is in the packages of Debian 13, if it is missing

.PHONY: redis8
redis8: bin/redis8/redis-server ## Build it in bin/redis8, if that is missing; a compiler and libssl-dev are installed
	@bin/redis8/redis-server --version

.PHONY: faketime
faketime: ## Install a library that changes a server's clock, if it is missing (Debian, Ubuntu)
	@ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || \
	  { echo "installing faketime"; sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	    $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq faketime >/dev/null; }

.PHONY: chromium
chromium: ## Install a browser for the tests of the console, if it is missing (Debian, Ubuntu)
	@command -v chromium >/dev/null || \
	  { echo "installing chromium"; sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	    $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq chromium >/dev/null; }

bin/promtool:
	@set -e; mkdir -p bin/prometheus; cd bin/prometheus; sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; $$sudo apt-get update -qq; apt-get -qq download prometheus; \
	  dpkg-deb -x prometheus_*.deb .; mv usr/bin/promtool ..; cd ..; rm -r prometheus

.PHONY: alerts
alerts: bin/promtool ## Check the alerting rules with a tool of Prometheus, which is fetched into bin if it is missing (Debian, Ubuntu)
	@bin/promtool check rules docs/monitoring/alerts.yml && bin/promtool test rules docs/monitoring/alerts_test.yml

# The exploration goes on for longer without the race detector. What waits the longest begins first.
.PHONY: test
test: redis ## Run all tests but those in a browser, with the race detector
	$(GO) test ./internal/lock ./internal/semaphore ./internal/expirable -run TestExplore
	$(GO) test -race -p 4 -timeout 10m ./tests/conformance ./interop/... ./tests/faults ./... ./cmd/lockkeeper/... ./examples/... ./lockkeepertest

.PHONY: test-valkey
test-valkey: valkey ## What every kind must pass, and clusters and Sentinel, on Valkey
	PATH=$(CURDIR)/bin/valkey:$$PATH $(GO) test -count=1 -timeout 5m ./tests/conformance ./tests/topology

.PHONY: test-redis8
test-redis8: redis8 ## The same on Redis 8
	PATH=$(CURDIR)/bin/redis8:$$PATH $(GO) test -count=1 -timeout 5m ./tests/conformance ./tests/topology

.PHONY: test-browser
test-browser: redis chromium ## The console in headless Chromium
	$(GO) test -race ./tests/browser

.PHONY: test-long
test-long: ## What needs more time: small worlds exhaustively, random worlds, real processes under faults
	$(GO) test ./internal/lock ./internal/semaphore ./internal/expirable -run TestExplore -explore.states=30000
	$(GO) test ./internal/lock -run '^$$' -fuzz FuzzWorlds -fuzztime 30000x
	$(GO) test ./tests/topology -run TestReplicas_TakeoverGrantsNoLockTwice -replicas.kills=20 -replicas.lag=10ms
	$(GO) test ./tests/semaphore -v -run TestLatch_ReleasesAllProcesses -latch.calls=1000000
	$(MAKE) robustness

.PHONY: acl
acl: ## Write the rules for ACL users into docs/acl.md, as the scripts need them
	$(GO) test ./redisio -run TestACLDocument -acl.update

.PHONY: quickstart
quickstart: ## Run the quickstart on an embedded Redis
	$(GO) run ./examples/quickstart

.PHONY: screenshots
screenshots: chromium ## Photograph the console of examples/console for its document
	@set -e; dir=$$(mktemp -d); $(GO) build -o $$dir/service ./examples/console; $$dir/service -http 127.0.0.1:8917 >/dev/null & service=$$!; \
	  trap "kill $$service; rm -r $$dir" EXIT; timeout 12 curl -sN --retry 9 --retry-delay 1 --retry-connrefused http://127.0.0.1:8917/locks/events >/dev/null || true; \
	  shot() { timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir=$$dir/profile --timeout=3000 \
	    --screenshot=docs/console-$$1.png "$${@:2}" http://127.0.0.1:8917/locks/ 2>/dev/null; }; \
	  shot light --window-size=1100,860; \
	  shot dark --window-size=1100,860 --blink-settings=preferredColorScheme=0; \
	  shot phone --window-size=500,1180

.PHONY: interop
interop: redis ## Share locks with Redisson (Java) on one server, a cluster, and with Sentinel: needs a JDK 17 and Maven
	$(GO) run ./interop
	$(GO) run ./interop -quick -bench -kind plain -case "unusual names"
	$(GO) run ./interop -cluster -quick
	$(GO) run ./interop -sentinel -quick

.PHONY: bench
bench: redis ## Run the benchmarks of single operations
	$(GO) test -run '^$$' -bench . -benchmem ./tests/locks ./tests/topology

.PHONY: bench-peers
bench-peers: redis ## Compare with other libraries; see bench/README.md
	$(GO) run -C bench .

.PHONY: robustness
robustness: redis faketime ## Real processes under faults, judged: a short round
	$(GO) test -C robustness ./controls ./faults ./history ./judge ./model
	$(GO) run -C robustness . -time 150s -round 50s
	$(GO) run -C robustness . -world zones -time 30s -round 30s -soak=false
	$(GO) run -C robustness . -world several -time 30s -round 30s -soak=false
	$(MAKE) topologies TIME=20s ROUND=20s

.PHONY: robustness-long
robustness-long: redis faketime ## The same for longer, with a look at leaks: make robustness-long TIME=30m
	$(GO) run -C robustness . -time $(or $(TIME),30m) -round 60s
	$(GO) run -C robustness . -world zones -time 3m -round 30s -soak=false
	$(GO) run -C robustness . -world several -time 3m -round 30s -soak=false
	$(MAKE) topologies TIME=3m
	$(MAKE) hostile TIME=3m

.PHONY: hostile
hostile: redis ## Mass cancels, giving up in every way, computing hosts, numbers near the edges, foreign hashes, late forced releases: make hostile TIME=5m
	@set -e; for world in cancels giving-up computing edges foreign forced; do \
	  echo "== $$world"; $(GO) run -C robustness . -world $$world -time $(or $(TIME),30s) -round 30s -soak=false; done

.PHONY: topologies
topologies: redis ## The same while replicas that lag take over, with Sentinels and in a cluster, with Config.Replicas and without: make topologies TIME=10m
	@set -e; for world in sentinel cluster; do for replicas in 1 0; do \
	  echo "== $$world, Config.Replicas: $$replicas"; $(GO) run -C robustness . -world $$world -replicas $$replicas -time $(or $(TIME),3m) -round $(or $(ROUND),60s) -soak=false; done; done

.PHONY: robustness-controls
robustness-controls: redis faketime ## Break each safety rule in turn: the suite must notice
	$(GO) run -C robustness . -controls all

.PHONY: mutants
mutants: redis ## Break the code in many places, one at a time: do the tests notice? make mutants N=40 SEED=2
	$(GO) run ./tests/mutants -pkg ./internal/lock -n $(or $(N),120) -seed $(or $(SEED),1)
	$(GO) run ./tests/mutants -pkg ./internal/semaphore -n $(or $(N),60) -seed $(or $(SEED),1)
	$(GO) run ./tests/mutants -pkg ./internal/expirable -n $(or $(N),60) -seed $(or $(SEED),1)
	$(GO) run ./tests/mutants -pkg ./scripts -n $(or $(N),80) -seed $(or $(SEED),1)

.PHONY: api-diff
api-diff: ## How the library's API differs from that of the last tag; from v1 on, an incompatible change fails
	@tag=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || { echo "no version is tagged yet: the API is compared with nothing"; exit 0; }; \
	set -eo pipefail; quiet() { "$$@" 2> >(grep -v '^Ignoring internal package' >&2); }; echo "changes of the API since $$tag:"; dir=$$(mktemp -d); trap "rm -r $$dir" EXIT; git archive $$tag | tar x -C $$dir; \
	(cd $$dir && GOWORK=off quiet $(GO) run $(APIDIFF) -m -w $$dir/api .); GOWORK=off quiet $(GO) run $(APIDIFF) -m $$dir/api . | tee $$dir/changes; \
	case $$tag in v0.*) ;; *) ! grep -q '^Incompatible' $$dir/changes ;; esac

# The go command fetches the library from this repository as it would from its public place, with a cache of
# its own, since a tag may have moved; other modules come from the cache that is there.
LIBRARY := github.com/lockkeeper-go/lockkeeper
FETCHED = GOWORK=off GOFLAGS='-mod=mod -modcacherw' GOMODCACHE=$$dir/cache GONOPROXY=$(LIBRARY) GONOSUMDB=$(LIBRARY) \
  GOPROXY=file://$$($(GO) env GOMODCACHE)/cache/download,$$($(GO) env GOPROXY) \
  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$(CURDIR).insteadOf GIT_CONFIG_VALUE_0=https://$(LIBRARY)

.PHONY: as-imported
as-imported: ## Programs, examples and lockkeepertest of the last tag (before there is one, of HEAD), with the library as `go get` brings it
	@set -eo pipefail; ref=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || git rev-parse HEAD); \
	dir=$$(mktemp -d); trap "rm -rf $$dir" EXIT; mkdir $$dir/modules; git archive $$ref | tar x -C $$dir/modules; \
	for m in cmd/lockkeeper examples lockkeepertest; do cd $$dir/modules/$$m; $(GO) mod edit -dropreplace=$(LIBRARY) -droprequire=$(LIBRARY); \
	  $(FETCHED) $(GO) get $(LIBRARY)@$$ref 2>&1 | { grep $(LIBRARY) || true; }; $(FETCHED) $(GO) build -o /dev/null ./...; $(FETCHED) $(GO) vet ./...; done

.PHONY: release-check
release-check: api-diff as-imported ## What those who import the modules get: the API's changes, documented packages, no replace in the library, modules that build by themselves, and with the last tag
	@! grep -n '^replace' go.mod
	@set -e; for p in $$($(ALONE) list ./... | grep -v -e /internal -e /tests); do \
	  [ -n "$$($(ALONE) list -f '{{.Doc}}' $$p)" ] || { echo "$$p has no package comment"; exit 1; }; $(ALONE) doc -all $$p >/dev/null; done
	@set -e; for m in . cmd/lockkeeper examples lockkeepertest; do (cd $$m && $(ALONE) build -o /dev/null ./... && $(ALONE) vet ./...); done

.PHONY: fuzz
fuzz: redis ## Fuzz whatever reads input, each target for a while: make fuzz TIME=1m
	@set -e; for p in $$($(GO) list ./... ./cmd/lockkeeper); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	  echo "== $$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(TIME),1m); done; done

.PHONY: bench-quick
bench-quick: redis ## Run every scenario of the benchmarks once, briefly: do they work?
	$(GO) test -C bench -tags gozero .
	$(GO) run -C bench -tags gozero . -quick

.PHONY: generate
generate: ## Generate the Go of the messages
	$(GO) generate ./messages

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, and the generated code is up to date
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted"; exit 1; }
	@set -e; for m in . cmd/lockkeeper examples interop lockkeepertest tests/browser robustness bench messages/internal/gen; do echo "== $$m"; \
	  (cd $$m && $(ALONE) vet ./... && $(ALONE) run $(STATICCHECK) ./... && $(ALONE) mod tidy -diff); done
	cd bench && $(ALONE) run $(STATICCHECK) -tags gozero .
	$(GO) generate ./messages && git diff --exit-code -- messages
