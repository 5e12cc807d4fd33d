package service

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A watch that fails, for a right was taken away, is counted by its kind and the reason.
func TestFailingWatchIsCounted(t *testing.T) {
	client, nodes, refused := fake.NewClientset(), watch.NewFake(), atomic.Bool{}
	client.PrependWatchReactor("nodes", func(k8stesting.Action) (bool, watch.Interface, error) {
		if refused.Load() {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no role"))
		}
		return true, nodes, nil
	})
	custom := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		nodeprobe.Resource: "NodeGeometryList", {Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}: "ClusterPolicyList"})
	f, err := cluster.Follow(t.Context(), client, custom, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &Service{registry: prometheus.NewRegistry()}
	if err := s.countFailures(f); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(s.registry, "unpend_watch_failures_total"); n > 0 || err != nil {
		t.Errorf("%d kinds fail, %v", n, err)
	}
	refused.Store(true)
	nodes.Stop()
	controlplane.Eventually(t, time.Minute, "the failure is counted", func() (bool, string) {
		all, err := s.registry.Gather()
		if err != nil || len(all) == 0 {
			return false, "none"
		}
		said := all[0].String()
		return len(all[0].GetMetric()) == 1 && strings.Contains(said, `value:"Node"`) && strings.Contains(said, `value:"Forbidden"`), said
	})
}
