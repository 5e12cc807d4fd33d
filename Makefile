export CGO_ENABLED = 0
# Those that wait longest begin first, side by side: what is left at the end keeps every core at work.
PKGS = ./cmd/unpend/acceptance ./remediate/executor ./cmd/internal/service ./deploy/release ./deploy ./cmd/internal/world ./cmd/internal/bus ./rca/cluster/live ./watcher ./... ./testdata/alertmanager ./testdata/built ./testdata/chart ./testdata/chromium ./testdata/controlplane ./testdata/mutants ./testdata/oracle ./testdata/prometheus
# The probe alone needs cgo: NVIDIA's driver is a C library.
CGO = CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations"
PROBE = ./nodeprobe/nvml ./cmd/nodeprobe
GEN = go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# What the program says of itself; where git tells nothing, what Go has noted counts.
git = -X github.com/unpend/unpend/cmd/internal/program.$(1)=$(shell TZ=UTC0 git $(2) 2>/dev/null)
STAMP = $(call git,version,describe --tags --match 'v*' --dirty) $(call git,commit,describe --always --abbrev=40 --exclude '*' --dirty) $(call git,date,log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)
# Rooms whose rules the short tests have to hold.
MUTANTS = ./rca/causes ./rca/layouts ./rca/terms ./rca/kubelet ./rca/gangs ./rca/queues ./rca/growth ./rca/admission ./rca/relayout ./rca/scaling ./rca/edit ./rca/claims ./rca/outside ./rca/outside/refused ./rca/changes ./rca/admit ./rca/stack ./rca/stack/parts ./rca/retry ./rca/mend ./rca/fixes ./remediate/guard ./remediate/journal ./watcher ./watcher/incident
.PHONY: unpend build image release check test test-all promises soak mutants lint bench demo fmt generate help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/'
unpend:
	go build -trimpath -ldflags "-s -w $(STAMP)" -o bin/unpend ./cmd/unpend
build: unpend ## bin/unpend, static, and bin/nodeprobe, as they are released
	$(CGO) go build -trimpath -tags grpcnotrace -ldflags "-s -w" -o bin/nodeprobe ./cmd/nodeprobe
image: ## both images for amd64 and arm64, into bin/release (RELEASEFLAGS="-push REGISTRY -key cosign.key")
release: ## the same, and archives, SBOMs, krew's manifest and signatures
image release:
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$(shell git log -1 --format=%ct 2>/dev/null)} go run ./deploy/release -ldflags "-s -w $(STAMP)" $(RELEASEFLAGS) $@
check: lint ## lint and the tests that need no control plane: for every save
	go test -vet=off -short -p 4 -parallel 8 $(PKGS) # much of it waits
	$(CGO) go test -vet=off -short $(PROBE)
test: ## every test, the real control plane included (built at the first run), a few cases for many
	go test -vet=off -ldflags=-w -timeout 75m $(TESTFLAGS) $(PKGS) # nobody debugs these: to link them without that is quicker
	$(CGO) go test -vet=off -timeout 10m $(TESTFLAGS) $(PROBE)
test-all: test ## the same, every case of every rule
test-all promises: export UNPEND_ALL = 1
promises: ## what holds when things break, with figures
	@out=$$(go test ./cmd/unpend/acceptance ./deploy ./deploy/release ./remediate/executor ./remediate/guard ./remediate/outbound ./remediate/paging ./remediate/slack ./remediate/jira ./remediate/web ./cmd/internal/service -p 1 -run '^TestPromise$$$$' -count 1 -timeout $(or $(WITHIN),30m) -v $(TESTFLAGS) 2>&1) || { echo "$$out"; exit 1; }; echo "$$out" | grep -E '^[PRS][0-9]+ [0-9]+/'
soak: ## the same in full size, which takes long
	UNPEND_SOAK=1 $(MAKE) promises WITHIN=6h
mutants: ## how many mistakes of one operator the short tests notice (SEED=2 SAMPLE=30)
	go run ./testdata/mutants -seed $(or $(SEED),1) -n $(or $(SAMPLE),20) -least 90 -same testdata/mutants/same.txt -also ./cmd/unpend/acceptance -also-run 'Scenarios|Causes|ToldApart|Claims|Quota|Refus|Revert|Repartition|Unprepared|Quarantine|Incidents' $(MUTANTS)
lint: ## golangci-lint, go vet's checks among its own: tests do not vet again
	$(LINT) run $(PKGS)
	CGO_ENABLED=1 $(LINT) run $(PROBE)
bench: ## benchmarks, with the ratios that matter
	go test -run '^$$' -bench . -benchtime 1s $(PKGS)
demo: unpend ## the whole story in memory
	bin/unpend demo --auto
generate: ## CRDs and copies from remediate/v1alpha1
	$(GEN) object paths=./rca/diagnosis paths=./remediate/v1alpha1
	$(GEN) crd paths=./remediate/v1alpha1 output:crd:dir=deploy/charts/unpend/crds
fmt: ## format
	$(LINT) fmt
