package sim

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe"
)

// rig is one simulated node and everything that was written to it, in order.
type rig struct {
	t      *testing.T
	client *fake.Clientset
	custom dynamic.Interface
	stack  *Stack
	mu     sync.Mutex
	wrote  []string // states, "paused" and "back", as label patches came
}

func start(t *testing.T, apply time.Duration, pods ...*corev1.Pod) *rig {
	t.Helper()
	now := time.Now()
	n := Node{Name: "gpu-1", Model: "A100-40GB", Layouts: [][]Placed{All("A100-40GB", "1g.5gb")}, Config: "all-1g.5gb"}
	u, err := Unstructured(n.Geometry(now))
	if err != nil {
		t.Fatal(err)
	}
	objs := []runtime.Object{n.Object(now)}
	for _, p := range pods {
		p.Spec.NodeName = n.Name
		objs = append(objs, p)
	}
	r := &rig{t: t, client: fake.NewSimpleClientset(objs...)} //nolint:staticcheck // NewClientset tracks field ownership, which nothing here reads
	r.client.PrependReactor("patch", "nodes", r.note)
	custom := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{nodeprobe.Resource: "NodeGeometryList"})
	if _, err := custom.Resource(nodeprobe.Resource).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.custom = custom
	r.stack = New(r.client, custom, Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: apply, Heartbeat: time.Hour, Kubelet: true, Namespace: "gpu-operator", ConfigMap: "custom"})
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := r.stack.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	r.until("the manager knows the node", func() bool {
		r.stack.mu.Lock()
		defer r.stack.mu.Unlock()
		return r.stack.applied[n.Name] == "all-1g.5gb"
	})
	r.until("pods hold", func() bool {
		names := map[string]bool{}
		for _, name := range holders(r.report()) {
			names[name] = true
		}
		return len(names) == len(pods)
	})
	return r
}

// note keeps what a patch of labels says of the state and of the operands.
func (r *rig) note(action k8stesting.Action) (bool, runtime.Object, error) {
	var patch struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(action.(k8stesting.PatchAction).GetPatch(), &patch); err != nil {
		return true, nil, err
	}
	l := patch.Metadata.Labels
	if l[labelState] == "" {
		return false, nil, nil
	}
	word := l[labelState]
	for value, means := range map[string]string{paused: " paused", "true": " back"} {
		all := !slices.ContainsFunc(operands, func(o string) bool { return l["nvidia.com/gpu.deploy."+o] != value })
		if all {
			word += means
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote = append(r.wrote, word)
	return false, nil, nil
}

func (r *rig) written() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrote)
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	if err := wait.PollUntilContextTimeout(r.t.Context(), 5*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
		r.t.Fatalf("%s: %v; written %v", what, err, r.written())
	}
}

func (r *rig) report() *nodeprobe.NodeGeometry {
	r.t.Helper()
	geo, err := r.stack.report(r.t.Context(), "gpu-1")
	if err != nil || geo == nil {
		r.t.Fatal(geo, err)
	}
	return geo
}

func (r *rig) node() *corev1.Node {
	r.t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.t.Context(), "gpu-1", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// offers is what the node advertises of GPUs, zeros included.
func (r *rig) offers() map[string]int64 {
	out := map[string]int64{}
	for name, q := range r.node().Status.Allocatable {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			out[string(name)] = q.Value()
		}
	}
	return out
}

