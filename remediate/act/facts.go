package act

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// object reads a target of the plan.
func (r *run) object(ctx context.Context, t diagnosis.Target) (metav1.Object, error) {
	return plan.Object(ctx, r.Client, t)
}

// fresh reads a target again and holds it to the plan (the uid) and to what it was
// when the plan was proved (the generation, which is counted up when a spec changes,
// and the node of a pod).
func (r *run) fresh(ctx context.Context, t diagnosis.Target) (metav1.Object, error) {
	o, err := r.object(ctx, t)
	if err != nil {
		return nil, stale(err, t)
	}
	return o, r.asProved(o, t)
}

// asProved holds an object, as it was read, to the plan and to what it was then.
func (r *run) asProved(o metav1.Object, t diagnosis.Target) error {
	if string(o.GetUID()) != t.UID {
		return fmt.Errorf("%w: %s was replaced", plan.ErrStale, t.Kind+" "+t.Namespace+"/"+t.Name)
	}
	i := slices.IndexFunc(r.rem.Status.Proved, func(p v1alpha1.Proved) bool { return p.UID == t.UID })
	if i < 0 {
		return nil
	}
	was := r.rem.Status.Proved[i]
	if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != was.Node {
		return fmt.Errorf("%w: pod %s/%s is on %q, it was on %q", plan.ErrStale, t.Namespace, t.Name, p.Spec.NodeName, was.Node)
	}
	if o.GetGeneration() != was.Generation {
		return fmt.Errorf("%w: the spec of %s %s/%s was changed", plan.ErrStale, t.Kind, t.Namespace, t.Name)
	}
	return nil
}

// look reads a node again, with the facts that plans rely on.
func (r *run) look(ctx context.Context, t diagnosis.Target) (*corev1.Node, map[string]string, error) {
	n, err := r.node(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	st := &cluster.State{Now: r.Now(), Live: true, Nodes: []*corev1.Node{n}, Geometries: map[string]*nodeprobe.NodeGeometry{}}
	pods, err := r.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", t.Name).String()})
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods on %s: %w", t.Name, err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == t.Name {
			st.Pods = append(st.Pods, p)
		}
	}
	geo, err := r.geometry(ctx, t.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err == nil {
		st.Geometries[t.Name] = geo
	}
	return n, view.NodeFacts(st, t.Name), nil
}

// patchNode sends a merge patch with its preconditions.
func (r *run) patchNode(ctx context.Context, n *corev1.Node, patch []byte) error {
	return r.ask(string(n.UID), func() error {
		_, err := r.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: plan.FieldManager, DryRun: r.dryRun()})
		return err
	})
}

// node reads a node and holds it to the plan's uid.
func (r *run) node(ctx context.Context, t diagnosis.Target) (*corev1.Node, error) {
	n, err := r.Client.CoreV1().Nodes().Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return nil, stale(err, t)
	}
	if string(n.UID) != t.UID {
		return nil, fmt.Errorf("%w: node %s was replaced", plan.ErrStale, t.Name)
	}
	return n, nil
}

// geometry reads a node's report.
func (r *run) geometry(ctx context.Context, node string) (*nodeprobe.NodeGeometry, error) {
	u, err := r.Dynamic.Resource(nodeprobe.Resource).Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the geometry of %s: %w", node, err)
	}
	var geo nodeprobe.NodeGeometry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &geo); err != nil {
		return nil, fmt.Errorf("read the geometry of %s: %w", node, err)
	}
	return &geo, nil
}

// drift says which fact is no longer as the plan relies on it; nil when all hold.
// Facts that the fix itself has changed are left out. A holder that has left only
// makes room; one that has come, or cannot be told, takes it.
func drift(node string, relied, now map[string]string, own ...string) error {
	keys := map[string]string{}
	maps.Copy(keys, relied)
	maps.Copy(keys, now)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		was, is := relied[k], now[k]
		left := strings.Contains(k, "@") && is == ""
		if was != is && !left && !slices.Contains(own, k) {
			return fmt.Errorf("%w: node %s has changed: %s is %q, the plan relies on %q", plan.ErrStale, node, k, is, was)
		}
	}
	return nil
}

// withPreconditions adds the uid and the resourceVersion to a merge patch: the API
// server refuses when the object is another by then.
func withPreconditions(patch []byte, o metav1.Object) ([]byte, error) {
	conditions, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}})
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergeMergePatches(patch, conditions)
}

// stale turns what tells of another object into plan.ErrStale.
func stale(err error, t diagnosis.Target) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s is gone (%w)", plan.ErrStale, nameOf(t), err)
	}
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %s has changed: %w", plan.ErrStale, nameOf(t), err)
	}
	return err
}

// nameOf is how a target is named to a person.
func nameOf(t diagnosis.Target) string {
	return strings.ToLower(t.Kind) + " " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
}
