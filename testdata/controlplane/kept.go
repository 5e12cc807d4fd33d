package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Kept is an object where the API server keeps it: in etcd. There a test may write what no
// request can, such as since when an object is there.
type Kept struct {
	Key    string
	Object *unstructured.Unstructured
	// Made is etcd's revision at which it came to be.
	Made int64
}

// registry is where the API server keeps everything, and registryEnd what follows it.
const registry, registryEnd = "/registry/", "/registry0"

// maxOperations is how many objects etcd takes at once, which is 128 otherwise.
const maxOperations = "5000"

// asGiven are the flags that leave objects as they are given: all plugins of admission that are
// on by default would change or refuse some, or wait for controllers.
func (e Extras) asGiven() []string {
	if !e.AsGiven {
		return nil
	}
	return []string{"--storage-media-type=application/json", "--disable-admission-plugins=" + strings.Join([]string{
		"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "DefaultStorageClass", "PersistentVolumeClaimResize", "DefaultTolerationSeconds",
		"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ResourceQuota", "StorageObjectInUseProtection", "PodGroupProtection", "Priority",
		"TaintNodesByCondition", "RuntimeClass", "PodSecurity", "PodTopologyLabels", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy",
		"NodeDeclaredFeatureValidator", "PodResizeValidator",
	}, ",")}
}

// Revision is how often etcd was written to.
func (c *ControlPlane) Revision(tb testing.TB) int64 {
	tb.Helper()
	return c.ask(tb, "kv/range", map[string]any{"key": []byte(registry), "keys_only": true}).Header.Revision
}

// KeptSince are the objects that were written after a revision. All of them have to be kept as
// JSON.
func (c *ControlPlane) KeptSince(tb testing.TB, revision int64) []Kept {
	tb.Helper()
	return c.kept(tb, map[string]any{"key": []byte(registry), "range_end": []byte(registryEnd), "min_mod_revision": revision + 1})
}

// KeptAt is an object as it was at a revision.
func (c *ControlPlane) KeptAt(tb testing.TB, key string, revision int64) Kept {
	tb.Helper()
	all := c.kept(tb, map[string]any{"key": []byte(key), "revision": revision})
	if len(all) != 1 {
		tb.Fatalf("%d objects at %s", len(all), key)
	}
	return all[0]
}

func (c *ControlPlane) kept(tb testing.TB, question map[string]any) []Kept {
	tb.Helper()
	var out []Kept
	for _, kv := range c.ask(tb, "kv/range", question).KVs {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(kv.Value); err != nil {
			continue // ports and addresses that are given away are no objects
		}
		out = append(out, Kept{Key: string(kv.Key), Object: o, Made: kv.CreateRevision})
	}
	return out
}

// Keep writes some objects as they are, and takes others away, at once. The API server checks
// nothing; it serves them from the revision on.
func (c *ControlPlane) Keep(tb testing.TB, put, gone []Kept) (revision int64) {
	tb.Helper()
	operations := []any{}
	for _, k := range put {
		value, err := k.Object.MarshalJSON()
		if err != nil {
			tb.Fatal(err)
		}
		operations = append(operations, map[string]any{"request_put": map[string]any{"key": []byte(k.Key), "value": value}})
	}
	for _, k := range gone {
		operations = append(operations, map[string]any{"request_delete_range": map[string]any{"key": []byte(k.Key)}})
	}
	return c.ask(tb, "kv/txn", map[string]any{"success": operations}).Header.Revision
}

// AwaitRevision waits until what the API server serves of some resources is as new as a
// revision at which each of them was written.
func (c *ControlPlane) AwaitRevision(tb testing.TB, revision int64, resources ...schema.GroupVersionResource) {
	tb.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		tb.Fatal(err)
	}
	nobody := metav1.ListOptions{FieldSelector: "metadata.name=nobody", ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	for _, r := range resources {
		if _, err := client.Resource(r).List(context.WithoutCancel(tb.Context()), nobody); err != nil {
			tb.Fatalf("wait for %s: %v", r.GroupResource(), err)
		}
	}
}

// answer is etcd's, by its gateway: JSON, with bytes in base64 and numbers in strings.
type answer struct {
	Header struct {
		Revision int64 `json:"revision,string"`
	} `json:"header"`
	KVs []struct {
		Key            []byte `json:"key"`
		Value          []byte `json:"value"`
		CreateRevision int64  `json:"create_revision,string"`
	} `json:"kvs"`
}

func (c *ControlPlane) ask(tb testing.TB, path string, question any) answer {
	tb.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := http.Post(c.etcd+"/v3/"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	var got answer
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatalf("etcd: %s, %v", resp.Status, err)
	}
	return got
}
