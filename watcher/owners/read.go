package owners

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/watcher/incident"
)

// Reader reads the named kinds of one cluster. The zero value reads none.
type Reader struct {
	Names  []schema.GroupResource
	Client metadata.Interface
}

// New makes a Reader of the API server that the config is for.
func New(config *rest.Config, names []schema.GroupResource) (Reader, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return Reader{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return Reader{Names: names, Client: client}, nil
}

// Informers makes informers of served kinds, in one namespace or (empty) in all.
func (r Reader) Informers(namespace string) metadatainformer.SharedInformerFactory {
	return metadatainformer.NewFilteredSharedInformerFactory(r.Client, 0, namespace, nil)
}

// Trim is what is kept of an owner: who it is, and what owns it.
func Trim(m metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
		OwnerReferences: m.GetOwnerReferences(), CreationTimestamp: m.GetCreationTimestamp(), DeletionTimestamp: m.GetDeletionTimestamp()}
}

// ErrUnread is that a kind is none of those that are named, or not served.
var ErrUnread = errors.New("owners of this kind are not read")

// Single gets owners one by one. It asks once which kinds are served, and not before the first.
// It is not safe for concurrent use.
type Single struct {
	reader Reader
	client discovery.DiscoveryInterface
	found  *Found
}

// also is the reader of further kinds; where it has no client it reads none.
func (r Reader) also(names []schema.GroupResource) Reader {
	for _, name := range names {
		if r.Client != nil && !slices.Contains(r.Names, name) {
			r.Names = append(slices.Clone(r.Names), name)
		}
	}
	return r
}

// Single gets owners one by one; client says what is served.
func (r Reader) Single(client discovery.DiscoveryInterface) *Single {
	return &Single{reader: r, client: client}
}

// always are kinds that diagnoses read the whole of, and so who reads owners one by one has to
// read too, named or not.
var always = func() (out []schema.GroupResource) {
	for _, k := range incident.Operated {
		plural, _ := apimeta.UnsafeGuessKindToResource(k.WithVersion(""))
		out = append(out, plural.GroupResource())
	}
	return out
}()

// Get reads the metadata of an owner, whose kind is named as in an incident.Ref. ErrUnread: the
// kind is not read; any other error is the API server's.
func (s *Single) Get(ctx context.Context, kind, namespace, name string) (metav1.Object, error) {
	found := s.found
	if found == nil {
		now := s.reader.also(always).Served(ctx, s.client)
		if found = &now; len(now.Untold) == 0 {
			s.found = found
		}
	}
	i := slices.IndexFunc(found.Kinds, func(k Kind) bool { return k.Name() == kind })
	if i < 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnread, kind)
	}
	k := found.Kinds[i]
	if !k.Namespaced {
		namespace = ""
	}
	o, err := s.reader.Client.Resource(k.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o, nil
}
