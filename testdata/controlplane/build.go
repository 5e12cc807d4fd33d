// Package controlplane starts a real Kubernetes control plane for tests: etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager and kwok as kubelet,
// built from the Go module proxy.
package controlplane

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/unpend/unpend/testdata/built"
)

// Version of the Kubernetes binaries; build/kube/go.mod pins the same.
const Version = "v1.37.1"

// modules are folders of build/, with the packages of the programs that each makes.
var modules = map[string][]string{
	"etcd": {"."},
	"kube": {"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	"kwok": {"sigs.k8s.io/kwok/cmd/kwok"},
}

// ldflags tell the binaries their version: clients cannot parse one that is empty.
func ldflags() string {
	const at = "k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", at, Version, at, major, at, minor)
}

// programs are the paths of all programs by their names; what is missing is built.
func programs(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for name, packages := range modules {
		pins, err := built.Beside("build", name)
		if err != nil {
			return nil, err
		}
		paths, err := built.Module{Pins: pins, Packages: packages, Flags: []string{"-ldflags", ldflags()}}.Programs(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, paths)
	}
	return out, nil
}
