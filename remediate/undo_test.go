package remediate

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A caller that goes away in the middle leaves nothing behind.
func TestCallerGoesAway(t *testing.T) {
	for _, at := range []string{"evict", "wait until nobody", "set nvidia.com/mig.config", "wait for MIG manager"} {
		t.Run(at, func(t *testing.T) {
			c := newCell(t)
			node, d, f, _ := repartition(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := Apply(ctx, c.deps, d.Incident, f.ID, f.Plan, func(s Step) {
				if strings.HasPrefix(s.Text, at) {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "parked") {
				t.Error(err)
			}
			c.asBefore(t, node)
			c.running(t, "inference", 3)
		})
	}
}

// On the way back, success that MIG manager still says of the config before does
// not count.
func TestWayBackIsNotOverTooEarly(t *testing.T) {
	c := newCell(t)
	counts := map[string]int{"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}
	placed, err := sim.Place(a100, counts)
	if err != nil {
		t.Fatal(err)
	}
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.Layouts = [][]sim.Placed{placed} }) // asked for all-1g.5gb, and not there yet
	c.editNode(t, node, func(n *corev1.Node) {
		n.Annotations[annotation] = `{"op":"x","id":"this","priorMigConfig":"all-1g.5gb","priorState":"success"}`
	})
	s := &saga{runner: &runner{Deps: c.deps, rem: &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{UID: "this"}}}, target: diagnosis.Target{Kind: "Node", Name: node, UID: string(c.node(t, node).UID)},
		plan: &diagnosis.Relayout{Config: "all-balanced", Layouts: map[int]map[string]int{0: counts}}}
	e := &entry{Entry: &v1alpha1.Entry{Began: metav1.NewMicroTime(time.Now())}}
	if missing, err := s.waitManager(t.Context(), "all-1g.5gb", e); err != nil || !strings.Contains(missing, "still that of all-balanced") {
		t.Error(missing, err)
	}
	if _, err := s.waitManager(t.Context(), "all-balanced", e); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Error(err)
	}
}

// An entry that was added for a layout is taken out again, beside those of others,
// and their comments stay; one that is not ours stays.
func TestEntryIsTakenOut(t *testing.T) {
	c := newCell(t)
	cm := sim.ConfigMap(c.ns, "mig", a100)
	cm.Data["config.yaml"] = "# ours since 2024\n" + cm.Data["config.yaml"]
	made, err := c.Client().CoreV1().ConfigMaps(c.ns).Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry := []byte(`[{"devices":[0],"mig-enabled":true,"mig-devices":{"2g.10gb":1}}]`)
	s := &saga{runner: &runner{Deps: c.deps, rem: &v1alpha1.Remediation{}}, plan: &diagnosis.Relayout{Config: "unpend-1", Entry: entry,
		ConfigMap: &diagnosis.Target{Kind: "ConfigMap", Namespace: c.ns, Name: "mig", UID: string(made.UID)}}}
	read := func() string {
		cm, err := c.Client().CoreV1().ConfigMaps(c.ns).Get(t.Context(), "mig", metav1.GetOptions{})
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
	if _, err := s.dropEntry(t.Context(), nil); err != nil || !same(read(), cm.Data["config.yaml"]) || !strings.Contains(read(), "# ours since 2024") {
		t.Errorf("%v: %s", err, read())
	}
	s.plan.Config = "all-1g.5gb"
	if _, err := s.writeEntry(t.Context(), nil); !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "all-1g.5gb") {
		t.Error(err)
	}
	if _, err := s.dropEntry(t.Context(), nil); err != nil || !strings.Contains(read(), "all-1g.5gb") {
		t.Errorf("%v: %s", err, read())
	}
	s.plan.ConfigMap.UID = "another"
	if _, err := s.writeEntry(t.Context(), nil); !errors.Is(err, ErrStale) {
		t.Error(err)
	}
}

// Whoever takes our mark off a node takes it over: it is left as it is.
func TestNodeTakenOver(t *testing.T) {
	c := newCell(t)
	node, d, f, _ := repartition(t, c)
	c.on["wait for MIG manager"] = func() {
		c.editNode(t, node, func(n *corev1.Node) { delete(n.Annotations, annotation) })
		controlplane.Eventually(t, 10*time.Second, "MIG manager is done", func() (bool, string) {
			n := c.node(t, node)
			return n.Labels[labelState] == "success" && n.Labels["nvidia.com/gpu.deploy.device-plugin"] == "true", ""
		})
	}
	if _, err := c.apply(t, d, f); !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "no longer marked as ours") {
		t.Error(err)
	}
	if n := c.node(t, node); !n.Spec.Unschedulable || n.Labels[labelConfig] == "all-1g.5gb" {
		t.Errorf("unschedulable %v, config %s", n.Spec.Unschedulable, n.Labels[labelConfig])
	}
}
