package oracle

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const more = `
---
apiVersion: v1
kind: List
items:
- {apiVersion: unpend.dev/v1alpha1, kind: NodeGeometry, metadata: {name: a}, report: {gpus: [{index: 0, healthy: false, mig: {current: true}, profiles: [{name: 1g.5gb, starts: [0, 1]}],
   instances: [{profile: 1g.5gb, start: 0, size: 1, holder: {namespace: ml, pod: holder}}, {profile: 3g.20gb, start: 4, size: 4}]}, {index: 1, instances: []}]}}
- {apiVersion: v1, kind: Event, metadata: {namespace: ml, name: e}, involvedObject: {kind: Pod, namespace: ml, name: waits}, reason: FailedScheduling, message: "0/2 nodes\n are available"}
- {apiVersion: v1, kind: Event, metadata: {namespace: default, name: f}, involvedObject: {kind: NodeClaim, name: gone}, reason: Refused, message: no capacity}
- {apiVersion: v1, kind: Pod, metadata: {namespace: ml, name: heavy}, spec: {overhead: {cpu: 500m}, containers: [{resources: {requests: {cpu: "1"}}}]}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {namespace: ml, name: q}, status: {hard: {requests.cpu: 2000m}, used: {requests.cpu: "2"}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {namespace: ops, name: mig}, data: {config.yaml: "all-1g.5gb:\n- devices: all"}}
`