func (r *rig) ask(config string) {
	r.t.Helper()
	patch := []byte(`{"metadata":{"labels":{"` + labelConfig + `":"` + config + `"}}}`)
	if _, err := r.client.CoreV1().Nodes().Patch(r.t.Context(), "gpu-1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// settled waits for the last of the wanted states and holds all of them.
func (r *rig) settled(want ...string) {
	r.t.Helper()
	r.until("the manager is done", func() bool {
		r.stack.mu.Lock()
		defer r.stack.mu.Unlock()
		return len(slices.Compact(r.written())) >= len(want) && len(r.stack.jobs) == 0
	})
	if got := slices.Compact(r.written()); !slices.Equal(got, want) {
		r.t.Errorf("written %q, want %q", got, want)
	}
}

func gpus(geo *nodeprobe.NodeGeometry) []nodeprobe.GPU { return geo.Report.GPUs }

func TestManagerAppliesALayout(t *testing.T) {
	r := start(t, 10*time.Millisecond)
	r.ask("all-2g.10gb")
	r.settled("pending paused", "success back")
	var starts []int
	for _, in := range r.report().Report.GPUs[0].Instances {
		if in.Profile != "2g.10gb" || in.Holder != nil || in.ID <= 7 {
			t.Errorf("instance %+v", in)
		}
		starts = append(starts, in.Start)
	}
	if !slices.Equal(starts, []int{0, 2, 4}) {
		t.Errorf("starts %v", starts)
	}
	if got, want := r.offers(), (map[string]int64{"nvidia.com/mig-1g.5gb": 0, "nvidia.com/mig-2g.10gb": 3}); !reflect.DeepEqual(got, want) {
		t.Errorf("offers %v, want %v", got, want)
	}
}

func TestManagerLeavesEverythingWhenItFails(t *testing.T) {
	cases := []struct {
		name, config string
		pods         []*corev1.Pod
		faults       Faults
		want         []string
	}{
		{"an instance is held", "all-2g.10gb", []*corev1.Pod{asking("holder", "nvidia.com/mig-1g.5gb", 1)}, Faults{}, []string{"pending paused", "failed back"}},
		{"the driver refuses", "all-2g.10gb", nil, Faults{Fail: true}, []string{"pending paused", "failed back"}},
		{"an unknown entry", "all-9g.90gb", nil, Faults{}, []string{"failed"}},
		{"the counts are there, and held", "all-1g.5gb-again", []*corev1.Pod{asking("holder", "nvidia.com/mig-1g.5gb", 1)}, Faults{}, []string{"success"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, time.Millisecond, c.pods...)
			if c.config == "all-1g.5gb-again" { // the same counts by another name
				r.useConfig(c.config)
			}
			r.stack.SetFaults("gpu-1", c.faults)
			before, offers := gpus(r.report()), r.offers()
			r.ask(c.config)
			r.settled(c.want...)
			if after := gpus(r.report()); !reflect.DeepEqual(after, before) {
				t.Errorf("GPUs\n%+v\nwere\n%+v", after, before)
			}
			if got := r.offers(); !reflect.DeepEqual(got, offers) {
				t.Errorf("offers %v, were %v", got, offers)
			}
			if state := r.node().Labels[labelState]; state != strings.Fields(c.want[len(c.want)-1])[0] {
				t.Errorf("state %s", state)
			}
		})
	}
}

// useConfig gives the manager a config in which seven 1g.5gb have another name.
func (r *rig) useConfig(name string) {
	r.t.Helper()
	cm := ConfigMap("gpu-operator", "custom")
	cm.Data["config.yaml"] = "version: v1\nmig-configs:\n  " + name + ":\n  - devices: all\n    mig-enabled: true\n    mig-devices: {1g.5gb: 7}\n"
	if _, err := r.client.CoreV1().ConfigMaps(cm.Namespace).Create(r.t.Context(), cm, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// pending for ever, nothing offered; once healed it goes on.
func TestManagerWedges(t *testing.T) {
	r := start(t, time.Millisecond)
	r.stack.SetFaults("gpu-1", Faults{Wedge: true})
	r.ask("all-2g.10gb")
	r.until("pending", func() bool { return len(r.written()) == 1 })
	r.until("nothing is offered", func() bool { return reflect.DeepEqual(r.offers(), map[string]int64{"nvidia.com/mig-1g.5gb": 0}) })
	again, err := r.reconciled(time.Millisecond)
	if err != nil || again != time.Hour || len(r.report().Report.GPUs[0].Instances) != 7 {
		t.Errorf("looks again in %v, %v", again, err)
	}
	// The test looks beside the manager's own loop: both may have written the same.
	if got := slices.Compact(r.written()); !slices.Equal(got, []string{"pending paused"}) {
		t.Errorf("written %q", got)
	}
	r.stack.SetFaults("gpu-1", Faults{})
	r.settled("pending paused", "success back")
}

// A manager that gave up, and left the operands paused, starts them again when it is
// asked for what is there.
func TestManagerStartsWhatItHadPaused(t *testing.T) {
	r := start(t, time.Millisecond)
	r.stack.SetFaults("gpu-1", Faults{GiveUp: true})
	r.ask("all-2g.10gb")
	r.until("it gave up", func() bool {
		r.stack.mu.Lock()
		defer r.stack.mu.Unlock()
		return r.stack.applied["gpu-1"] == "all-2g.10gb"
	})
	if got := r.written(); !slices.Equal(got, []string{"pending paused"}) || !reflect.DeepEqual(r.offers(), map[string]int64{"nvidia.com/mig-1g.5gb": 0}) {
		t.Errorf("written %q, offers %v", got, r.offers())
	}
	r.useConfig("all-1g.5gb")
	r.ask("all-1g.5gb")
	r.settled("pending paused", "success back")
	if got, want := r.offers(), (map[string]int64{"nvidia.com/mig-1g.5gb": 7}); !reflect.DeepEqual(got, want) {
		t.Errorf("offers %v, want %v", got, want)
	}
}

// reconciled looks at the node once the job is due.
func (r *rig) reconciled(after time.Duration) (time.Duration, error) {
	var again time.Duration
	var err error
	r.until("the job is due", func() bool {
		again, err = r.stack.reconcile(r.t.Context(), "gpu-1")
		return err != nil || again > after
	})
	return again, err
}

// What a node asked for when its manager started is what the manager has dealt with,
// although it is looked at only after somebody asked for something else.
func TestManagerStartsWithTheFirstLabel(t *testing.T) {
	r := start(t, time.Millisecond)
	geo := r.report()
	n := r.node().DeepCopy()
	geo.Name, n.Name, n.ResourceVersion = "gpu-2", "gpu-2", ""
	if _, err := r.client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.until("the manager has started", func() bool {
		_, exists, err := r.stack.nodes.GetStore().GetByKey("gpu-2")
		return err == nil && exists
	})
	n.Labels[labelConfig] = "all-2g.10gb"
	if _, err := r.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	u, err := Unstructured(geo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.custom.Resource(nodeprobe.Resource).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.stack.SetFaults("gpu-2", Faults{}) // it looks
	r.settled("pending paused", "success back")
}

// A dead manager does not notice the label.
func TestManagerIsDead(t *testing.T) {
	r := start(t, time.Millisecond)
	r.stack.SetFaults("gpu-1", Faults{Die: true})
	r.ask("all-2g.10gb")
	if _, err := r.stack.reconcile(t.Context(), "gpu-1"); err != nil {
		t.Fatal(err)
	}
	if got := r.written(); len(got) != 0 || len(r.report().Report.GPUs[0].Instances) != 7 || r.node().Labels[labelState] != "success" {
		t.Errorf("written %q, report %+v", got, r.report().Report)
	}
	r.stack.SetFaults("gpu-1", Faults{})
	r.settled("pending paused", "success back")
}

func TestManagerIsSlow(t *testing.T) {
	r := start(t, time.Millisecond)
	const slow = 150 * time.Millisecond
	r.stack.SetFaults("gpu-1", Faults{Slow: slow})
	began := time.Now()
	r.ask("all-2g.10gb")
	r.settled("pending paused", "success back")
	if took := time.Since(began); took < slow {
		t.Errorf("took %v", took)
	}
}

// A deleted pod frees what it held, and the next gets it.
func TestDeletedPodsFree(t *testing.T) {
	r := start(t, time.Millisecond, asking("a", "nvidia.com/mig-1g.5gb", 7))
	late := asking("b", "nvidia.com/mig-1g.5gb", 1)
	late.Spec.NodeName = "gpu-1"
	pods := r.client.CoreV1().Pods("ml")
	phase := func(name string) corev1.PodPhase {
		p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Status.Phase
	}
	if _, err := pods.Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.until("the one too many is refused", func() bool { return phase("b") == corev1.PodFailed })
	if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.until("all is free", func() bool { return len(holders(r.report())) == 0 })
}
