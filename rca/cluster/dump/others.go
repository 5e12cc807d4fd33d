package dump

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/owners"
)

// otherKind notes that a dump holds a kind that no diagnosis reads the whole of: what of such a
// kind it does not hold was not there.
func (r *fileReader) otherKind(apiVersion, name string) {
	k := owners.Kind{API: schema.FromAPIVersionAndKind(apiVersion, name)}
	k.Resource, _ = meta.UnsafeGuessKindToResource(k.API)
	if !slices.ContainsFunc(r.state.OwnerKinds, func(o owners.Kind) bool { return o.Name() == k.Name() }) {
		r.state.OwnerKinds = append(r.state.OwnerKinds, k)
	}
}

// other takes in an object that may own what makes pods.
func (r *fileReader) other(o cluster.Object) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		r.otherKind(m.APIVersion, m.Kind)
		r.state.Owners = append(r.state.Owners, m)
	}
}

// readOther reads who an object of a kind is that nobody reads the whole of, and what owns it;
// nil for what is no object of an API.
func readOther(apiVersion, name string, data []byte) cluster.Object {
	var o struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	if isRemediation(apiVersion, name) || json.Unmarshal(data, &o) != nil || o.Name == "" {
		return nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: name}, ObjectMeta: owners.Trim(&o.ObjectMeta)}
}
