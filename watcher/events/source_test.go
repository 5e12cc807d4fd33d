package events

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// pages serves Events as an API server does, so many at a time, and notes the limits
// that it was asked with and the selector of the watch.
type pages struct {
	all     []corev1.Event
	tooMany int64 // a limit from which on the answer weighs too much; 0: none does
	limits  []int64
	watched string
}

func (p *pages) client() *fake.Clientset {
	c := fake.NewClientset()
	c.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		opts := a.(clienttesting.ListActionImpl).ListOptions
		p.limits = append(p.limits, opts.Limit)
		if p.tooMany > 0 && opts.Limit >= p.tooMany {
			return true, nil, fmt.Errorf("read: %w", errTooLarge)
		}
		from := 0
		if opts.Continue != "" {
			from, _ = strconv.Atoi(opts.Continue) //nolint:errcheck // it was written here
		}
		to := min(from+int(opts.Limit), len(p.all))
		list := &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "42"}, Items: slices.Clone(p.all[from:to])}
		if to < len(p.all) {
			list.Continue = strconv.Itoa(to)
		}
		return true, list, nil
	})
	c.PrependWatchReactor("events", func(a clienttesting.Action) (bool, watch.Interface, error) {
		p.watched = a.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String()
		return false, nil, nil
	})
	return c
}

