package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// listening is a NATS that can be away, and who reads the ends of plans from it.
type listening struct {
	options server.Options
	cluster string // whose ends

	mu    sync.Mutex
	heard []notice.Notice
}

// newListening is one that is away, and where it will be.
func newListening(t *testing.T, c *controlplane.ControlPlane) *listening {
	t.Helper()
	host, port, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	return &listening{cluster: clusterUID(t, c), options: server.Options{Host: host, Port: number, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}}
}

// clusterUID is what the service knows a cluster by.
func clusterUID(t *testing.T, c *controlplane.ControlPlane) string {
	t.Helper()
	system, err := c.Client().CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	must(t, err)
	return string(system.UID)
}

func (l *listening) url() string { return fmt.Sprintf("nats://%s:%d", l.options.Host, l.options.Port) }

// open has NATS there, on what its folder holds, and reads on.
func (l *listening) open(t *testing.T) {
	t.Helper()
	nats, err := server.NewServer(&l.options)
	must(t, err)
	nats.Start()
	if !nats.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS does not start")
	}
	b, err := bus.Open(t.Context(), bus.Options{Cluster: l.cluster, URL: l.url()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		err := b.Consume(ctx, bus.Outcomes, "listening", func(_ context.Context, key string, body []byte) error {
			var n notice.Notice
			err := json.Unmarshal(body, &n)
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.heard = append(l.heard, n); key != n.Incident+"."+n.Plan {
				err = errors.New("its key is " + key)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
		b.Close()
		nats.Shutdown()
		nats.WaitForShutdown()
	})
}

func (l *listening) all() []notice.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

// leads starts an executor that tells of ends there, and says where its figures are.
func (c *cell) leads(t *testing.T, name string, l *listening) (x *process, metrics string) {
	t.Helper()
	metrics = controlplane.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "unpend.yaml")
	text := fmt.Sprintf("remediate: {namespace: %s, poll: 100ms, deadlines: {evict: 1m, leave: 1m, manager: 6s, wedge: 3s, run: 1m}}\nbus: {url: %q}\nweb: {metrics: %q}\n", c.ns, l.url(), metrics)
	must(t, os.WriteFile(config, []byte(text), 0o600))
	return startExecutor(t, name, config, newFaultProxy(t, c.lane, c.ns, name+"-"+c.ns)), metrics
}

// tells waits until the plan says of its end that somebody was told, or not.
func (c *cell) tells(t *testing.T, status metav1.ConditionStatus, says string) {
	t.Helper()
	c.reaches(t, time.Minute, "says of its end that it was told: "+string(status), func(s v1alpha1.RemediationStatus) bool {
		told := meta.FindStatusCondition(s.Conditions, v1alpha1.Told)
		return told != nil && told.Status == status && strings.Contains(told.Message, says)
	})
}

// figures are an executor's metrics about plans that are not zero.
func figures(t *testing.T, address string) map[string]float64 {
	t.Helper()
	_, text := answers(address, "/metrics", "")
	out := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(unpend_remediation\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		must(t, err)
		if v != 0 && !strings.Contains(m[1], "_seconds_sum") && !strings.Contains(m[1], "_seconds_bucket") { // how long it took is as it may
			out[m[1]] = v
		}
	}
	return out
}

// A node that is parked while the bus is away: its plan says that nobody was told yet,
// and once the bus is back, one notice arrives, however often it is told and by however
// many leaders; the next end of the plan's kind is news. The figures say the same.
func TestEndsAreHandedOver(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	c := l.newCell(t)
	setGuards(t, l, c.ns, "coolDown: 0s\nnodesInFlight: 9\npoolUnavailablePercent: 100\n")
	l.AddNode(t, all1g(c.ns+"-spare")) // or the other's node is the last of its layout
	l.stack.SetFaults(c.node, sim.Faults{Wedge: true})
	from := newListening(t, l.ControlPlane)
	first, metrics := c.leads(t, "first", from)
	c.approve(t)
	c.reaches(t, time.Minute, "is parked", func(s v1alpha1.RemediationStatus) bool { return s.Phase == v1alpha1.Parked })
	c.tells(t, metav1.ConditionFalse, "not told yet, it is tried again: ")
	if told := time.Since(c.rem.Status.Ended.Time); told > time.Minute {
		t.Errorf("it says so after %s", told)
	}
	want := map[string]float64{"unpend_remediation_parked_nodes": 1, `unpend_remediations{phase="parked"}`: 1, `unpend_remediations_total{outcome="parked"}`: 1, `unpend_remediation_duration_seconds_count{outcome="parked"}`: 1}
	controlplane.Eventually(t, 20*time.Second, "the figures", func() (bool, string) {
		diff := cmp.Diff(want, figures(t, metrics))
		return diff == "", diff
	})
	if len(from.all()) > 0 {
		t.Errorf("heard already: %+v", from.all())
	}

	from.open(t)
	back := time.Now()
	c.tells(t, metav1.ConditionTrue, "published")
	t.Logf("told %.1f s after the bus was back", time.Since(back).Seconds())
	parked := notice.Notice{What: "parked", Incident: c.rem.Spec.Incident, Plan: c.rem.Name, Workload: incident.Ref{Kind: "Job", Namespace: c.ns, Name: "training"},
		Title: c.rem.Spec.Title, Node: c.node, Reason: c.rem.Status.Message, Since: c.rem.Status.Ended.UTC(), Began: c.rem.Status.Began.UTC(), Approvers: []string{approver}}
	from.hears(t, parked)

	// The answer to what was told got lost, and another leads.
	first.signal(syscall.SIGTERM)
	if code := first.exits(t, 10*time.Second); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	meta.RemoveStatusCondition(&c.rem.Status.Conditions, v1alpha1.Told)
	must(t, c.store().Save(t.Context(), c.rem))
	c.leads(t, "second", from)
	c.tells(t, metav1.ConditionTrue, "published")

	other := l.cellFor(t, c.ns, l.Namespace(t))
	other.approve(t)
	if status := other.ends(t, time.Minute); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%s: %s", status.Phase, status.Message)
	}
	other.tells(t, metav1.ConditionTrue, "published")
	from.hears(t, parked, notice.Notice{What: "succeeded", Incident: other.rem.Spec.Incident, Plan: other.rem.Name, Workload: incident.Ref{Kind: "Job", Namespace: other.ns, Name: "training"},
		Title: other.rem.Spec.Title, Node: other.node, Reason: other.rem.Status.Message, Since: other.rem.Status.Ended.UTC(), Began: other.rem.Status.Began.UTC(), Approvers: []string{approver}})
}

// hears wants these notices to have arrived, in this order, and no other.
func (l *listening) hears(t *testing.T, want ...notice.Notice) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "the notices have arrived", func() (bool, string) {
		diff := cmp.Diff(want, l.all())
		return diff == "", diff
	})
}
