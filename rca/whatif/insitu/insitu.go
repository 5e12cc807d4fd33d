// Package insitu runs the whole kube-scheduler (k8s.io/kubernetes v1.37.1) inside
// this process over any clientset: its queue, its plugins, its events and
// conditions. The demo and the property tests schedule with it.
package insitu

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// Run schedules until ctx ends and then waits for what it started. ready is
// closed once the scheduler knows the cluster.
func Run(ctx context.Context, client kubernetes.Interface, ready chan<- struct{}) error {
	factory := scheduler.NewInformerFactory(client, 0, nil)
	recorder := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := recorder.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	defer recorder.Shutdown()
	s, err := scheduler.New(ctx, client, factory, nil, profile.NewRecorderFactory(recorder))
	if err != nil {
		return fmt.Errorf("start the scheduler: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	// Its own cache is filled by handlers: before that it would refuse pods for
	// nodes that it has not heard of, and try again only seconds later.
	if err := s.WaitForHandlersSync(ctx); err != nil {
		factory.Shutdown()
		return nil // ctx has ended
	}
	close(ready)
	s.Run(ctx)
	factory.Shutdown()
	return nil
}
