package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
)

// Without a probe the ResourceSlices tell positions; without the claims, nobody
// knows who holds them; a probe's report goes before both.
func TestGeometriesFromSlices(t *testing.T) {
	const slice = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.nvidia.com
  nodeName: gpu-1
  pool: {name: gpu-1, generation: 1, resourceSliceCount: %d}
  devices:
  - name: gpu-0-mig-1g5gb-19-0
    attributes:
      type: {string: mig}
      uuid: {string: MIG-a}
      profile: {string: 1g.5gb}
      productName: {string: NVIDIA A100-SXM4-40GB}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1, creationTimestamp: "2026-11-20T12:00:00Z"}
`
	const claim = `
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ml}
`
	const report = `
---
apiVersion: unpend.dev/v1alpha1
kind: NodeGeometry
metadata: {name: gpu-1}
report: {observedAt: "2026-11-20T12:00:00Z", source: nvml, gpus: [{index: 0, uuid: GPU-a, product: NVIDIA A100-SXM4-40GB}]}
`
	read := func(text string) *cluster.State {
		t.Helper()
		path := filepath.Join(t.TempDir(), "dump.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := dump.Read([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := fmt.Sprintf(slice, 1)
	s := read(whole + claim)
	geo := s.Geometries["gpu-1"]
	if geo == nil || geo.Report.Source != nodeprobe.SourceDRA || len(geo.Report.GPUs) != 1 || geo.Report.GPUs[0].Instances[0].Holder != nil {
		t.Fatalf("geometry %+v", geo)
	}
	if known, why := s.HoldersKnown("gpu-1"); !known {
		t.Errorf("holders are unknown: %s", why)
	}
	if h := read(whole).Geometries["gpu-1"].Report.GPUs[0].Instances[0].Holder; h == nil || !h.Unknown {
		t.Errorf("claims were not read, the holder is %+v", h)
	}
	if s := read(fmt.Sprintf(slice, 2) + claim); s.Geometries["gpu-1"] != nil || s.Doubts["gpu-1"] != "pool gpu-1: 1 of 2 ResourceSlices are there" {
		t.Errorf("a pool in parts: %+v, %q", s.Geometries["gpu-1"], s.Doubts["gpu-1"])
	}
	if s := read(whole + claim + report); s.Geometries["gpu-1"].Report.Source != nodeprobe.SourceNVML {
		t.Errorf("the probe's report did not stand: %+v", s.Geometries["gpu-1"])
	}
}