func dumpOf(t *testing.T, text string) *Dump {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "cluster.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is so is not denied, and the same with another value is. In a row: the claims that
// hold, and then those that do not.
func TestDenies(t *testing.T) {
	d := dumpOf(t, cluster+more)
	for _, tc := range []struct{ ref, path, so, not string }{
		{"Node/a", "status.allocatable[nvidia.com/gpu]", "= 2|!= 3|exists", "= 3|!= 2|absent"},
		{"Node/b", "status.allocatable[nvidia.com/gpu]", "= 0|absent", "= 1|exists"},
		{"Node/a", "requests[nvidia.com/gpu]", "= 2", "= 1"},
		{"Node/a", "free[cpu]", "= 3|= 3000m", "= 4"},
		{"Node/a", "count(pods)", "= 1", "= 2"},
		{"Pod/ml/holder", "requests[cpu]", "= 1", "= 2"},
		{"Pod/ml/heavy", "requests[cpu]", "= 1500m", "= 1"},
		{"Node/a", "spec.unschedulable", "= true", "= false|absent"},
		{"Node/a", "spec.taints[key=team,effect=NoSchedule,value=red]", "exists", "absent"},
		{"Node/b", "spec.taints[key=team,effect=NoSchedule,value=red]", "absent", "exists"},
		{"Pod/ml/waits", "spec.tolerations", "tolerates not team=blue:NoSchedule", "tolerates not team=red:NoSchedule"},
		{"Pod/ml/waits", "spec.nodeSelector[pool]", "= x", "= y"},
		{"Pod/ml/waits", "spec.containers[0].resources.limits", "contains 1", "contains 7"},
		{"Pod/ml/waits", "words", "contains 0/2 nodes are available|contains not 1/2", "contains 1/2 nodes"},
		{"NodeClaim/gone", "words", "contains no capacity", "contains quota"},
		{"NodeClaim/gone", "", "absent", "exists"},
		{"Node/a", "", "exists", "absent"},
		{"Node/*", "metadata.name", "!= c", "!= a|= a"},
		{"Node/a", "keys(metadata.labels)", "none begins feature.", "none begins pool"},
		{"Node/b", "status.conditions[type=Ready].status", "= False", "= True"},
		{"NodeGeometry/a", "count(report.gpus)", "= 2", "= 1"},
		{"NodeGeometry/b", "count(report.gpus)", "= 0", "= 1"},
		{"NodeGeometry/a", "report.gpus[index=0].healthy", "= false", "= true"},
		{"NodeGeometry/a", "report.gpus[index=0].instances[start=4].holder", "absent", "exists"},
		{"NodeGeometry/a", "report.gpus[index=0].instances[start=0].holder", "exists", "absent"},
		{"NodeGeometry/a", "sum(report.gpus[index=0].instances[holder].size)", "= 1", "= 5"},
		{"NodeGeometry/a", "count(report.gpus[*].instances[profile=3g.20gb])", "= 1", "= 0"},
		{"NodeGeometry/a", "report.gpus[*].profiles[name=2g.10gb]", "absent", "exists"},
		{"ResourceQuota/ml/q", "status.hard[requests.cpu]", "= 2|= 2000m", "= 3"},
		{"ConfigMap/ops/mig", "data", "contains all-1g.5gb:|contains not all-2g", "contains all-2g|contains not devices"},
		{"Node/c", "spec.unschedulable", "absent", "= true|!= true|exists"},
		{"Node/a", "a[b", "", "exists|absent"},
	} {
		for i, list := range []string{tc.so, tc.not} {
			for claim := range strings.SplitSeq(list, "|") {
				c := Claim{Ref: tc.ref, Path: tc.path, Op: claim}
				for _, op := range []string{"contains not ", "none begins ", "tolerates not ", "contains ", "!= ", "= "} {
					if value, ok := strings.CutPrefix(claim, op); ok {
						c.Op, c.Value = strings.TrimSpace(op), value
						break
					}
				}
				if why := d.Denies(c); claim != "" && (why == "") != (i == 0) {
					t.Errorf("%s: %q", c, why)
				}
			}
		}
	}
}

// A sentence is bare without a claim, or where no claim is about a node that it names; it is
// loose with a number that none of its claims has.
func TestTally(t *testing.T) {
	gpus := Claim{Ref: "Node/a", Path: "status.allocatable[nvidia.com/gpu]", Op: "=", Value: "2"}
	cordoned := Claim{Ref: "Node/a", Path: "spec.unschedulable", Op: "=", Value: "true"}
	gone := Claim{Ref: "DeviceClass/x", Op: "absent"}
	for name, tc := range map[string]struct {
		cause Cause
		want  Tally
	}{
		"all claimed":           {Cause{Says: "all 2 are held since 2026-11-20 12:00 UTC", Nodes: []string{"a"}, Evidence: []Fact{{Fact: "allocatable gpu=2", Claims: []Claim{gpus}}}}, Tally{Claims: 1, Sentences: 2, Bare: 0, Loose: 0}},
		"a fact without":        {Cause{Says: "held", Nodes: []string{"a"}, Evidence: []Fact{{Fact: "x"}, {Fact: "2", Claims: []Claim{gpus}}}}, Tally{Claims: 1, Sentences: 3, Bare: 1, Loose: 0}},
		"a node without":        {Cause{Says: "held", Nodes: []string{"a", "b"}, Evidence: []Fact{{Fact: "2", Claims: []Claim{gpus}}}}, Tally{Claims: 1, Sentences: 2, Bare: 1, Loose: 0}},
		"a number without":      {Cause{Says: "3 of them", Nodes: []string{"a"}, Evidence: []Fact{{Fact: "of gpu-7 (2)", Claims: []Claim{gpus}}}}, Tally{Claims: 1, Sentences: 2, Bare: 0, Loose: 1}},
		"nothing at all":        {Cause{Says: "so"}, Tally{Claims: 0, Sentences: 1, Bare: 1, Loose: 0}},
		"gone for every node":   {Cause{Says: "x does not exist", Nodes: []string{"a", "b"}, Evidence: []Fact{{Fact: "does not exist", Claims: []Claim{gone}}}}, Tally{Claims: 1, Sentences: 2, Bare: 0, Loose: 0}},
		"each is counted":       {Cause{Says: "2 of them", Nodes: []string{"a", "b"}, Evidence: []Fact{{Fact: "x", Claims: []Claim{cordoned, {Ref: "Node/b", Path: "spec.unschedulable", Op: "=", Value: "true"}}}}}, Tally{Claims: 2, Sentences: 2}},
		"by what stands there":  {Cause{Says: "2 and 1 of them", Nodes: []string{"a", "b", "c"}, Evidence: []Fact{{Fact: "x", Claims: []Claim{cordoned, {Ref: "Node/b", Path: "spec.unschedulable", Op: "=", Value: "true"}, {Ref: "Node/c", Path: "spec.unschedulable", Op: "=", Value: "1"}}}}}, Tally{Claims: 3, Sentences: 2}},
		"one is not counted":    {Cause{Says: "1 of them", Nodes: []string{"a"}, Evidence: []Fact{{Fact: "x", Claims: []Claim{cordoned}}}}, Tally{Claims: 1, Sentences: 2, Loose: 1}},
		"ages are by the clock": {Cause{Says: "for 5 h", Nodes: []string{"a"}, Evidence: []Fact{{Fact: "2", Claims: []Claim{gpus}}}}, Tally{Claims: 1, Sentences: 2, Bare: 0, Loose: 0}},
	} {
		var got Tally
		got.Add(tc.cause)
		if left := got.Left; len(left) != got.Bare+got.Loose {
			t.Errorf("%s: %q", name, left)
		}
		if got.Left = nil; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
