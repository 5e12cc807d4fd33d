package service

import (
	"errors"
	"log/slog"
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
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/testdata/controlplane"
)

// logged takes the lines of a log.
type logged chan string

// Write implements io.Writer.
func (s logged) Write(line []byte) (int, error) {
	s <- string(line)
	return len(line), nil
}

// A watch that fails, for a right was taken away, is counted by its kind and the reason, and
// told of once.
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
	f, err := live.Follow(t.Context(), client, custom, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := make(logged, 100)
	s := &Service{registry: prometheus.NewRegistry(), now: time.Now, logger: slog.New(slog.NewTextHandler(log, nil))}
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
		counted := all[0].GetMetric()
		return len(counted) == 1 && counted[0].GetCounter().GetValue() > 1 && strings.Contains(said, `value:"Node"`) && strings.Contains(said, `value:"Forbidden"`), said
	})
	if line := <-log; len(log) > 0 || !strings.Contains(line, "cannot be followed") || !strings.Contains(line, "kind=Node reason=Forbidden") {
		t.Errorf("the log, want one line: %s and %d more", line, len(log))
	}
}
