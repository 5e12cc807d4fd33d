package dump

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/cluster"
)

func written(t *testing.T, s *cluster.State, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	for _, scenario := range []string{"layout-mismatch", "stale-geometry", "stale-event"} {
		s, err := Read([]string{"../../../testdata/scenarios/" + scenario}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Nodes) == 0 || len(s.Pods) == 0 {
			t.Fatalf("%s: %d nodes, %d pods", scenario, len(s.Nodes), len(s.Pods))
		}
		want := written(t, s, "json")
		for _, format := range []string{"json", "yaml"} {
			again := fromText(t, written(t, s, format))
			if got := written(t, again, "json"); got != want {
				t.Errorf("%s by way of %s: %d bytes, want %d", scenario, format, len(got), len(want))
			}
			if !again.Now.Equal(s.Now) || !maps.Equal(again.Unread, s.Unread) || len(again.Geometries) != len(s.Geometries) {
				t.Errorf("%s by way of %s: now %v, unread %v, %d geometries; want %v, %v, %d", scenario, format,
					again.Now, again.Unread, len(again.Geometries), s.Now, s.Unread, len(s.Geometries))
			}
		}
	}
}

// An empty kind that was read is written as an empty list, or reading it again
// would make it unread.
func TestEmptyKindsAreWritten(t *testing.T) {
	s := &cluster.State{Unread: map[string]string{"Pod": "the right to list pods is missing"}}
	again := fromText(t, written(t, s, "yaml"))
	if want := map[string]string{"Pod": "the dump holds none"}; !maps.Equal(again.Unread, want) {
		t.Errorf("unread %v, want %v", again.Unread, want)
	}
}

const (
	container = `{name: c, image: x, env: [{name: PLAIN, value: hunter2}, {name: REF, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`
	template  = `{spec: {initContainers: [` + container + `], containers: [` + container + `]}}`
)

func TestSecretsAreLeftOut(t *testing.T) {
	const meta = `metadata:
  namespace: ml
  name: x
  annotations: {kubectl.kubernetes.io/last-applied-configuration: 'hunter2', other: hunter2, kueue.x-k8s.io/workload: this}
  managedFields: [{manager: kubectl, operation: Update, fieldsV1: {"f:hunter2": {}}}]
`
	docs := []string{
		"apiVersion: v1\nkind: Secret\n" + meta + "stringData: {a: hunter2}\n",
		"apiVersion: v1\nkind: Pod\n" + meta + "spec: {initContainers: [" + container + "], containers: [" + container + "], ephemeralContainers: [" + container + "]}\n",
		"apiVersion: apps/v1\nkind: Deployment\n" + meta + "spec: {template: " + template + "}\n",
		"apiVersion: apps/v1\nkind: ReplicaSet\n" + meta + "spec: {template: " + template + "}\n",
		"apiVersion: apps/v1\nkind: StatefulSet\n" + meta + "spec: {template: " + template + "}\n",
		"apiVersion: apps/v1\nkind: DaemonSet\n" + meta + "spec: {template: " + template + "}\n",
		"apiVersion: batch/v1\nkind: Job\n" + meta + "spec: {template: " + template + "}\n",
		"apiVersion: batch/v1\nkind: CronJob\n" + meta + "spec: {jobTemplate: {spec: {template: " + template + "}}}\n",
		"apiVersion: nvidia.com/v1\nkind: ClusterPolicy\n" + meta + "spec: {driver: {env: [{name: PLAIN, value: hunter2}]}, toolkit: {manager: {env: [{name: PLAIN, value: hunter2}]}}}\n",
	}
	for _, doc := range docs {
		kind := strings.TrimPrefix(strings.Split(doc, "\n")[1], "kind: ")
		for _, format := range []string{"json", "yaml"} {
			out := written(t, fromText(t, doc), format)
			if strings.Contains(out, "hunter2") {
				t.Errorf("%s as %s holds the secret:\n%s", kind, format, out)
			}
			if kind == "Secret" {
				continue
			}
			kept := []string{"this", "kubectl", "PLAIN"}
			if kind == "Pod" {
				kept = kept[:1] // what its containers run is left out, and who wrote what but its node
			}
			for _, keep := range kept {
				if !strings.Contains(out, keep) {
					t.Errorf("%s as %s lost %q", kind, format, keep)
				}
			}
		}
	}
}

// Since when a layout is pending is told by managedFields alone.
func TestWhoWroteTheStateLabelIsKept(t *testing.T) {
	out := written(t, fromText(t, `
apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  managedFields:
  - {manager: nvidia-mig-manager, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {"f:nvidia.com/gpu-driver-upgrade-state": {}, "f:nvidia.com/mig.config.state": {}, "f:other": {}}}}}
  - {manager: kubelet, operation: Update, fieldsV1: {"f:status": {}}}
status: {images: [{names: [big]}]}
`), "json")
	if !strings.Contains(out, "f:nvidia.com/mig.config.state") || !strings.Contains(out, "f:nvidia.com/gpu-driver-upgrade-state") || strings.Contains(out, "f:other") || strings.Contains(out, "f:status") || strings.Contains(out, "big") {
		t.Errorf("written: %s", out)
	}
}