func (p *pages) list(t *testing.T) *corev1.EventList {
	t.Helper()
	s := &source{client: p.client()}
	got, err := s.list(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	return got.(*corev1.EventList)
}

func TestPagesGrowWithWhatTheyWeigh(t *testing.T) {
	small := &pages{}
	for i := range 1_500 {
		small.all = append(small.all, *event("ml", fmt.Sprint(i), noon))
	}
	got := small.list(t)
	if diff := cmp.Diff([]int64{50, 100, 200, 400, 500, 500}, small.limits); diff != "" || got.ResourceVersion != "42" || len(got.Items) != 1_500 {
		t.Error(len(got.Items), diff)
	}
	// One that is heavy holds the next pages down; no page is nothing.
	large := &pages{}
	for i := range 300 {
		large.all = append(large.all, *heavy(event("ml", fmt.Sprint(i), noon)))
	}
	got = large.list(t)
	slices.Sort(large.limits[1:])
	if first, last := large.limits[1], large.limits[len(large.limits)-1]; first != last || first < 10 || first > 16 {
		t.Errorf("asked for %v at a time, want %d bytes", large.limits, pageBytes)
	}
	for _, e := range got.Items {
		if e.Size() > 2<<10 {
			t.Fatalf("%d bytes are kept", e.Size())
		}
	}
}

// A page that cannot be read is asked for again, smaller; one Event has to be.
func TestAPageTooLargeIsAskedForInParts(t *testing.T) {
	p := &pages{all: []corev1.Event{*event("ml", "a", noon), *event("ml", "b", noon)}, tooMany: 5}
	got := p.list(t)
	if diff := cmp.Diff([]int64{50, 6, 1, 2}, p.limits); diff != "" || len(got.Items) != 2 {
		t.Error(len(got.Items), diff)
	}
	p = &pages{all: p.all, tooMany: 1}
	s := &source{client: p.client()}
	if _, err := s.list(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "the page is too large") {
		t.Error(err)
	}
}

func TestOneNamespaceDoesNotCrowdOutAnother(t *testing.T) {
	p := &pages{all: []corev1.Event{*event("quiet", "e", noon.Add(-time.Hour))}}
	for i := range 3 * maxOfOne {
		p.all = append(p.all, *event("loud", fmt.Sprintf("%05d", (i*7919)%(3*maxOfOne)), noon.Add(time.Duration((i*7919)%(3*maxOfOne))*time.Second)))
	}
	s := &source{client: p.client()}
	got, err := s.list(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	items := got.(*corev1.EventList).Items
	of := map[string]int{}
	newest := 0
	for _, e := range items {
		of[e.Namespace]++
		if e.Name >= fmt.Sprintf("%05d", 2*maxOfOne) && e.Namespace == "loud" {
			newest++
		}
	}
	if of["quiet"] != 1 || of["loud"] > maxOfOne+maxOfOne/slack || newest != maxOfOne {
		t.Errorf("%v are kept, %d of the newest %d", of, newest, maxOfOne)
	}
	// The same by a watch: what goes is told of, and is the oldest.
	goes := 0
	for i := range maxOfOne {
		for _, e := range s.judge(watch.Event{Type: watch.Added, Object: event("loud", fmt.Sprintf("new-%d", i), noon.Add(24*time.Hour))})[1:] {
			if o := e.Object.(*corev1.Event); e.Type != watch.Deleted || strings.HasPrefix(o.Name, "new") || o.Namespace != "loud" {
				t.Fatalf("%s %s", e.Type, o.Name)
			}
			goes++
		}
	}
	if goes < maxOfOne-maxOfOne/slack || s.held.count > maxOfOne+maxOfOne/slack+1 {
		t.Errorf("%d went, %d are held", goes, s.held.count)
	}
}

func TestAllNamespacesTogetherAreBounded(t *testing.T) {
	s := &source{}
	s.held.clear()
	for i := range 2 * maxOfAll {
		s.held.put(event(fmt.Sprintf("ns-%d", i%40), fmt.Sprint(i), noon.Add(time.Duration(i)*time.Second)))
	}
	if got := len(s.held.all()); got != s.held.count || got < maxOfAll/2 || got > maxOfAll+maxOfAll/slack {
		t.Errorf("%d are kept, %d counted", got, s.held.count)
	}
}

func TestChangesAreJudged(t *testing.T) {
	s := &source{}
	s.held.clear()
	unwanted := event("ml", "e", noon)
	unwanted.Reason, unwanted.ResourceVersion = "Scheduled", "9"
	mark := watch.Event{Type: watch.Bookmark, Object: &corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}}
	gone := watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 410}}
	for _, c := range []struct {
		name     string
		in, want watch.Event
	}{
		{"one that nobody reads", watch.Event{Type: watch.Added, Object: unwanted}, mark},
		{"its end", watch.Event{Type: watch.Deleted, Object: unwanted}, mark},
		{"one that is read", watch.Event{Type: watch.Added, Object: heavy(event("ml", "e", noon))}, watch.Event{Type: watch.Added, Object: event("ml", "e", noon)}},
		{"repeated", watch.Event{Type: watch.Modified, Object: heavy(event("ml", "e", noon))}, watch.Event{Type: watch.Modified, Object: event("ml", "e", noon)}},
		{"which nobody reads any more", watch.Event{Type: watch.Modified, Object: unwanted}, watch.Event{Type: watch.Deleted, Object: unwanted}},
		{"a bookmark", mark, mark},
		{"an error", gone, gone},
	} {
		if diff := cmp.Diff([]watch.Event{c.in, c.want}[1:], s.judge(c.in)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestInformerHoldsWhatIsRead(t *testing.T) {
	noise := event("ml", "noise", noon)
	noise.Source.Component, noise.ReportingController = "evil", "evil"
	p := &pages{all: []corev1.Event{*heavy(event("ml", "a", noon)), *noise}}
	client := p.client()
	in := NewInformer(client, "")
	ctx, stop := context.WithCancel(t.Context())
	in.Start(ctx.Done())
	eventually(t, "it is filled", in.HasSynced)
	for _, e := range []*corev1.Event{heavy(event("ml", "b", noon)), noise} {
		if _, err := client.CoreV1().Events("ml").Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both are there", func() bool { return len(in.GetStore().List()) == 2 })
	for _, o := range in.GetStore().List() {
		if e := o.(*corev1.Event); e.Size() > 2<<10 || e.Reason != "FailedCreate" || e.ReportingController == "evil" {
			t.Errorf("%s of %d bytes", e.Name, e.Size())
		}
	}
	if p.watched != fields.ParseSelectorOrDie(chatter).String() {
		t.Errorf("watched with %q", p.watched)
	}
	stop()
	in.Shutdown()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatal(what, ": not within 10 s")
		case <-tick.C:
		}
	}
}
