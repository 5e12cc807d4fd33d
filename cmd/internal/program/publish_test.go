package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Two thousand nodes, half of them with two taints, made a message above NATS's limit, and
// the diagnosis vanished. It arrives, with every node counted, and is printed the same.
func TestDiagnosisOfManyNodesArrives(t *testing.T) {
	fleet := makeFleet(2000, 1, 1, 1, time.Now())
	for i, n := range fleet.nodes {
		for _, key := range []string{"team", "maintenance"}[:2*(i%2)] {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "x", Effect: corev1.TaintEffectNoSchedule})
		}
	}
	path := writeFleet(t, fleet)
	code, out, _ := call(t, "why", "-f", path, "-o", "json")
	var list diagnosis.List
	must(t, json.Unmarshal([]byte(out), &list))
	if code != 0 || len(list.Items) != 1 || len(list.Items[0].Nodes) != 2000 {
		t.Fatalf("exit %d, %d incidents", code, len(list.Items))
	}
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	var printed strings.Builder
	p := &publisher{service: &service{bus: b, std: Stdio{Out: &printed, Err: io.Discard}, logger: slog.New(slog.DiscardHandler)}}
	d := list.Items[0]
	must(t, p.publish(t.Context(), d, said{waiting: 1}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []byte
	must(t, b.Consume(ctx, bus.Diagnoses, "test", func(_ context.Context, key string, body []byte) error {
		defer cancel()
		if got = body; key != d.Incident {
			return fmt.Errorf("its key is %s", key)
		}
		return nil
	}))
	var summary diagnosis.Summary
	must(t, json.Unmarshal(got, &summary))
	counted := 0
	for _, g := range summary.Nodes {
		counted += g.Count
	}
	t.Logf("%d bytes whole, %d travel", len(out), len(got))
	if counted != 2000 || summary.NodeCount != 2000 || summary.Causes[0].ID != d.Causes[0].ID || summary.Incident != d.Incident || len(got) > 32<<10 {
		t.Errorf("%d bytes, %d nodes: %.400s", len(got), counted, got)
	}
	if printed.String() != string(got)+"\n" {
		t.Errorf("printed %.400s", printed.String())
	}
}
