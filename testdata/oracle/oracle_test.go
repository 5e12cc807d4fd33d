package oracle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const cluster = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a, labels: {pool: x, nvidia.com/mig.config.state: failed}}, spec: {unschedulable: true, taints: [{key: team, value: red, effect: NoSchedule}]},
   status: {allocatable: {cpu: "4", pods: "10", nvidia.com/gpu: "2"}, capacity: {nvidia.com/gpu: "2"}, conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: b, labels: {feature.node.kubernetes.io/pci-10de.present: "true"}}, spec: {taints: [{key: team, value: blue, effect: NoSchedule}]},
   status: {allocatable: {cpu: "4", pods: "10"}, conditions: [{type: Ready, status: "False"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: ml, name: holder}, spec: {nodeName: a, containers: [{resources: {limits: {nvidia.com/gpu: "2", cpu: "1"}}}]}, status: {phase: Running}}
---
apiVersion: v1
kind: Pod
metadata: {namespace: ml, name: waits}
spec:
  nodeSelector: {pool: x}
  tolerations: [{key: team, value: red}]
  containers: [{resources: {limits: {nvidia.com/gpu: "1"}}}]
`

// What is so is let pass, and what is not is named, node by node.
func TestHeld(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "cluster.yaml"), []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	const both = `[{"name": "a"}, {"name": "b"}]`
	for causes, want := range map[string][]string{
		`{"id": "NodeCordoned", "says": "cordoned", "nodes": ["a", "b"]}`:                                         {`NodeCordoned is not so on node b: "cordoned"`},
		`{"id": "NodeNotReady", "says": "not ready", "nodes": ["a", "b"]}`:                                        {`NodeNotReady is not so on node a: "not ready"`},
		`{"id": "NodeNotReady", "says": "under disk pressure", "nodes": ["b"]}`:                                   {`NodeNotReady is not so on node b: "under disk pressure"`},
		`{"id": "NodeNotReady", "says": "not opened yet: startup taint team stands on it", "nodes": ["a"]}`:       nil,
		`{"id": "NodeNotReady", "says": "not opened yet: startup taint x stands on it", "nodes": ["a"]}`:          {`NodeNotReady is not so on node a: "not opened yet: startup taint x stands on it"`},
		`{"id": "UntoleratedTaint", "says": "taint team=red", "nodes": ["a", "b"]}`:                               {`UntoleratedTaint is not so on node a: "taint team=red"`},
		`{"id": "UntoleratedTaint", "says": "taint other", "nodes": ["b"]}`:                                       {`UntoleratedTaint is not so on node b: "taint other"`},
		`{"id": "NodeSelectorMismatch", "says": "", "nodes": ["a", "b"]}`:                                         {`NodeSelectorMismatch is not so on node a: ""`},
		`{"id": "GPUsInUse", "says": "", "nodes": ["a", "b"]}`:                                                    {`GPUsInUse is not so on node b: ""`},
		`{"id": "GPURequestTooLarge", "says": "", "nodes": ["a", "b"]}`:                                           {`GPURequestTooLarge is not so on node a: ""`},
		`{"id": "DevicePluginDown", "says": "", "nodes": ["a", "b"]}`:                                             {`DevicePluginDown is not so on node a: ""`},
		`{"id": "MIGConfigFailed", "says": "", "nodes": ["a", "b"]}`:                                              {`MIGConfigFailed is not so on node b: ""`},
		`{"id": "HostResourcesShort", "says": "", "nodes": ["a"]}`:                                                {`HostResourcesShort is not so on node a: ""`},
		`{"id": "Unknown", "says": "", "nodes": ["a", "c"]}`:                                                      {"Unknown names node c, which the dump lacks"},
		`{"id": "GPURequestTooLarge", "says": "no node of the cluster has a GPU"}`:                                {"no node of the cluster has a GPU, it says, and node a has nvidia.com/gpu=2", "no node of the cluster has a GPU, it says, and node b has feature.node.kubernetes.io/pci-10de.present=true"},
		`{"id": "GPURequestTooLarge", "says": "nothing says that any node of the cluster has a GPU"}`:             {"no node of the cluster has a GPU, it says, and node a has nvidia.com/gpu=2", "no node of the cluster has a GPU, it says, and node b has feature.node.kubernetes.io/pci-10de.present=true"},
		`{"id": "Unknown", "evidence": [{"ref": "Node/a", "fact": "allocatable nvidia.com/gpu=2, requested 2"}]}`: nil,
		`{"id": "Unknown", "evidence": [{"ref": "Node/a", "fact": "allocatable nvidia.com/gpu=2, requested 1"}]}`: {`Unknown: Node/a "allocatable nvidia.com/gpu=2, requested 1": 2 are requested`},
		`{"id": "Unknown", "evidence": [{"ref": "Node/b", "fact": "label pool=x"}]}`:                              {`Unknown: Node/b "label pool=x": the label is "", there false`},
	} {
		var s Said
		text := `{"workload": {"namespace": "ml"}, "pods": {"names": ["waits"]}, "requests": {"nvidia.com/gpu": "1", "cpu": "1"}, "nodes": ` + both + `, "causes": [` + causes + `]}`
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		got, statements := d.Held(s)
		if !slices.Equal(got, want) || statements < 2 {
			t.Errorf("%s: of %d statements %q, want %q", causes, statements, got, want)
		}
	}
	missing, _ := d.Held(Said{})
	if want := []string{"0 nodes are told, the dump has 2"}; !slices.Equal(missing, want) {
		t.Errorf("%q", missing)
	}
}
