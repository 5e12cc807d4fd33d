package act

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
)

// On the way back, success that MIG manager still says of the config before does
// not count.
func TestWayBackIsNotOverTooEarly(t *testing.T) {
	counts := map[string]int{"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
	placed, err := sim.Place(a100, counts)
	if err != nil {
		t.Fatal(err)
	}
	as := sim.Node{Name: "gpu-1", Model: a100, Config: "all-1g.5gb", Layouts: [][]sim.Placed{placed}} // asked for all-1g.5gb, and not there yet
	node := as.Object(noon)
	node.UID = "node"
	node.Annotations = map[string]string{diagnosis.OperationAnnotation: `{"op":"x","id":"this","priorMigConfig":"all-1g.5gb","priorState":"success"}`}
	s := relayoutOf(memory(node, reported(t, as)), diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "node"},
		Relayout: &diagnosis.Relayout{Config: "all-balanced", Layouts: map[int]map[string]int{0: counts}}})
	if missing, err := s.waitManager(t.Context(), "all-1g.5gb", line()); err != nil || missing != "the layout is still that of all-balanced" {
		t.Error(missing, err)
	}
	if _, err := s.waitManager(t.Context(), "all-balanced", line()); err == nil || err.Error() != "somebody set nvidia.com/mig.config=all-1g.5gb meanwhile" {
		t.Error(err)
	}
}

// An entry that was added for a layout is taken out again, beside those of others,
// and their comments stay; one that is not ours stays.
func TestEntryIsTakenOut(t *testing.T) {
	cm := sim.ConfigMap("gpu-operator", "mig", a100)
	cm.UID = "mig"
	cm.Data["config.yaml"] = "# ours since 2024\n" + cm.Data["config.yaml"]
	before := cm.Data["config.yaml"]
	d := memory(cm)
	s := relayoutOf(d, diagnosis.Action{Verb: diagnosis.VerbRelayout, Relayout: &diagnosis.Relayout{Config: "unpend-1", Entry: []byte(`[{"devices":[0],"mig-enabled":true,"mig-devices":{"2g.10gb":1}}]`),
		ConfigMap: &diagnosis.Target{Kind: "ConfigMap", Namespace: "gpu-operator", Name: "mig", UID: "mig"}}})
	read := func() string {
		cm, err := d.Client.CoreV1().ConfigMaps("gpu-operator").Get(t.Context(), "mig", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm.Data["config.yaml"]
	}
	if _, err := s.writeEntry(t.Context(), nil); err != nil || !strings.Contains(read(), "unpend-1") || !strings.Contains(read(), "# ours since 2024") {
		t.Fatalf("%v: %s", err, read())
	}
	if _, err := s.writeEntry(t.Context(), nil); err != nil || strings.Count(read(), "unpend-1") != 1 { // once more, after a crash
		t.Fatalf("%v: %s", err, read())
	}
	same := func(a, b string) bool {
		var x, y any
		return yaml.Unmarshal([]byte(a), &x) == nil && yaml.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
	}
	if _, err := s.dropEntry(t.Context(), nil); err != nil || !same(read(), before) || !strings.Contains(read(), "# ours since 2024") {
		t.Errorf("%v: %s", err, read())
	}
	s.how.Config = "all-1g.5gb"
	if _, err := s.writeEntry(t.Context(), nil); !errors.Is(err, plan.ErrStale) || !strings.Contains(err.Error(), "all-1g.5gb") {
		t.Error(err)
	}
	if _, err := s.dropEntry(t.Context(), nil); err != nil || !strings.Contains(read(), "all-1g.5gb") {
		t.Errorf("%v: %s", err, read())
	}
	s.how.ConfigMap.UID = "another"
	if _, err := s.writeEntry(t.Context(), nil); !errors.Is(err, plan.ErrStale) {
		t.Error(err)
	}
}
