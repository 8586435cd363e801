# Everything that one does with this project. `make help` lists it.

# MODULES are the modules of the workspace. APART are modules outside of it, because of
# the dependencies of a test; TOOLS are programs that only tests need
# (deploy/test/tool.sh), and OWN the tools that are modules here. `make test` leaves
# the packages of SLOW to test-all; of the end-to-end tests it runs SCENARIOS, and of the
# attacks on one process all but HELD: streams and long polls, which are held open.
MODULES     := assetsvc authsvc clients/go deploy docs filesvc gateway searchsvc shared
APART       := deploy/test/alerts deploy/test/apart deploy/test/k8s
TOOLS       := devmongo composectl collector kubeapi litewitness oapi-codegen pebble versitygw
OWN         := deploy/test/alerts/collector deploy/test/k8s/kubeapi deploy/test/rig/devmongo
SERVICES    := ./assetsvc/... ./authsvc/... ./filesvc/... ./gateway/... ./searchsvc/... ./shared/...
PACKAGES    := $(SERVICES) ./clients/go/... ./deploy/...
PROGRAMS    := ./deploy/registry/cmd/registry ./deploy/registry/cmd/registryctl ./gateway/cmd/gateway \
	./assetsvc/cmd/assetsvc ./searchsvc/cmd/searchsvc ./authsvc/cmd/authsvc ./filesvc/cmd/filesvc \
	./deploy/test/cmd/split
SLOW        := mongostore|s3store|ukrainian/dictionary|deploy/bench|deploy/test
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
DEADCODE    := golang.org/x/tools/cmd/deadcode@v0.48.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
SCENARIOS   := TestStandalone|TestSplit|TestSearch|TestARestartKeepsAllData
HELD        := unread|long
FUZZCOUNT   ?= 20000
SOAKTIME    ?= 10m
ASSETS      ?= 100000

# SEVERAL are the scenarios of several asset services on one database. LATE_... are tests that test-nightly
# runs instead of test-all: they are slow and rarely fail.
SEVERAL     := TestSpreadOnMongoAndRedis|TestARollingRestartLosesNoRequest|TestTheSecretIsRotatedByRollingRestarts|TestMigrateKeepsAllThatClientsSee
# CALM are tests of the package LONG that compute in one goroutine: with the race detector, ten times as long.
LONG         := ./searchsvc/internal/index
CALM         := TestTheIndexFindsWhatALoopFinds|TestExportsAndFeedsOfDearQuestionsAreBounded|TestADamagedIndexIsRefusedOrEmpty|TestSecondTriesHaveABound|TestMergedColumnsAreThoseOfTheFile
LATE_E2E     := TestReadingFromAMirrorOfAMirror|TestMirrorsAreEqualAfterKills|TestMirrorsFollowTheZoneOfTheRegistry
LATE_ATTACK  := ReadersOf|WithstandsUploads
LATE_SET     := ConformanceWithFreshReads|Figures
LATE_BROWSER := Firefox|EveryScreen
LATE_ALERTS  := LookedAtIsTold
LATE_RELEASE := Upgraded|TwoVersions
LATE_FEED    := TestADrill

# The lanes of test-all. FIRST runs alone and leaves little to compile or to install; the
# attacks are in it, because they measure how fast others are answered. Then
# WAITING, which mostly waits, and WORKING, which needs the processors, run beside each
# other. Two stages of one lane may share a port or a file of bin; stages of two lanes may
# not. Only WORKING rewrites the programs in bin.
FIRST       := packages test test-attack
WAITING     := test-crash test-feed model-quick test-faults
WORKING     := tools vuln test-browser test-stores test-alerts test-traces test-clients \
	test-docs test-release test-oneprocess test-files test-log test-webhooks test-search test-openapi check-apart
# NIGHTLY is slow and rarely fails, so test-all leaves it out. deploy/test/nightly.txt has the last good
# runs. STAGES are those that test-nightly runs. Of the stages, only the last two need MONGOD.
NIGHTLY     := test-compose test-systemd test-mirrors test-steps test-k8s test-versions test-fleet test-screens test-generators test-hostile \
	test-buckets test-readers fuzz $(if $(MONGOD),test-set test-mongo-chaos)
STAGES      ?= $(NIGHTLY)

