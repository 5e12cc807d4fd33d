package analyst

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Lasting has a question go on from its last answer while the API server cannot answer, as
// what is watched does: that nobody can tell now is no news of the cluster.
func Lasting[T any](ask func(context.Context) (T, error)) func(context.Context) (T, error) {
	var mu sync.Mutex
	var last T
	answered := false
	return func(ctx context.Context) (T, error) {
		now, err := ask(ctx)
		mu.Lock()
		defer mu.Unlock()
		if err == nil || !answered || live.Refused(err) {
			last, answered = now, err == nil
			return now, err
		}
		return last, nil
	}
}

// Behind says whether a diagnosis is of a pod that is no more: after an outage the copy of
// the cluster takes a while to learn that. When it has, there is other news of the incident.
func (a *Analyst) Behind(ctx context.Context, client kubernetes.Interface, d diagnosis.Diagnosis) bool {
	if len(d.Pods.Names) == 0 || !a.follower.Behind() {
		return false
	}
	_, err := client.CoreV1().Pods(d.Workload.Namespace).Get(ctx, d.Pods.Names[0], metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}
