// Package clients is how the service comes to the API server: gently, never waiting for ever,
// and for a reader with the reader's token alone.
package clients

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/rca/cluster/live"
)

// Door is by which clients the page comes to the cluster.
type Door struct {
	// Own are the service's, for what readers ask for alone: a storm of diagnoses must not hold
	// a person up.
	Own func() (kubernetes.Interface, dynamic.Interface, error)
	// As are a reader's: they have the reader's token, and nothing that the service is let in by.
	As func(token string) (kubernetes.Interface, dynamic.Interface, error)
}

// DoorOf is that of an API server.
func DoorOf(config *rest.Config) Door {
	return Door{
		Own: func() (kubernetes.Interface, dynamic.Interface, error) { return live.Clients(config) },
		As: func(token string) (kubernetes.Interface, dynamic.Interface, error) {
			its := rest.AnonymousClientConfig(config)
			its.BearerToken, its.QPS, its.Burst = token, 50, 100
			client, err := kubernetes.NewForConfig(its)
			if err != nil {
				return nil, nil, fmt.Errorf("make a client for a reader: %w", err)
			}
			custom, err := dynamic.NewForConfig(its)
			if err != nil {
				return nil, nil, fmt.Errorf("make a client for a reader: %w", err)
			}
			return client, custom, nil
		},
	}
}
