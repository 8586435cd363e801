# Everything that is done with this project. `make help` lists it.

MODULES     := assetsvc authsvc deploy gateway shared
APART       := deploy/test/browser deploy/test/rig/devmongo deploy/test/faults deploy/test/k8s deploy/test/alerts deploy/test/alerts/collector # modules outside of the workspace, for what only they need
PACKAGES    := $(addsuffix /...,$(addprefix ./,$(MODULES)))
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZCOUNT   ?= 20000
SOAKTIME    ?= 10m
DATA        ?= ./data

.DEFAULT_GOAL := help
.PHONY: help setup build run run-split test check unit test-docs test-k8s e2e test-console test-mongo feedcheck model model-quick fuzz bench bench-gateway soak images test-compose test-observability vuln clean

help: ## list what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

setup: ## install what building and testing need and is missing
	@deploy/test/setup.sh

build: ## build the programs into ./bin
	go build -trimpath -o bin/ ./deploy/registry/cmd/registry ./deploy/registry/cmd/split ./deploy/registry/cmd/registryctl ./gateway/cmd/gateway ./assetsvc/cmd/assetsvc ./authsvc/cmd/authsvc

run: build ## run the whole registry as one process, with sandbox keys
	bin/registry serve --sandbox --data $(DATA) --admin-addr 127.0.0.1:8079

run-split: build ## run the three services as processes of their own
	bin/split

test: setup build check vuln unit test-docs model-quick e2e test-compose test-observability fuzz ## check everything

check: ## format, vet, staticcheck, and each module on its own
	@test -z "$$(gofmt -l $(MODULES))" || { gofmt -d $(MODULES); exit 1; }
	go vet $(PACKAGES)
	go run $(STATICCHECK) $(PACKAGES)
	@for m in $(APART); do echo "module $$m"; (cd $$m && GOWORK=off go vet ./... && GOWORK=off go run $(STATICCHECK) ./... && GOWORK=off go mod tidy -diff) || exit 1; done
	@for m in $(MODULES); do echo "module $$m alone"; (cd $$m && GOWORK=off go build ./... && GOWORK=off go mod tidy -diff) || exit 1; done

unit: test-k8s ## unit and conformance tests, with the race detector
	go test -race ./assetsvc/... ./authsvc/... ./gateway/... ./shared/... ./deploy/compose ./deploy/images/... ./deploy/registry/registryctl/... ./deploy/registry/... ./deploy/test/traces/...

test-docs: build ## the documents: settings, examples, links, paths and citations
	go test -count=1 ./deploy/test/docs -bin $(CURDIR)/bin

test-k8s: ## the manifests for Kubernetes, without a cluster: by the API server's code, and with the programs
	cd deploy/test/k8s && GOWORK=off go test -count=1 -timeout 10m .

e2e: test-console ## scenarios on one process and on three, restarts, crashes, faults, the feed checked in short, the console
	go test -count=1 -timeout 25m ./deploy/test/e2e/...
	go test -count=1 -timeout 10m ./deploy/test/attack
	go test -count=1 -timeout 25m ./deploy/test/feed
	cd deploy/test/faults && GOWORK=off go test -race -count=1 -timeout 10m .

test-console: ## the admin console in a browser; what it looks like is left in bin/screenshots
	@deploy/test/setup.sh chromium
	cd deploy/test/browser && GOWORK=off go test -count=1 -timeout 10m .

test-mongo: ## the suites of the MongoDB store, and the large feed check, on the server that MONGODB_URI names
	@test -n "$(MONGODB_URI)" || { echo "usage: make test-mongo MONGODB_URI=mongodb://HOST:PORT/?replicaSet=NAME" >&2; exit 2; }
	MONGODB_URI="$(MONGODB_URI)" go test -count=1 -race -timeout 30m ./assetsvc/internal/mongostore
	MONGODB_URI="$(MONGODB_URI)" go test -count=1 -v -timeout 90m ./deploy/test/feed -services 1,2,4 -changes 7000

feedcheck: ## the feed through millions of simulated changes, and through 21,000 real ones with all going wrong
	go test -count=1 -v -timeout 30m -run Simulation ./assetsvc/internal/feed -feed.changes 4000000
	go test -count=1 -v -timeout 90m ./deploy/test/feed -services 1,2,4 -changes 7000

model: setup ## the feed's protocol through everything that can happen, and what it needs to hold
	@deploy/test/model/check.sh

model-quick: setup ## the same in a smaller model
	@deploy/test/model/check.sh quick

fuzz: ## each fuzz target for FUZZCOUNT inputs
	@deploy/test/fuzz.sh $(FUZZCOUNT)

bench: build ## measure, beside the limits of what is measured
	go run ./deploy/bench/registry -bin bin
	go test -run '^$$' -bench . -benchtime 2s ./assetsvc/... ./gateway/...

bench-gateway: build ## the gateway beside Traefik, Caddy and nginx, which are built or installed
	@deploy/test/setup.sh nginx
	mkdir -p bin/peers
	cd deploy/bench/peers/traefik && GOWORK=off go build -o ../../../../bin/peers/ github.com/traefik/traefik/v3/cmd/traefik
	cd deploy/bench/peers/caddy && GOWORK=off go build -o ../../../../bin/peers/caddy .
	go run ./deploy/bench/gateway -bin bin -peers bin/peers

soak: setup build ## SOAKTIME of mixed load at 80 % of what can be borne, with something broken every half minute; then attacks
	go run ./deploy/bench/soak -bin bin -for $(SOAKTIME)
	go test -count=1 -v -timeout 60m ./deploy/test/attack -long

images: ## the services' images for Docker, from scratch, with a list of what is in them
	@deploy/images/build.sh

test-compose: ## docker-compose.yml with everything killed and cut off under load, where a Docker engine can run
	@deploy/test/compose/test.sh

test-observability: setup ## rules, alerts, dashboards and the collector's configuration, against what the services really tell
	cd deploy/test/alerts && GOWORK=off go build -tags remove_all_sd,enable_dns_sd -o ../../../bin/promtool github.com/prometheus/prometheus/cmd/promtool
	bin/promtool check config deploy/observability/prometheus.yaml
	bin/promtool check rules --lint=all --lint-fatal deploy/observability/rules/*.yaml
	bin/promtool test rules deploy/test/alerts/tests/*.yaml
	cd deploy/test/alerts && GOWORK=off go test -count=1 -timeout 10m .

vuln: ## known vulnerabilities, where their database can be reached
	@deploy/test/vuln.sh $(GOVULNCHECK) $(MODULES)

clean: ## remove what was built, not data
	rm -rf bin
