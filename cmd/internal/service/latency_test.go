package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// served is a fleet as an API server serves it. client-go's own tracker falls over
// when a watch is 100 events behind; who changes a pod here waits until every
// watch has read it.
type served struct {
	*rcatest.Fleet
	mu      sync.Mutex
	watches []*watch.FakeWatcher
	version int
}

func (s *served) client(b *testing.B) kubernetes.Interface {
	b.Helper()
	c := fake.NewClientset()
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	for _, n := range s.Nodes {
		nodes.Items = append(nodes.Items, *n)
	}
	for _, p := range s.Pods {
		pods.Items = append(pods.Items, *p)
	}
	for name, list := range map[string]runtime.Object{"nodes": nodes, "pods": pods} {
		c.PrependReactor("list", name, func(clienttesting.Action) (bool, runtime.Object, error) { return true, list.DeepCopyObject(), nil })
	}
	for _, o := range s.Sets {
		if err := c.Tracker().Add(o); err != nil {
			b.Fatal(err)
		}
	}
	for _, o := range s.Jobs {
		if err := c.Tracker().Add(o); err != nil {
			b.Fatal(err)
		}
	}
	c.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w := watch.NewFake()
		s.watches = append(s.watches, w)
		return true, w, nil
	})
	return c
}

func (s *served) custom(b *testing.B) dynamic.Interface {
	b.Helper()
	policies := schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{nodeprobe.Resource: "NodeGeometryList", policies: "ClusterPolicyList", v1alpha1.Remediations: "RemediationList"})
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "unpend.dev/v1alpha1", "kind": "NodeGeometryList"}}
	for _, geo := range s.Geos {
		u, err := sim.Unstructured(geo)
		if err != nil {
			b.Fatal(err)
		}
		list.Items = append(list.Items, *u)
	}
	d.PrependReactor("list", "nodegeometries", func(clienttesting.Action) (bool, runtime.Object, error) { return true, list.DeepCopy(), nil })
	d.PrependReactor("list", "clusterpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(policies.GroupResource(), "")
	})
	return d
}

// change gives a waiting pod another message, as the scheduler does, and has it ask for a
// label that no node has, or for none: what is no news is not published.
func (s *served) change(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p = p.DeepCopy()
	p.ResourceVersion = strconv.Itoa(1000 + s.version)
	p.Status.Conditions[0].Message = fmt.Sprintf("0/%d nodes are available: attempt %d.", len(s.Nodes), s.version)
	if p.Spec.NodeSelector = nil; (s.version-1)/waitingPods%2 == 0 {
		p.Spec.NodeSelector = map[string]string{"no": "such"}
	}
	for _, w := range s.watches {
		w.Modify(p.DeepCopy())
	}
}

// waitingPods is how many pods wait, each of an incident of its own.
const waitingPods = 5

// BenchmarkConditionToDiagnosis is the time from a changed PodScheduled condition
// to its diagnosis on the bus, at 1,000 nodes and 10,000 pods: watcher, embedded
// NATS on a disk and diagnosis as `unpend run` has them, its debounce included.
// Every change must bring a diagnosis.
func BenchmarkConditionToDiagnosis(b *testing.B) {
	s := &served{Fleet: rcatest.MakeFleet(1000, 2, 10, waitingPods, time.Now())}
	events, err := bus.Open(b.Context(), bus.Options{Cluster: "here", StoreDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Close()
	service := &Service{client: s.client(b), custom: s.custom(b), out: io.Discard, logger: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(), bus: events}
	ctx, cancel := context.WithCancel(b.Context())
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	published := make(chan string, 1000)
	read := func(ctx context.Context) error {
		return events.Consume(ctx, bus.Diagnoses, "bench", func(_ context.Context, _ string, body []byte) error {
			var d diagnosis.Diagnosis
			if err := json.Unmarshal(body, &d); err != nil {
				return err
			}
			published <- d.Incident
			return nil
		})
	}
	for _, part := range []func(context.Context) error{service.watch, service.diagnose, read} {
		parts.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
	for range waitingPods {
		<-published
	}
	var took []time.Duration
	i := 0
	for b.Loop() {
		for range 4 {
			i++
			began := time.Now()
			s.change(s.Pods[len(s.Pods)-1-i%waitingPods])
			select {
			case <-published:
				took = append(took, time.Since(began))
			case <-time.After(time.Minute):
				b.Fatal("a change brought no diagnosis")
			}
		}
	}
	slices.Sort(took)
	at := func(p int) float64 { return float64(took[(len(took)-1)*p/100].Milliseconds()) }
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
	b.ReportMetric(float64(len(took)), "samples")
}