# With MONGOD, the path of a mongod, the stores, the scenarios of SEVERAL and the feed run on a real replica set.
ON_SET      := $(if $(MONGOD),go run ./deploy/test/cmd/mongoset)
DATA        ?= ./data
ADDR        ?= 127.0.0.1:8080

# The folder of a release, and the secret key that signs its checksums.
DIST        ?= dist
RELEASE_KEY ?= $(HOME)/.config/asset-registry/release.key

# Everything is compiled in two ways only: without cgo, and with the race detector, which
# needs cgo (RACE). So the stages share the build cache. `check` vets all packages; the
# tests need not vet them again. The tag leaves a large package out of gin that encodes a format
# which nobody here uses.
FLAGS              := -trimpath -vet=off -tags=nomsgpack
export CGO_ENABLED := 0
export GOFLAGS     := $(filter-out $(FLAGS),$(GOFLAGS)) $(FLAGS)
# A program with the race detector waits a second at its end, and so does each test of a package.
RACE               := GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 go test -race

# Compilers and checkers collect their garbage more rarely (LARGE), which saves a sixth of their
# time. Tests and the programs in them do not, because some measure memory.
LARGE              := GOGC=400

# A recipe fails if any command of it does, also one before a pipe.
SHELL       := bash
.SHELLFLAGS := -eo pipefail -c

.DEFAULT_GOAL := help
.PHONY: help setup packages tools build race run run-split quick test test-all check check-apart unit unit-long e2e attack fuzz-short \
	test-stages test-docs test-openapi openapi-short test-traces test-stores test-crash test-attack test-k8s test-faults test-feed test-browser test-clients test-release test-oneprocess test-files test-alerts test-log test-webhooks test-search test-compose test-systemd test-mirrors test-steps test-versions test-fleet test-screens test-generators test-hostile test-buckets test-readers test-set test-mongo-chaos test-nightly \
	test-mongo mutants feed-long model model-quick fuzz vuln bench bench-figures bench-copy bench-data bench-files bench-live bench-probes bench-search bench-webhooks bench-gateway soak release images clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

setup: ## install what building and testing need
	@deploy/test/setup.sh

packages: ## install what the stages of test-all need beyond that, save a Docker engine
	@deploy/test/setup.sh all

tools: ## build the programs that only tests need, once
	@for tool in $(TOOLS); do deploy/test/tool.sh $$tool || exit 1; done

build: ## build the programs into ./bin
	$(LARGE) go build -o bin/ $(PROGRAMS)

race: ## build the programs into bin/race, with the race detector; tests take them from RACE_PROGRAMS
	CGO_ENABLED=1 $(LARGE) go build -race -o bin/race/ $(PROGRAMS)

run: ## run the whole registry as one process, with sandbox keys
	$(LARGE) go build -o bin/ ./deploy/registry/cmd/registry
	bin/registry serve --sandbox --search --addr $(ADDR) --data $(DATA) --admin-addr 127.0.0.1:8079

run-split: build ## run the services as processes of their own
	bin/split

# Three loops. quick: after each change. test: before each commit. test-all: before
# a release; it is the landing gate.

quick: ## the shortest loop: vet and the unit tests, without the race detector
	go vet $(SERVICES)
	go test $$(go list $(SERVICES) | grep -vE '$(SLOW)')

test: ## before a commit: checks, unit tests, scenarios, short attacks
	@exec deploy/test/stages.sh "setup build $(if $(LANDING),race )attack" "e2e check $(if $(LANDING),fuzz-short unit-long,openapi-short)" "unit"

test-all: export LANDING := 1
test-all: export RACE_PROGRAMS := $(CURDIR)/bin/race
test-all: test-stages ## everything, in stages that say their name, time and result
	@exec deploy/test/stages.sh "$(FIRST)" "$(WAITING)" "$(WORKING)"

test-nightly: ## what test-all leaves out: before a release, and after work on what a stage is about
	@exec deploy/test/nightly.sh $(STAGES)

check: ## format and vet; in test-all also staticcheck, and each module on its own
	@test -z "$$(gofmt -l $(MODULES))" || { gofmt -d $(MODULES); exit 1; }
	$(LARGE) go vet $(PACKAGES)
	$(if $(LANDING),$(LARGE) go run $(STATICCHECK) $(PACKAGES))
	@$(if $(LANDING),for m in $(MODULES); do echo "module $$m alone"; deploy/test/alone.sh $$m || exit 1; done)

