package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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
// when a watch is 100 events behind; who changes a pod or a node here waits until
// every watch has read it.
type served struct {
	*rcatest.Fleet
	mu      sync.Mutex
	watches map[string][]*watch.FakeWatcher // by resource
	version int
}

func (s *served) client(tb testing.TB) kubernetes.Interface {
	tb.Helper()
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
			tb.Fatal(err)
		}
	}
	for _, o := range s.Jobs {
		if err := c.Tracker().Add(o); err != nil {
			tb.Fatal(err)
		}
	}
	s.watches = map[string][]*watch.FakeWatcher{}
	for _, resource := range []string{"pods", "nodes"} {
		c.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			w := watch.NewFake()
			s.watches[resource] = append(s.watches[resource], w)
			return true, w, nil
		})
	}
	return c
}

func (s *served) custom(tb testing.TB) dynamic.Interface {
	tb.Helper()
	policies := schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{nodeprobe.Resource: "NodeGeometryList", policies: "ClusterPolicyList", v1alpha1.Remediations: "RemediationList"})
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "unpend.dev/v1alpha1", "kind": "NodeGeometryList"}}
	for _, geo := range s.Geos {
		u, err := sim.Unstructured(geo)
		if err != nil {
			tb.Fatal(err)
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
	s.tell("pods", p)
}

// taint gives a node a taint that nobody tolerates.
func (s *served) taint(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	n = n.DeepCopy()
	n.ResourceVersion = strconv.Itoa(1000 + s.version)
	n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
	s.tell("nodes", n)
}

func (s *served) tell(resource string, o runtime.Object) {
	for _, w := range s.watches[resource] {
		w.Modify(o.DeepCopyObject())
	}
}

// serve has a service watch and diagnose until the test ends, on an embedded NATS on a disk, as
// `unpend run` has it. What it hands over is the incident of each diagnosis as it comes there.
func (s *served) serve(tb testing.TB) (*Service, <-chan string) {
	tb.Helper()
	events, err := bus.Open(tb.Context(), bus.Options{Cluster: "here", StoreDir: tb.TempDir()})
	must(tb, err)
	service := &Service{client: s.client(tb), custom: s.custom(tb), out: io.Discard, logger: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(), bus: events, now: time.Now}
	published := make(chan string, 1000)
	read := func(ctx context.Context) error {
		return events.Consume(ctx, bus.Diagnoses, "test", func(_ context.Context, _ string, body []byte) error {
			var d diagnosis.Diagnosis
			if err := json.Unmarshal(body, &d); err != nil {
				return err
			}
			published <- d.Incident
			return nil
		})
	}
	ctx, cancel := context.WithCancel(tb.Context())
	var parts sync.WaitGroup
	tb.Cleanup(func() {
		cancel()
		parts.Wait()
		events.Close()
	})
	for _, part := range []func(context.Context) error{service.watch, service.diagnose, read} {
		parts.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				tb.Error(err)
			}
		})
	}
	return service, published
}
