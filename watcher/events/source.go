package events

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	// A page is a few megabytes: it begins small and grows with what the last one
	// weighed.
	firstPage = 50
	maxPage   = 500
	pageBytes = 4 << 20
)

// chatter is what the watch leaves out: what every pod brings, and what the pod's own
// condition says better. Of a reason by which a few are read, all come: a kubelet says no more
// than one in five minutes of an object that it has often spoken of (client-go's spam filter). A field selector has no "or", so it names what is not wanted.
const chatter = "source!=" + corev1.DefaultSchedulerName + ",reason!=Scheduled,reason!=Pulling,reason!=Pulled,reason!=Created,reason!=Started,reason!=Killing,reason!=BackOff,reason!=SuccessfulCreate,reason!=SuccessfulDelete"

// Informer follows the Events that are read. Nothing else is in its store.
type Informer struct {
	cache.SharedIndexInformer
	running sync.WaitGroup
}

// NewInformer makes one for a namespace or (empty) for all.
func NewInformer(client kubernetes.Interface, namespace string) *Informer {
	s := &source{client: client, namespace: namespace}
	s.held.clear()
	from := lists{&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}}
	return &Informer{SharedIndexInformer: cache.NewSharedIndexInformer(from, &corev1.Event{}, 0, cache.Indexers{})}
}

// Start runs it until stop is closed, and Shutdown waits for its end: a factory of one.
func (i *Informer) Start(stop <-chan struct{}) { i.running.Go(func() { i.Run(stop) }) }

// Shutdown waits until it has ended.
func (i *Informer) Shutdown() { i.running.Wait() }

// lists is a ListWatch that is listed page by page. Events have no watch cache, and an
// API server that streams them to a watch instead reads 10,000 at a time from etcd,
// whatever they weigh.
type lists struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what a reflector asks.
func (lists) IsWatchListSemanticsUnSupported() bool { return true }

// source reads Events, and remembers which of them it handed on.
type source struct {
	client    kubernetes.Interface
	namespace string
	held      held
}

// list reads everything, and keeps of each page what is wanted before the next is asked
// for. No selector: with one, an API server that finds too few on a page doubles what it
// reads from etcd, up to 10,000 at a time.
func (s *source) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.held.clear()
	opts := metav1.ListOptions{Limit: firstPage}
	for {
		page, err := s.client.CoreV1().Events(s.namespace).List(ctx, opts)
		if errors.Is(err, errTooLarge) && opts.Limit > 1 {
			opts.Limit = max(1, opts.Limit/8)
			continue
		}
		if err != nil {
			return nil, err
		}
		weight := 0
		for i := range page.Items {
			e := &page.Items[i]
			weight += e.Size()
			if wanted(e) {
				s.held.put(Trim(e))
			}
		}
		if page.Continue == "" {
			return &corev1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: page.ResourceVersion}, Items: s.held.all()}, nil
		}
		opts.Continue, opts.Limit = page.Continue, nextLimit(opts.Limit, len(page.Items), weight)
	}
}

// nextLimit is how many to ask for after a page of some that weighed so much.
func nextLimit(limit int64, items, weight int) int64 {
	if items == 0 || weight == 0 {
		return limit
	}
	return max(1, min(2*limit, maxPage, int64(pageBytes*items/weight)))
}

// watch goes on from there. Changes to what is not wanted move the version on alone.
func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.FieldSelector = chatter
	from, err := s.client.CoreV1().Events(s.namespace).Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	to := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(to)
	go func() { // ends with either watch; the reflector stops its own
		defer close(to)
		defer from.Stop()
		for {
			select {
			case <-proxy.StopChan():
				return
			case said, open := <-from.ResultChan():
				if !open {
					return
				}
				for _, e := range s.judge(said) {
					select {
					case <-proxy.StopChan():
						return
					case to <- e:
					}
				}
			}
		}
	}()
	return proxy, nil
}

// judge is what becomes of one change.
func (s *source) judge(said watch.Event) []watch.Event {
	e, ok := said.Object.(*corev1.Event)
	if !ok || said.Type == watch.Bookmark {
		return []watch.Event{said}
	}
	switch {
	case said.Type == watch.Deleted || !wanted(e):
		if !s.held.drop(e.Namespace, e.Name) {
			return []watch.Event{{Type: watch.Bookmark, Object: &corev1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: e.ResourceVersion}}}}
		}
		return []watch.Event{{Type: watch.Deleted, Object: Trim(e)}}
	}
	kept := Trim(e)
	out := []watch.Event{{Type: said.Type, Object: kept}}
	for _, old := range s.held.put(kept) {
		last := *old
		last.ResourceVersion = e.ResourceVersion // the newest that was told of
		out = append(out, watch.Event{Type: watch.Deleted, Object: &last})
	}
	return out
}
