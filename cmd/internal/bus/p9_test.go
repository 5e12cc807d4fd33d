package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
)

// arrival is a message that a handler got.
type arrival struct {
	key, version string
	at           time.Time
}

// bench is a bus and two readers: ours, of incidents, and a bare one, of the other
// topic on the same server.
type bench struct {
	*Bus
	ours, bare chan arrival
}

// open starts both readers; they end with the benchmark.
func openBench(b *testing.B) *bench {
	b.Helper()
	on, err := Open(b.Context(), Options{Cluster: "here", StoreDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	x := &bench{Bus: on, ours: make(chan arrival, 1<<16), bare: make(chan arrival, 1<<16)}
	// JetStream as a program uses it that needs none of a Bus's rules: prefetch, a
	// plain ack.
	c, err := on.streams[Diagnoses].CreateOrUpdateConsumer(b.Context(), jetstream.ConsumerConfig{Durable: "bare", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		b.Fatal(err)
	}
	reading, err := c.Consume(func(m jetstream.Msg) {
		x.bare <- arrival{key: m.Subject(), at: time.Now()}
		m.Ack()
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() {
		done <- on.Consume(ctx, Incidents, "ours", func(_ context.Context, key string, body []byte) error {
			var i incident.Incident
			if err := json.Unmarshal(body, &i); err != nil {
				return err
			}
			x.ours <- arrival{key, i.Newest, time.Now()}
			return nil
		})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		reading.Stop()
		<-reading.Closed()
		on.Close()
	})
	return x
}

func (x *bench) publish(ctx context.Context, i incident.Incident) error {
	id, body, err := i.Message()
	if err != nil {
		return err
	}
	return x.PublishNewer(ctx, Incidents, i.ID, id, body, i.Older)
}

// pods is an API server's watch of pods: who writes waits until it is read.
type pods struct {
	list    *corev1.PodList
	changes *watch.FakeWatcher
}

func newPods(n int) *pods {
	p := &pods{list: &corev1.PodList{}, changes: watch.NewFake()}
	for i := range n {
		name := fmt.Sprintf("train-%04d", i)
		p.list.Items = append(p.list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(i + 1)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1000 nodes are available: 1000 Insufficient nvidia.com/mig-2g.10gb."}}}})
	}
	return p
}

func (p *pods) client() *fake.Clientset {
	c := fake.NewClientset()
	c.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, p.list.DeepCopy(), nil })
	c.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) { return true, p.changes, nil })
	return c
}

// wave changes every pod; version is the first of their new ones.
func (p *pods) wave(version int) {
	for i := range p.list.Items {
		changed := p.list.Items[i].DeepCopy()
		changed.ResourceVersion = strconv.Itoa(version + i)
		p.changes.Modify(changed)
	}
}

// BenchmarkWatcherToHandler reports how fast changed pods become incidents in a
// handler's hands, against bare JetStream carrying the same messages turn by
// turn: one publish after the other, prefetch, plain acks. Every change must
// arrive, and once.
func BenchmarkWatcherToHandler(b *testing.B) {
	const n = 200
	x, p := openBench(b), newPods(n)
	w, err := watcher.New(watcher.Options{Client: p.client(), Publish: x.publish, Debounce: time.Millisecond, Sweep: time.Hour, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for range n {
		<-x.ours
	}
	body := make([]byte, 400)
	var ours, bare time.Duration
	lost, round := 0, 0
	for b.Loop() {
		round++
		began := time.Now()
		p.wave(round * n)
		lost += x.lost(n, round*n)
		ours += time.Since(began)
		began = time.Now()
		for i := range n {
			if err := x.Publish(ctx, Diagnoses, strconv.Itoa(i), fmt.Sprintf("%d-%d", round, i), body); err != nil {
				b.Fatal(err)
			}
		}
		for range n {
			<-x.bare
		}
		bare += time.Since(began)
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(round*n)/ours.Seconds(), "msg/s")
	b.ReportMetric(float64(bare)/float64(ours), "of-bare")
	b.ReportMetric(float64(lost), "lost")
}

// lost takes messages until every incident has arrived with its newest version,
// and counts the ones that do not come.
func (x *bench) lost(n, version int) int {
	seen := map[string]bool{}
	patience := time.After(20 * time.Second)
	for len(seen) < n {
		select {
		case a := <-x.ours:
			if v, err := strconv.Atoi(a.version); err == nil && v >= version {
				seen[a.key] = true
			}
		case <-patience:
			return n - len(seen)
		}
	}
	return 0
}

// BenchmarkLatencyAt1000 reports the time to the handler at 1,000 messages a
// second, beside bare JetStream's at the same load, turn by turn. It counts from
// when a message was due: the queue of a late one is counted too.
func BenchmarkLatencyAt1000(b *testing.B) {
	x := openBench(b)
	older := func([]byte) bool { return false }
	var ours, bare []time.Duration
	turn := 0
	for b.Loop() {
		turn++
		body := fmt.Appendf(nil, `{"newest":"%d","pads":"%s"}`, turn, strings.Repeat("x", 400))
		ours = append(ours, paced(b, x.ours, func(i int) error {
			return x.PublishNewer(b.Context(), Incidents, strconv.Itoa(i), fmt.Sprintf("%d-%d", turn, i), body, older)
		})...)
		bare = append(bare, paced(b, x.bare, func(i int) error {
			return x.Publish(b.Context(), Diagnoses, strconv.Itoa(i), fmt.Sprintf("%d-%d", turn, i), body)
		})...)
	}
	b.ReportMetric(float64(percentile(ours, 50).Microseconds()), "p50-µs")
	b.ReportMetric(float64(percentile(ours, 99).Microseconds()), "p99-µs")
	b.ReportMetric(float64(percentile(ours, 99))/float64(percentile(bare, 99)), "p99-of-bare")
}

// paced publishes 200 messages, one each millisecond, and waits for all.
func paced(b *testing.B, arrived chan arrival, publish func(i int) error) []time.Duration {
	b.Helper()
	const n = 200
	began := time.Now()
	due := func(i int) time.Time { return began.Add(time.Duration(i) * time.Millisecond) }
	for i := range n {
		<-time.After(time.Until(due(i)))
		if err := publish(i); err != nil {
			b.Fatal(err)
		}
	}
	took := make([]time.Duration, n)
	for range n {
		var a arrival
		select {
		case a = <-arrived:
		case <-time.After(20 * time.Second):
			b.Fatal("a message did not arrive")
		}
		i, err := strconv.Atoi(a.key[strings.LastIndex(a.key, ".")+1:])
		if err != nil {
			b.Fatal(err)
		}
		took[i] = a.at.Sub(due(i))
	}
	return took
}

func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[(len(all)-1)*p/100]
}
