package plan

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Object reads a target of a plan, of a kind that plans write to; ErrRefused for any other.
func Object(ctx context.Context, client kubernetes.Interface, t diagnosis.Target) (metav1.Object, error) {
	get := metav1.GetOptions{}
	switch t.Kind {
	case "Deployment":
		return client.AppsV1().Deployments(t.Namespace).Get(ctx, t.Name, get)
	case "StatefulSet":
		return client.AppsV1().StatefulSets(t.Namespace).Get(ctx, t.Name, get)
	case "ReplicaSet":
		return client.AppsV1().ReplicaSets(t.Namespace).Get(ctx, t.Name, get)
	case "DaemonSet":
		return client.AppsV1().DaemonSets(t.Namespace).Get(ctx, t.Name, get)
	case "Job":
		return client.BatchV1().Jobs(t.Namespace).Get(ctx, t.Name, get)
	case "CronJob":
		return client.BatchV1().CronJobs(t.Namespace).Get(ctx, t.Name, get)
	case "Pod":
		return client.CoreV1().Pods(t.Namespace).Get(ctx, t.Name, get)
	case "ResourceQuota":
		return client.CoreV1().ResourceQuotas(t.Namespace).Get(ctx, t.Name, get)
	case "ConfigMap":
		return client.CoreV1().ConfigMaps(t.Namespace).Get(ctx, t.Name, get)
	}
	return nil, fmt.Errorf("%w: a %s cannot be written here", ErrRefused, t.Kind)
}
