package controlplane

import (
	"testing"

	"github.com/unpend/unpend/testdata/built"
)

// Clients are the paths of what people type at a cluster, by their names: kubectl, of the control
// plane's version, and helm. What is missing is built.
func Clients(tb testing.TB) map[string]string {
	tb.Helper()
	pins, err := built.Beside("build", "kubectl")
	if err != nil {
		tb.Fatal(err)
	}
	paths, err := built.Module{Pins: pins, Packages: []string{".", "helm.sh/helm/v3/cmd/helm"}, Flags: []string{"-ldflags", ldflags()}}.Programs(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return paths
}