check-apart: ## the same for the modules that only tests need, and no function that nothing calls
	@dead=$$($(LARGE) go run $(DEADCODE) -test $(PACKAGES)) && test -z "$$dead" || { echo "$$dead"; exit 1; }
	@for m in $(APART); do echo "module $$m"; (cd $$m && export $(LARGE) && GOWORK=off go vet ./... && GOWORK=off go run $(STATICCHECK) ./... && GOWORK=off go mod tidy -diff) || exit 1; done
	@for m in $(OWN); do echo "module $$m"; (cd $$m && GOWORK=off go mod tidy -diff) || exit 1; done

# `go list -export` compiles the tests; `go test` links and runs them. Packages without tests are
# left out, because a stage fails if one of its packages has none.
TESTED := -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}'
# Many tests wait, so one package more is tested at a time than there are processors.
AT_ONCE := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# RACED are the packages that make test runs with the race detector: those of guards.txt. In test-all it is all.
RACED := $(if $(LANDING),.,/($(shell sed -nE 's/^([a-z].*)/\1/p' deploy/test/mutants/guards.txt | cut -d' ' -f1 | paste -sd'|'))$$)
unit: ## unit and conformance tests, the guarded ones with the race detector; in test-all all of them
	packages=$$(go list $(TESTED) $(PACKAGES) | grep -vE '$(SLOW)' | grep -v $(LONG:./%=%) | grep -E '$(RACED)') && \
	CGO_ENABLED=1 $(LARGE) go list -race -test -export $$packages >/dev/null && \
	$(RACE) -p=$(AT_ONCE) -parallel=8 $$packages
	$(if $(LANDING),,packages=$$(go list $(TESTED) $(PACKAGES) | grep -vE '$(SLOW)' | grep -vE '$(RACED)') && \
	$(LARGE) go list -test -export $$packages >/dev/null && \
	go test -p=$(AT_ONCE) -parallel=8 $$packages)

unit-long: ## in test-all, the package LONG: its CALM tests without the race detector
	$(RACE) -skip '^($(CALM))$$' $(LONG)
	go test -run '^($(CALM))$$' $(LONG)

e2e: ## the scenarios on one process and on three, and a restart
	go test -count=1 -timeout 10m -run '^($(SCENARIOS))$$' ./deploy/test/e2e
	go test -count=1 -run '^TestHiddenFieldsAreNowhere$$/^one_process$$' ./deploy/test/e2e

attack: ## hostile clients against one process with 256 MiB of memory, but none by streams and long polls
	go test -count=1 -timeout 10m -run '^TestStandaloneWithstandsAttacks$$' -skip '/^($(HELD))' ./deploy/test/attack

openapi-short: build ## a few requests from the OpenAPI document
	go test -count=1 ./deploy/test/openapi/documents
	go test -count=1 ./deploy/test/openapi -skip '^TestEveryDocumentedStatusOccurs$$' -bin $(CURDIR)/bin -rapid.checks=2000 -rapid.nofailfile

fuzz-short: ## each fuzz target for 1,000 inputs
	@deploy/test/fuzz.sh 1000

# The stages of test-all.

test-stages: ## the script that runs the stages, before it runs them, and their lists of tests; the maker of mutants
	@told=$$(mktemp) && NOT_TESTED=$$told go test -count=1 ./deploy/test/stages ./deploy/test/mutants && \
		sed 's/^/not tested here: test-stages: /' "$$told" && rm "$$told"

test-docs: build ## the documents: settings, examples, links, paths and citations
	@deploy/test/setup.sh $@
	go test -count=1 ./deploy/test/docs -bin $(CURDIR)/bin

test-traces: ## traces, metrics and logs of three services together; the scripts of compose
	$(RACE) -count=1 ./deploy/test/traces ./deploy/test/compose

test-steps: ## hostile texts, and the steps that programs with counters take for them: a third way to compile
	$(LARGE) go test -count=1 -timeout 20m ./deploy/test/steps

