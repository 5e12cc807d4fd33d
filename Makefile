export CGO_ENABLED = 0
PKGS = ./... ./testdata/controlplane
LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: build test lint bench demo fmt help
help: ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/'

build: ## bin/unpend, static
	go build -trimpath -o bin/unpend ./cmd/unpend

test: ## every test, the real control plane included (built at the first run)
	go test -timeout 30m $(TESTFLAGS) $(PKGS)

lint: ## go vet and golangci-lint
	go vet $(PKGS)
	$(LINT) run $(PKGS)

bench: ## benchmarks, with the ratios that matter
	go test -run '^$$' -bench . -benchtime 1s $(PKGS)

demo: build ## the whole story in memory
	bin/unpend demo --auto

fmt: ## format
	$(LINT) fmt
