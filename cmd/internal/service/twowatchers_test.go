package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
)

// storm makes, changes and deletes waiting workloads, in an order that a seed
// says.
func storm(t *testing.T, c *controlplane.ControlPlane, ns string) {
	t.Helper()
	random := rand.New(rand.NewPCG(2, 2))
	deployments := c.Client().AppsV1().Deployments(ns)
	replicas := map[string]int32{}
	for range 60 {
		name := fmt.Sprintf("serve-%d", random.IntN(6))
		n := int32(random.IntN(4))
		var err error
		switch _, exists := replicas[name]; {
		case !exists:
			labels := map[string]string{"app": name}
			_, err = deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &n,
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: waits(name)}}, metav1.CreateOptions{})
			replicas[name] = n
		case random.IntN(5) == 0:
			err = deployments.Delete(t.Context(), name, metav1.DeleteOptions{})
			delete(replicas, name)
		default:
			patch := []byte(`{"spec":{"replicas":` + strconv.Itoa(int(n)) + `}}`)
			_, err = deployments.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
			replicas[name] = n
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
	}
}

// waits is a pod that no node has room for.
func waits(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/" + app, Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}}}}}}
}

// waitingNow is what a diagnosis would find waiting in a namespace, by incident.
func waitingNow(t *testing.T, c *controlplane.ControlPlane, ns string) map[string]incident.Incident {
	t.Helper()
	st, err := live.Read(t.Context(), c.Client(), c.Dynamic(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]incident.Incident{}
	for _, i := range incident.Group(slices.DeleteFunc(st.Pods, func(p *corev1.Pod) bool { return p.Namespace != ns }), st.Owner) {
		i.Newest = ""
		out[i.ID] = i
	}
	return out
}

// Two watchers at a time publish through one bus, one of them over a slow line,
// the other replaced in the middle: nothing comes twice, nothing older comes after
// something newer, and in the end the bus knows what is true.
func TestTwoWatchersTellEverythingOnce(t *testing.T) {
	t.Parallel() // it waits
	const model = "A100-40GB"
	c := controlplane.Start(t)
	c.AddNode(t, sim.Node{Name: "gpu-1", Model: model, Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All(model, "1g.5gb")}})
	ns := c.Namespace(t)
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer running.Wait()
	defer cancel()
	watch := func(ctx context.Context, debounce, delay time.Duration) {
		publish := func(ctx context.Context, i incident.Incident) error {
			<-time.After(delay)
			return publishIncident(b)(ctx, i)
		}
		w, err := watcher.New(watcher.Options{Client: c.Client(), Debounce: debounce, Sweep: time.Second, Publish: publish, Published: publishedIncidents(b),
			Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := w.Run(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	seen := &messages{last: map[string]incident.Incident{}}
	running.Go(func() {
		if err := b.Consume(ctx, bus.Incidents, "test", seen.take); err != nil {
			t.Error(err)
		}
	})
	early, leave := context.WithCancel(ctx)
	defer leave()
	watch(early, 5*time.Millisecond, 0)
	watch(ctx, 50*time.Millisecond, 150*time.Millisecond)
	storm(t, c, ns)
	leave()
	watch(ctx, 20*time.Millisecond, 0)
	controlplane.Eventually(t, 40*time.Second, "the bus knows what is true", func() (bool, string) {
		want, got := waitingNow(t, c, ns), map[string]incident.Incident{}
		known, err := publishedIncidents(b)(t.Context())
		for _, i := range known {
			if i.Newest = ""; !i.Resolved {
				got[i.ID] = i
			}
		}
		return err == nil && maps.EqualFunc(got, want, func(a, b incident.Incident) bool { return sameIncident(a, b) }), fmt.Sprintf("got %+v\nwant %+v, %v", got, want, err)
	})
	controlplane.Eventually(t, 10*time.Second, "the reader got the last word on each", func() (bool, string) {
		known, err := publishedIncidents(b)(t.Context())
		return err == nil && seen.has(known), fmt.Sprint(known, err)
	})
	if seen.came < 20 {
		t.Errorf("only %d messages: nothing was tried", seen.came)
	}
	for _, wrong := range seen.wrong {
		t.Error(wrong)
	}
}

// sameIncident compares all but the moment.
func sameIncident(a, b incident.Incident) bool {
	return a.Since.Equal(b.Since) && reflect.DeepEqual(a.Pods, b.Pods) && a.Waiting == b.Waiting && a.Workload == b.Workload && maps.Equal(a.Requests, b.Requests)
}

// messages are those that a reader of the bus got.
type messages struct {
	mu    sync.Mutex
	came  int
	last  map[string]incident.Incident
	wrong []string // those that repeat the one before, or tell of an earlier moment
}

func (m *messages) take(_ context.Context, _ string, body []byte) error {
	var i incident.Incident
	if err := json.Unmarshal(body, &i); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.came++
	before, err := json.Marshal(m.last[i.ID])
	if err != nil {
		return err
	}
	if i.Older(before) || bytes.Equal(before, body) {
		m.wrong = append(m.wrong, fmt.Sprintf("%s came after %s", body, before))
	}
	m.last[i.ID] = i
	return nil
}

func (m *messages) has(known []incident.Incident) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range known {
		if m.last[i.ID].Newest != i.Newest || m.last[i.ID].Resolved != i.Resolved {
			return false
		}
	}
	return true
}