test-stores: ## the MongoDB stores, on the rig or on the server that MONGODB_URI names; with MONGOD also on a real replica set
	@deploy/test/tool.sh devmongo
	$(RACE) -count=1 -timeout 20m ./assetsvc/internal/mongostore ./filesvc/internal/mongostore
	$(if $(MONGOD),$(ON_SET) go test -count=1 -timeout 20m -skip '$(LATE_SET)' ./assetsvc/internal/mongostore ./filesvc/internal/mongostore)

test-set: ## what test-stores leaves out on a real replica set
	$(ON_SET) go test -count=1 -timeout 20m -run '$(LATE_SET)' ./assetsvc/internal/mongostore
	$(ON_SET) go test -count=1 -timeout 20m -run '^TestQueriesNameTheirIndex$$' ./assetsvc/internal/mongostore -mongo.plans 100000
	$(ON_SET) go test -count=1 -timeout 20m -run '^TestOperationsReadWhatTheyReturn$$' ./filesvc/internal/mongostore -mongo.files 100000

test-crash: ## the scenarios on nine processes, kill -9, full disks, damage, backup, rotation, rolling restarts: all of e2e that `make test` leaves out
	@deploy/test/setup.sh $@
	go test -count=1 -timeout 45m -parallel 4 -skip '^($(SCENARIOS)|$(SEVERAL)|$(LATE_E2E))$$' ./deploy/test/e2e
	$(ON_SET) go test -count=1 -timeout 35m -parallel 2 -run '^($(SEVERAL))$$' ./deploy/test/e2e

test-mirrors: ## mirrors long: all scenarios with readings from a mirror of a mirror, kills, and zones
	go test -count=1 -timeout 30m -run '^($(LATE_E2E))$$' ./deploy/test/e2e

test-attack: ## hostile clients against the services as processes
	go test -count=1 -timeout 10m -skip 'TestStandaloneWithstandsAttacks|$(LATE_ATTACK)' ./deploy/test/attack

test-hostile: ## hostile clients that stay long: streams, long polls, readers of exports and segments, uploads
	go test -count=1 -timeout 10m -run '^TestStandaloneWithstandsAttacks$$/^($(HELD))' ./deploy/test/attack
	go test -count=1 -timeout 10m -run '$(LATE_ATTACK)' ./deploy/test/attack

test-openapi: build ## many requests from the OpenAPI document, each documented status, foreign linters
	@deploy/test/setup.sh $@
	@deploy/test/openapi/lint.sh
	go test -count=1 ./deploy/test/openapi/documents ./deploy/test/rig/described ./deploy/bench/load
	go test -count=1 -timeout 30m ./deploy/test/openapi -bin $(CURDIR)/bin -rapid.checks=20000 -rapid.nofailfile

test-generators: build ## clients that foreign generators make from the OpenAPI document
	@deploy/test/setup.sh $@
	go test -count=1 ./deploy/test/openapi/generators -bin $(CURDIR)/bin

test-k8s: ## the manifests for Kubernetes: with the API server's code and with the programs, without a cluster
	@deploy/test/tool.sh kubeapi
	cd deploy/test/k8s && GOWORK=off go test -count=1 -timeout 10m .

test-faults: ## faults between the services and their stores
	@deploy/test/tool.sh devmongo
	@deploy/test/tool.sh versitygw
	cd deploy/test/apart/faults && GOWORK=off go test -count=1 -timeout 25m .

test-feed: ## what the feed promises, with several writers and crashes
	@deploy/test/tool.sh devmongo
	$(ON_SET) go test -count=1 -timeout 30m -skip '$(LATE_FEED)' ./deploy/test/feed

test-mongo-chaos: build ## with MONGOD: members of a replica set and services die, hang and roll back for 5 minutes, and nothing is lost
	go test -count=1 -v -timeout 30m -run '$(LATE_FEED)' ./deploy/test/feed -bin $(CURDIR)/bin -drill 5m

test-browser: ## the admin console, the site and the documentation page in a browser
	@deploy/test/setup.sh $@
	cd deploy/test/apart/browser && GOWORK=off go test -count=1 -timeout 20m -skip '$(LATE_BROWSER)' .

test-screens: ## the pages on every screen, and in Firefox; the screenshots stay in bin/screenshots
	@deploy/test/setup.sh $@
	cd deploy/test/apart/browser && GOWORK=off go test -count=1 -timeout 20m -run '$(LATE_BROWSER)' .

