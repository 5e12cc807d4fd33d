//go:build tools

// Package tools pins the programs that make releases: ko and crane make images, cosign signs,
// cyclonedx-gomod lists what is linked, krew installs plugins of kubectl. Nothing is imported
// from it: the package above builds them.
package tools

import (
	_ "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"
	_ "github.com/google/go-containerregistry/cmd/crane"
	_ "github.com/google/ko"
	_ "github.com/sigstore/cosign/v3/cmd/cosign"
	_ "sigs.k8s.io/krew/cmd/krew"
	_ "sigs.k8s.io/krew/cmd/validate-krew-manifest"
)
