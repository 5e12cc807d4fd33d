package desk

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// Finding is why a pod waits, as one person may know it.
type Finding struct {
	diagnosis.Diagnosis
	// Hide takes out of a text what names a pod in a namespace that the person may not read.
	Hide func(string) string
}

// Why is the finding of the incident that a waiting pod belongs to, made now. Without a
// namespace it is looked for in all that the person may read. plan.ErrRefused: there is none
// that they may know of, which sounds the same whether the pod is there or not.
func (v Visitor) Why(ctx context.Context, pod, namespace string) (Finding, error) {
	may := v.reader(ctx)
	if namespace != "" {
		if ok, err := may(namespace); err != nil || !ok {
			return Finding{}, noSuch(err, pod)
		}
	}
	st, err := live.Read(ctx, v.desk.Client, v.desk.Dynamic, v.desk.Now, v.desk.Owners)
	if err != nil {
		return Finding{}, err
	}
	var its *corev1.Pod
	for _, p := range st.Pods {
		if p.Name != pod || p.Spec.NodeName != "" || namespace != "" && p.Namespace != namespace {
			continue
		}
		ok, err := may(p.Namespace)
		switch {
		case err != nil:
			return Finding{}, err
		case ok && its != nil:
			return Finding{}, fmt.Errorf("%w: a pod %s waits in namespace %s and in %s: say which", plan.ErrRefused, pod, its.Namespace, p.Namespace)
		case ok:
			its = p
		}
	}
	if its == nil {
		return Finding{}, noSuch(nil, pod)
	}
	id := incident.ID(incident.Topmost(its, st.Owner), incident.Requests(its))
	found, err := rca.Diagnose(ctx, st, rca.Options{Measure: v.desk.Measure, Guard: v.desk.Guard, Outcomes: v.desk.store().Outcomes, Only: func(i incident.Incident) bool { return i.ID == id }})
	if err != nil {
		return Finding{}, err
	}
	if len(found) == 0 {
		return Finding{}, noSuch(nil, pod)
	}
	return Finding{found[0], hide(st, may)}, nil
}

func noSuch(err error, pod string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: no pod %s waits that you may read", plan.ErrRefused, pod)
}

// reader asks, once for each namespace, whether the person may read pods there.
func (v Visitor) reader(ctx context.Context) func(namespace string) (bool, error) {
	known := map[string]bool{}
	return func(namespace string) (bool, error) {
		if may, asked := known[namespace]; asked {
			return may, nil
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: v.User, Groups: append([]string{"system:authenticated"}, v.Groups...),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "pods"}}}
		got, err := v.desk.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("ask what %s may read: %w", v.User, err)
		}
		known[namespace] = got.Status.Allowed
		return got.Status.Allowed, nil
	}
}

// hide takes pods' names out of texts, whose namespaces may not be read, or of which nobody
// can tell.
func hide(st *cluster.State, may func(string) (bool, error)) func(string) string {
	return func(text string) string {
		for _, p := range st.Pods {
			name := p.Namespace + "/" + p.Name
			if !strings.Contains(text, name) {
				continue
			}
			if ok, err := may(p.Namespace); err != nil || !ok {
				text = strings.ReplaceAll(text, name, "a pod in another namespace")
			}
		}
		return text
	}
}
