package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/shelf"
)

// report is a NodeGeometry as informers take objects. Where what the API server has is none,
// illegible says why, and nothing but its metadata is known.
type report struct {
	nodeprobe.NodeGeometry
	illegible error
}

// DeepCopyObject makes it a runtime.Object. The copy shares what it points to: nobody changes
// what an informer holds.
func (r *report) DeepCopyObject() runtime.Object {
	other := *r
	return &other
}

// reports is an informer of NodeGeometries, and who runs it. It decodes each straight into
// its type, and the profiles that GPUs of a model have alike once: the dynamic client takes
// several times as long, and most of that for what is thrown away.
type reports struct {
	cache.SharedIndexInformer
	client  rest.Interface
	kind    *cluster.Kind
	shelf   *shelf.Shelf
	running sync.WaitGroup
}

func newReports(client rest.Interface, k *cluster.Kind, s *shelf.Shelf) *reports {
	r := &reports{client: client, kind: k, shelf: s}
	from := &cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}
	r.SharedIndexInformer = cache.NewSharedIndexInformer(from, &report{}, 0, cache.Indexers{})
	return r
}

// Start runs it until stop is closed, and Shutdown waits for its end: a factory of one.
func (r *reports) Start(stop <-chan struct{}) { r.running.Go(func() { r.Run(stop) }) }

// Shutdown waits until it has ended.
func (r *reports) Shutdown() { r.running.Wait() }

func (r *reports) get(opts metav1.ListOptions) *rest.Request {
	at := r.kind.Resource
	return r.client.Get().AbsPath("/apis", at.Group, at.Version, at.Resource).SpecificallyVersionedParams(&opts, metav1.ParameterCodec, metav1.Unversioned).SetHeader("Accept", runtime.ContentTypeJSON)
}

func (r *reports) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	text, err := r.get(opts).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var page struct {
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, fmt.Errorf("read a list of %s: %w", r.kind, err)
	}
	out := &internalversion.List{ListMeta: page.ListMeta}
	for _, item := range page.Items {
		out.Items = append(out.Items, r.read(item))
	}
	return out, nil
}

func (r *reports) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	stream, err := r.get(opts).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(&reportEvents{r, stream, json.NewDecoder(stream)},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "watch", "ClientWatchDecoding")), nil
}

// read decodes an object, whatever it is.
func (r *reports) read(text []byte) *report {
	obj, err := r.shelf.Read(r.kind, r.kind.Resource.GroupVersion().String(), text)
	if geo, ok := obj.(*nodeprobe.NodeGeometry); ok && err == nil {
		return &report{NodeGeometry: *geo}
	}
	return named(text, err)
}

// named is an object of which nothing but the metadata is read.
func named(text []byte, illegible error) *report {
	r := &report{illegible: illegible}
	var is struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(text, &is) == nil {
		r.ObjectMeta = is.ObjectMeta
	}
	return r
}

// reportEvents are what a watch tells.
type reportEvents struct {
	*reports
	stream io.ReadCloser
	text   *json.Decoder
}

// Close ends the watch, and a Decode that waits.
func (e *reportEvents) Close() { e.stream.Close() } //nolint:errcheck // whatever it says, nobody reads on

// Decode waits for what is told next.
func (e *reportEvents) Decode() (watch.EventType, runtime.Object, error) {
	var said struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := e.text.Decode(&said); err != nil {
		return "", nil, err // as it is: by that a StreamWatcher knows an end
	}
	switch said.Type {
	case watch.Error:
	case watch.Bookmark: // its annotation says whether all have been told
		return said.Type, named(said.Object, nil), nil
	default:
		return said.Type, e.read(said.Object), nil
	}
	status := &metav1.Status{}
	if err := json.Unmarshal(said.Object, status); err != nil {
		return "", nil, fmt.Errorf("read why a watch of %s ends: %w", e.kind, err)
	}
	return said.Type, status, nil
}
