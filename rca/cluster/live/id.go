package live

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ID tells one cluster from another on the same NATS: the uid of the namespace
// kube-system, which lives as long as the cluster does (as OpenTelemetry's k8s.cluster.uid).
func ID(ctx context.Context, client kubernetes.Interface) (string, error) {
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return "", fmt.Errorf("which cluster this is cannot be told: the right to get namespaces (%s) is missing, grant it: %w", metav1.NamespaceSystem, err)
	}
	if err != nil {
		return "", fmt.Errorf("ask which cluster this is: %w", err)
	}
	if ns.UID == "" {
		return "", errors.New("which cluster this is cannot be told: its namespace " + metav1.NamespaceSystem + " has no uid")
	}
	return string(ns.UID), nil
}
