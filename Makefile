export CGO_ENABLED = 0
PKGS = ./... ./testdata/chart ./testdata/controlplane ./testdata/prometheus
# The probe alone needs cgo: NVIDIA's driver is a C library.
CGO = CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations"
PROBE = ./nodeprobe/nvml ./cmd/nodeprobe
GEN = go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
.PHONY: unpend build test promises lint bench demo fmt generate help
help: ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/'

unpend:
	go build -trimpath -o bin/unpend ./cmd/unpend
build: unpend ## bin/unpend, static, and bin/nodeprobe
	$(CGO) go build -trimpath -o bin/nodeprobe ./cmd/nodeprobe

test: ## every test, the real control plane included (built at the first run)
	go test -timeout 45m $(TESTFLAGS) $(PKGS)
	$(CGO) go test -timeout 10m $(TESTFLAGS) $(PROBE)
promises: ## what holds when things break, with figures
	@out=$$(go test ./cmd/unpend/acceptance ./deploy ./remediate ./remediate/guard -p 1 -run '^TestPromise$$$$' -count 1 -timeout 30m -v $(TESTFLAGS) 2>&1) || { echo "$$out"; exit 1; }; echo "$$out" | grep -E '^[RS][0-9]+ [0-9]+/'

lint: ## go vet and golangci-lint
	go vet $(PKGS)
	$(LINT) run $(PKGS)
	$(CGO) go vet $(PROBE)
	CGO_ENABLED=1 $(LINT) run $(PROBE)

bench: ## benchmarks, with the ratios that matter
	go test -run '^$$' -bench . -benchtime 1s $(PKGS)

demo: unpend ## the whole story in memory
	bin/unpend demo --auto

generate: ## CRDs and copies from remediate/v1alpha1
	$(GEN) object paths=./rca paths=./remediate/v1alpha1
	$(GEN) crd paths=./remediate/v1alpha1 output:crd:dir=deploy/charts/unpend/crds

fmt: ## format
	$(LINT) fmt
