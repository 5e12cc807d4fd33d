package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/testdata/controlplane"
)

// R2 in its short form, with UNPEND_ALL=1 longer, and with UNPEND_SOAK=1 as it is promised.
const (
	refusedOwners = 20
	refusedPods   = 100
	wholeRefused  = 400
	soakRefused   = 10_000
)

// promiseR02: the real scheduler refuses thousands of pods, and in the middle of that every
// watch ends with 410 Gone, so that all is listed again. Each pod is in one incident.
func promiseR02(t *testing.T) {
	needsControlPlane(t)
	pods := controlplane.Of(refusedPods, wholeRefused)
	if soak() {
		pods = soakRefused
	}
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	p := proxyTo(t, c.Config(), "watcher")
	var lists atomic.Int64
	counting := func(a *asked) http.HandlerFunc { //nolint:unparam // a proxy is told what to answer, here nothing
		if strings.HasSuffix(a.URL.Path, "/pods") && a.Method == http.MethodGet && !a.URL.Query().Has("watch") && a.URL.Query().Get("continue") == "" {
			lists.Add(1)
		}
		return nil
	}
	p.set(counting)
	o := observeBy(t, c, p.kubeconfig, fmt.Sprintf("{storeDir: %s}", t.TempDir()))
	o.says(t, "ok", time.Minute)
	first := lists.Load()
	began := time.Now()
	for i := range refusedOwners {
		deploy(fmt.Sprintf("serve-%02d", i), "2g.10gb", int32(pods/refusedOwners))(t, c)
	}
	within := 2*time.Minute + time.Duration(pods)*50*time.Millisecond
	refused := func(n int) {
		controlplane.Eventually(t, within, fmt.Sprintf("%d pods are refused", n), func() (bool, string) {
			is := len(refusedOf(t, c))
			return is >= n, fmt.Sprint(is)
		})
	}
	refused(pods / 3)
	p.setCut(func(a *asked) http.HandlerFunc { counting(a); return gone(a) })
	controlplane.Eventually(t, time.Minute, "pods are listed again", func() (bool, string) { return lists.Load() > first, "" })
	p.setCut(counting)
	refused(pods)
	asked := time.Now()
	want := refusedOf(t, c)
	held := 0
	controlplane.Eventually(t, time.Minute, "every pod is in one incident", func() (bool, string) {
		o.lives(t)
		sum, right, known := 0, 0, waitingOf(o)
		for _, n := range known {
			sum += n
			if n == pods/refusedOwners {
				right++
			}
		}
		held = min(sum, len(want))
		return sum == len(want) && right == refusedOwners && len(known) == refusedOwners, fmt.Sprintf("%d of %d pods in %d incidents, %d of them right", sum, len(want), len(known), right)
	})
	again := lists.Load() - first
	report(t, held, pods, fmt.Sprintf("pods refused by the scheduler in %.0f s, every watch closed meanwhile and pods listed again %d times: %d incidents, each pod in one, 0 lost, %.1f s after the last",
		asked.Sub(began).Seconds(), again, refusedOwners, time.Since(asked).Seconds()))
}

// refusedOf are the pods that the scheduler has said no to.
func refusedOf(t *testing.T, c *controlplane.ControlPlane) map[string]bool {
	t.Helper()
	list, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	must(t, err)
	out := map[string]bool{}
	for _, p := range list.Items {
		for _, k := range p.Status.Conditions {
			if k.Type == corev1.PodScheduled && k.Reason == corev1.PodReasonUnschedulable {
				out[p.Name] = true
			}
		}
	}
	return out
}

// waitingOf is how many pods each incident had in its last diagnosis.
func waitingOf(o *observer) map[string]int {
	out := map[string]int{}
	for _, d := range o.diagnoses() {
		out[d.Incident] = d.Pods.Waiting
	}
	return out
}
