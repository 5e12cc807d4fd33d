package acceptance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// limits are made after what runs already: the API server holds only new pods to
// them.
func (r *replay) limits(t *testing.T) {
	t.Helper()
	core := r.c.Client().CoreV1()
	for _, from := range r.st.LimitRanges {
		lr := strip(from.DeepCopy())
		_, err := core.LimitRanges(lr.Namespace).Create(t.Context(), lr, metav1.CreateOptions{})
		must(t, err)
	}
	for _, from := range r.st.Quotas {
		q := strip(from.DeepCopy())
		q.Status = corev1.ResourceQuotaStatus{}
		_, err := core.ResourceQuotas(q.Namespace).Create(t.Context(), q, metav1.CreateOptions{})
		must(t, err)
		controlplane.Eventually(t, 20*time.Second, "quota "+q.Name+" is as in the scenario", func() (bool, string) {
			got, err := core.ResourceQuotas(q.Namespace).Get(t.Context(), q.Name, metav1.GetOptions{})
			return err == nil && equality.Semantic.DeepEqual(got.Status, from.Status), fmt.Sprintf("%+v, %v", got.Status, err)
		})
	}
}

// workloads whose pods were refused are made by their specs alone: the real
// controllers are refused, and say so.
func (r *replay) workloads(t *testing.T) {
	t.Helper()
	r.operated(t)
	refused := map[incident.Ref]bool{}
	for _, f := range admission.Refusals(r.st) {
		if f.Group != "" { // made with the objects of its queue
			continue
		}
		for _, o := range incident.Owners(f.Pod, r.st.Owner) {
			refused[o] = true
		}
	}
	if len(refused) == 0 {
		return
	}
	for _, from := range r.st.Deployments {
		if !refused[incident.Ref{Kind: "Deployment", Namespace: from.Namespace, Name: from.Name}] {
			continue
		}
		o := strip(from.DeepCopy())
		_, err := r.c.Client().AppsV1().Deployments(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
	for _, from := range r.st.StatefulSets {
		if !refused[incident.Ref{Kind: "StatefulSet", Namespace: from.Namespace, Name: from.Name}] {
			continue
		}
		o := strip(from.DeepCopy())
		_, err := r.c.Client().AppsV1().StatefulSets(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
	for _, from := range r.st.Jobs {
		if !refused[incident.Ref{Kind: "Job", Namespace: from.Namespace, Name: from.Name}] {
			continue
		}
		o := strip(from.DeepCopy())
		_, err := r.c.Client().BatchV1().Jobs(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
	want := r.missing(r.st)
	controlplane.Eventually(t, 30*time.Second, "the controllers tell of refused pods", func() (bool, string) {
		st, err := live.Read(t.Context(), r.c.Client(), r.c.Dynamic(), time.Now)
		if err != nil {
			return false, err.Error()
		}
		got := r.missing(st)
		return slices.Equal(got, want), fmt.Sprintf("%v, want %v", got, want)
	})
}

// operated makes what operators would make pods from, as it stands: they do not run here, and what
// they have said of it is written.
func (r *replay) operated(t *testing.T) {
	t.Helper()
	for kind, o := range r.st.Held { // some own groups
		if slices.Contains(incident.Operated, kind) {
			r.custom(t, cluster.KindOf(o.GetAPIVersion(), o.GetKind()).Resource.Resource, o)
		}
	}
}

// lacking says whether a ReplicaSet's pods were refused.
func (r *replay) lacking(rs *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(admission.Refusals(r.st), func(f incident.Refusal) bool {
		return f.Owner == incident.Ref{Kind: "ReplicaSet", Namespace: rs.Namespace, Name: rs.Name}
	})
}

// missing is how many pods each kind of owner lacks.
func (r *replay) missing(st *cluster.State) []string {
	var out []string
	for _, f := range admission.Refusals(st) {
		out = append(out, fmt.Sprintf("%s in %s lacks %d of %d", f.Owner.Kind, f.Owner.Namespace, f.Missing, f.Wants))
	}
	return out
}

// retire takes away what made pods, and what held them back.
func (r *replay) retire(ctx context.Context, namespace string) error {
	client, now := r.c.Client(), metav1.DeletePropagationBackground
	for _, del := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		client.AppsV1().Deployments(namespace).DeleteCollection, client.AppsV1().StatefulSets(namespace).DeleteCollection, client.AppsV1().DaemonSets(namespace).DeleteCollection, client.BatchV1().Jobs(namespace).DeleteCollection,
		client.CoreV1().ResourceQuotas(namespace).DeleteCollection, client.CoreV1().LimitRanges(namespace).DeleteCollection,
	} {
		if err := del(ctx, metav1.DeleteOptions{PropagationPolicy: &now}, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return nil
}
