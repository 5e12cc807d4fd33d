package oracle

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const several = `
apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: a, labels: {zone: z1, nvidia.com/gpu.count: "4"}}, status: {allocatable: {cpu: "8", pods: "10", nvidia.com/gpu: "3"}}}
- {kind: Node, metadata: {name: b, labels: {zone: z2}}, spec: {taints: [{key: team, effect: NoSchedule}]}, status: {allocatable: {cpu: "8", pods: "10", nvidia.com/gpu: "9"}}}
- {kind: Node, metadata: {name: c, labels: {zone: z2}}, spec: {unschedulable: true}, status: {allocatable: {cpu: "8", pods: "10", nvidia.com/gpu: "9"}}}
- {kind: Pod, metadata: {namespace: ml, name: p, labels: {app: s}, ownerReferences: [{kind: Made, name: m}]}, spec: {nodeName: a, schedulerName: other, containers: [{resources: {limits: {nvidia.com/gpu: "1", cpu: "2"}, requests: {nvidia.com/gpu: "1", cpu: "1"}}}]}}
- {kind: Pod, metadata: {namespace: ml, name: w, labels: {app: s}, ownerReferences: [{kind: Made, name: m}]}, spec: {nodeSelector: {zone: z1}, containers: [{resources: {requests: {nvidia.com/gpu: "1"}}}],
   topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Ignore, labelSelector: {matchLabels: {app: s}}}]}}
- {kind: Pod, metadata: {namespace: ml, name: mig}, spec: {nodeName: a, containers: [{resources: {limits: {nvidia.com/mig-1g: "1", nvidia.com/mig-2g: "1"}}}]}, status: {phase: Running}}
- {kind: Pod, metadata: {namespace: ml, name: r}, spec: {nodeName: b}, status: {phase: Failed, reason: OutOfcpu}}
- {kind: Pod, metadata: {namespace: ops, name: k}, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}, {matchExpressions: [{key: zone, operator: In, values: [z1]}, {key: disk, operator: Exists}]},
   {matchFields: [{key: metadata.name, operator: In, values: [x]}]}]}}}}}
- {kind: Event, metadata: {name: e}, source: {component: kubelet}}
- {kind: ResourceQuota, metadata: {namespace: ml, name: q}}
- {kind: ConfigMap, metadata: {namespace: k, name: s}, data: {status: "groups:\n- {name: g, max: 3}\n"}}
- {kind: NodeGeometry, metadata: {name: a}, report: {gpus: [{index: 0, mig: {current: true}, profiles: [{name: 1g, memorySlices: 1, starts: [0, 7]}], instances: [{size: 4, holder: {pod: x}}, {size: 1}]}, {index: 1, mig: {current: false}}]}}
- {kind: ResourceClaim, metadata: {namespace: ml, name: c}, spec: {devices: {requests: [{name: g, exactly: {deviceClassName: d, count: 2}}, {name: h, exactly: {deviceClassName: d}}]}}}
`