test-clients: build ## the clients in Go, Python and TypeScript, against one process that is killed and refuses
	@deploy/test/setup.sh $@
	go test -count=1 -timeout 15m ./deploy/test/clients -bin $(CURDIR)/bin

test-alerts: ## rules, alerts, dashboards and the collector's configuration, against what the services send
	@deploy/test/setup.sh $@
	@deploy/test/tool.sh collector
	promtool check config deploy/observability/prometheus.yaml
	promtool check rules --lint=all --lint-fatal deploy/observability/rules/*.yaml
	promtool test rules deploy/test/alerts/tests/*.yaml
	cd deploy/test/alerts && GOWORK=off go test -count=1 -timeout 10m -skip '$(LATE_ALERTS)' .

test-fleet: ## each alert and each panel of a dashboard has its figures, from services that run
	@deploy/test/setup.sh $@
	@deploy/test/tool.sh collector
	cd deploy/test/alerts && GOWORK=off go test -count=1 -timeout 10m -run '$(LATE_ALERTS)' .

test-log: ## a public log, by verifiers that others wrote: Tessera's, and one in Python from docs/log.md
	@deploy/test/setup.sh $@
	cd deploy/test/apart/log && GOWORK=off go test -count=1 -timeout 10m .

test-webhooks: build ## webhooks to dead, slow and hostile receivers, and under kill -9
	go test -count=1 -run Simulation ./assetsvc/internal/webhook -webhook.kills 2000
	cd deploy/test/apart/webhooks && GOWORK=off go test -count=1 -timeout 15m . -bin $(CURDIR)/bin

test-search: build ## the search: words by a dictionary, lists of questions, kills, hostile clients
	@deploy/test/setup.sh $@
	go test -count=1 ./shared/ukrainian/dictionary -hunspell /usr/share/hunspell
	go test -count=1 -v -run '^(TestPeopleFindWhatTheyMean|TestStrangersAreNotFound)$$' ./searchsvc/internal/index
	go test -count=1 -timeout 20m ./deploy/test/search -bin $(CURDIR)/bin

test-readers: build ## exports and whole copies as other programs read them
	@deploy/test/setup.sh $@
	cd deploy/test/apart/exports && GOWORK=off go test -count=1 -timeout 5m . -bin $(CURDIR)/bin

test-compose: ## docker-compose.yml with containers killed and cut off under load, where a Docker engine can run
	@deploy/test/compose/test.sh

test-release: build ## a release: its files, alone on a bare root
	@deploy/test/setup.sh $@
	go test -count=1 -timeout 20m -skip '$(LATE_RELEASE)' ./deploy/test/releases -bin $(CURDIR)/bin

test-versions: build ## two versions beside each other, upgrade and return
	@deploy/test/setup.sh $@
	go test -count=1 -timeout 20m -run '$(LATE_RELEASE)' ./deploy/test/releases -bin $(CURDIR)/bin

test-oneprocess: build ## one process in production: certificate by an authority that others wrote, backups, units, a mirror that takes over
	@deploy/test/setup.sh $@
	@deploy/test/tool.sh pebble
	go test -count=1 -timeout 10m ./deploy/test/oneprocess -bin $(CURDIR)/bin

test-systemd: build ## the units in a booted Debian: alerts by web and mail, wrong settings, deaths
	@deploy/test/setup.sh $@
	go test -count=1 -timeout 20m ./deploy/test/booted -bin $(CURDIR)/bin

test-files: ## files in an object store that others wrote
	go test -count=1 ./filesvc/internal/s3store

test-buckets: build ## the registry on an object store that others wrote: kills, moves, mirrors, trouble
	@deploy/test/setup.sh $@
	cd deploy/test/apart/files && GOWORK=off go test -count=1 -timeout 10m . -bin $(CURDIR)/bin

fuzz: ## each fuzz target for FUZZCOUNT inputs
	@deploy/test/fuzz.sh $(FUZZCOUNT)

vuln: build ## known vulnerabilities of what ships, and licences of packages for JavaScript
	@deploy/test/vuln.sh $(GOVULNCHECK) $(addprefix bin/,$(notdir $(PROGRAMS))) -- $(TOOLS)

# Longer than test-all.

mutants: ## changes of guards that no test sees, in PKG (stores: guards of stores), or in all of deploy/test/mutants
	nice -n 15 go run ./deploy/test/mutants $(PKG)

test-mongo: ## the suites of the MongoDB store, figures, and the feed check, on the replica set that MONGODB_URI names
	@deploy/test/mongo.sh

feed-long: ## the feed through millions of simulated changes, and through 21,000 real ones with faults of all kinds
	go test -count=1 -v -timeout 30m -run Simulation ./assetsvc/internal/feed -feed.changes 4000000
	go test -count=1 -v -timeout 90m ./deploy/test/feed -services 1,2,4 -changes 7000

model: setup ## the model of the feed's protocol, searched whole, and with each guard left out
	@deploy/test/model/check.sh

model-quick: setup ## the same in a smaller model, if the feed, the store or a model has changed since the last good run
	@if [ "$$(deploy/test/since.sh $@)" = 0 ]; then echo "nothing has changed since the last good run (deploy/test/nightly.txt)"; \
	else deploy/test/model/check.sh quick; fi

bench: build ## measure the registry beside the limits of what it does
	go build -o bin/bench-fill ./assetsvc/internal/fill
	go run ./deploy/bench/registry -bin bin
	go test -run '^$$' -bench . -benchtime 2s ./assetsvc/... ./gateway/... ./shared/...

bench-figures: ## the figures that comments of packages quote (deploy/bench/README.md); an idle machine, 5 minutes
	go test -run '^$$' -bench 'Borrower|Admit' -count 4 ./gateway/internal/ratelimit
	go test -run '^$$' -bench Read -count 4 ./gateway

bench-live: build ## how changes reach 100, 1,000 and 10,000 followers, beside a naive handler
	go run ./deploy/bench/live -bin bin

bench-copy: build ## a first copy of ASSETS assets in three ways, and the making of a snapshot
	go build -o bin/bench-fill ./assetsvc/internal/fill
	go run ./deploy/bench/copy -bin bin -assets $(ASSETS)

bench-data: build ## whole copies of ASSETS assets: making them, with a writer meanwhile, and downloads beside nginx
	@deploy/test/setup.sh $@
	go build -o bin/bench-fill ./assetsvc/internal/fill
	go run ./deploy/bench/copy -bin bin -assets $(ASSETS) -data

bench-files: build ## readings and uploads of files beside nginx and the bare disk, 3 minutes
	@deploy/test/setup.sh $@
	go run ./deploy/bench/files -bin bin

bench-probes: ## what the health checks of an idle docker-compose.yml need, 25 minutes
	deploy/test/compose/test.sh -run '^$$' -bench Probes -benchtime 1x -timeout 60m

bench-search: build ## the search service and the site on ASSETS assets: index, memory, latency, and when changes are found
	go build -o bin/bench-fill ./assetsvc/internal/fill
	go run ./deploy/bench/search -bin bin -assets $(ASSETS)

bench-webhooks: build ## how soon changes reach 1,000 webhooks, a tenth of them dead and a tenth slow
	cd deploy/test/apart/webhooks && GOWORK=off go test -count=1 -v -timeout 15m -run Healthy . -bin $(CURDIR)/bin -hooks 1000 -lasts 60s

bench-gateway: build ## the gateway beside Traefik, Caddy and nginx, which are built or installed
	@deploy/test/setup.sh $@
	mkdir -p bin/peers
	cd deploy/bench/peers && GOWORK=off go build -o ../../../bin/peers/ ./caddy github.com/traefik/traefik/v3/cmd/traefik
	go run ./deploy/bench/gateway -bin bin -peers bin/peers

soak: setup build ## SOAKTIME of mixed load at 80 % of capacity, with a fault every half minute; then long attacks
	go run ./deploy/bench/soak -bin bin -for $(SOAKTIME)
	go test -count=1 -v -timeout 60m ./deploy/test/attack -long

release: ## the files of a release, in DIST: make release VERSION=0.1.0
	@deploy/test/setup.sh test-release
	go run ./deploy/release -version "$(VERSION)" -out "$(DIST)" -key "$(RELEASE_KEY)" $(filter-out ./deploy/test/%,$(PROGRAMS))

images: ## the services' images for Docker, from scratch, with a list of their contents
	@deploy/images/build.sh

clean: ## remove what was built, not data
	rm -rf bin dist