// What objects make together is worked out again from each.
func TestMadeOfSeveral(t *testing.T) {
	d := dumpOf(t, several)
	for _, tc := range []struct{ ref, path, so, not string }{
		{"Pod/ml/w", "selects[a]", "= true", "= false"},
		{"Pod/ml/w", "selects[b]", "= false", "= true"},
		{"Pod/ml/w", "meant[a]", "= 1", "= 0|= 2"},
		{"Pod/ml/w", "meant[b]", "= 0", "= 1"},
		{"Pod/ml/w", "missing[zone]", "= 2", "= 1"},
		{"Pod/ops/k", "missing[1:disk]", "= 1", "= 2"},
		{"Pod/ops/k", "missing[2:metadata.name]", "= 2", "= 1"},
		{"Pod/ops/k", "missing[1:disk|2:metadata.name]", "= 3", "= 2"},
		{"Pod/ops/k", "missing[1:zone,1:disk]", "= 0", "= 2"},
		{"Pod/ml/w", "room", "= 2|at least 2|at least 1", "= 3|at least 3"},
		{"Pod/ml/w", "short[nvidia.com/gpu]", "= 1", "= 2|= 0"},
		{"Pod/ml/p", "short[nvidia.com/gpu]", "= 1", "= 2|= 0"},
		{"Pod/ml/p", "short[cpu]", "= 0", "= 1"},
		{"Pod/ml/p", "sum(nodes.free[nvidia.com/gpu])", "= 2", "= 20"},
		{"Pod/ml/w", "skew[zone,a]", "= 2|at least 2", "= 1"},
		{"Pod/ml/w", "skew[zone,b]", "= 1", "at least 2"},
		{"Pod/ml/p", "judged[other]", "exists", "absent"},
		{"Pod/*", "judged[nobody]", "absent", "exists"},
		{"Event/*", "by", "!= nobody", "!= kubelet"},
		{"Pod/ml/p", "uses[limits.cpu]", "= 2", "= 1"},
		{"Pod/ml/p", "uses[requests.cpu]", "= 1", "= 2"},
		{"Pod/ml/p", "uses[pods]", "= 1", "= 0"},
		{"ResourceQuota/ml/q", "counted[requests.nvidia.com/gpu]", "= 2", "= 3"},
		{"ResourceQuota/ml/q", "counted[pods]", "= 3", "= 4"},
		{"Node/a", "requests[nvidia.com/mig-*]", "= 2", "= 1"},
		{"Node/a", "metadata.labels[nvidia.com/gpu.count] - status.allocatable[nvidia.com/gpu]", "= 1", "= 4"},
		{"Node/a", "count(refused)", "= 0", "= 1"},
		{"Node/a", "count(refused[*]) - count(refused)", "= 1", "= 0"},
		{"NodeGeometry/a", "slices[0]", "= 8", "= 7"},
		{"NodeGeometry/a", "unheld[0]", "= 4", "= 3"},
		{"NodeGeometry/a", "max(unheld)", "= 4", "= 8"},
		{"Made/ml/m", "sum(pods.requests[nvidia.com/gpu])", "= 2", "= 1"},
		{"Made/ml/m", "count(pods)", "= 2", "= 1"},
		{"ConfigMap/k/s", "data[status].groups[name=g].max", "= 3", "= 2"},
		{"ResourceClaim/ml/c", "asked[g]", "= 2", "= 1"},
		{"ResourceClaim/ml/c", "asked[h]", "= 1", "= 0"},
	} {
		for i, list := range []string{tc.so, tc.not} {
			for claim := range strings.SplitSeq(list, "|") {
				c := Claim{Ref: tc.ref, Path: tc.path, Op: claim}
				for _, op := range []string{"at least ", "!= ", "= "} {
					if value, ok := strings.CutPrefix(claim, op); ok {
						c.Op, c.Value = strings.TrimSpace(op), value
						break
					}
				}
				if why := d.Denies(c); (why == "") != (i == 0) {
					t.Errorf("%s: %q", c, why)
				}
			}
		}
	}
}

// A change is one that the claim sees, it is told, and it is undone.
func TestChanged(t *testing.T) {
	d := dumpOf(t, several)
	for _, c := range []Claim{
		{Ref: "Node/a", Path: "status.allocatable[cpu]", Op: "=", Value: "8"},
		{Ref: "Pod/ml/w", Path: "room", Op: "=", Value: "2"},
		{Ref: "Pod/ml/w", Path: "room", Op: "at least", Value: "2"},
		{Ref: "Pod/ml/w", Path: "spec.nodeName", Op: "absent"},
		{Ref: "Pod/ml/w", Path: "spec.tolerations", Op: "tolerates not", Value: "team:NoSchedule"},
		{Ref: "Pod/*", Path: "judged[nobody]", Op: "absent"},
		{Ref: "Event/*", Path: "by", Op: "!=", Value: "nobody"},
		{Ref: "DeviceClass/x", Op: "absent"},
		{Ref: "Node/*", Path: "keys(status.allocatable)", Op: "none begins", Value: "amd.com/"},
		{Ref: "Node/b", Path: "spec.taints[key=team,effect=NoSchedule]", Op: "exists"},
		{Ref: "ConfigMap/k/s", Path: "data[status].groups[name=g].max", Op: "=", Value: "3"},
		{Ref: "Made/ml/m", Path: "count(pods)", Op: "=", Value: "2"},
	} {
		for seed := range uint64(20) {
			if why := d.Denies(c); why != "" {
				t.Fatalf("%s is not so before: %s", c, why)
			}
			at := ""
			if !d.Changed(c, rand.New(rand.NewPCG(seed, 0)), func(done string) {
				at = done
				if d.Denies(c) == "" && c.Op != "at least" {
					t.Errorf("%s is so still, with %s", c, done)
				}
			}) || at == "" {
				t.Errorf("nothing to change for %s", c)
			}
		}
		if why := d.Denies(c); why != "" {
			t.Errorf("%s is not so any more: %s", c, why)
		}
	}
}
