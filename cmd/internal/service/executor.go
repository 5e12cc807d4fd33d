package service

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/executor"
)

// carryOut is the role that carries approved plans out. It speaks to the API server,
// and hands what became of a plan to the bus where there is one: it needs none, and
// nobody can reach it.
func (s *Service) carryOut(ctx context.Context) (err error) {
	client, custom, err := live.Clients(s.rest)
	if err != nil {
		return err
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask who we are: %w", err)
	}
	ctrl.SetLogger(logr.FromSlogHandler(s.logger.Handler())) // for what in client-go and controller-runtime logs by no other
	c, self := s.config.Remediate, identity()                // the same in Events as in the lease
	failures := prometheus.NewCounter(prometheus.CounterOpts{Name: "unpend_event_failures_total", Help: "Events about steps that could not be made."})
	if err := s.registry.Register(failures); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	trail := &executor.Trail{Path: c.Audit, Self: who.Status.UserInfo.Username, Now: s.now, Logger: s.logger,
		Events: audit.NewEvents(client, self, s.now, failures)}
	defer func() {
		if cerr := trail.Close(); err == nil {
			err = cerr
		}
	}()
	x := executor.New(executor.Options{Publish: s.notices(), Registerer: s.registry,
		Namespace: s.config.Namespace(), Self: who.Status.UserInfo.Username, ActAs: s.actAs, Groups: c.Groups,
		Deps: executor.Deps{Observe: s.traced(trail.Observe), Measure: s.measure, Client: client, Dynamic: custom, Owners: s.asked, Now: s.now, Logger: s.logger, Poll: c.Poll.Duration, Deadlines: c.Waits()}})
	s.ready.set()
	return x.Run(ctx, s.rest, self)
}

// actAs speaks to the API server as a person.
func (s *Service) actAs(user string, groups []string) (kubernetes.Interface, error) {
	config := rest.CopyConfig(s.rest)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("act as %s: %w", user, err)
	}
	return client, nil
}

// identity is the name that the leader's lease is held under and Events are made by:
// the pod's, which a restarted container keeps; elsewhere one that no other process
// has, another at each call.
func identity() string {
	if pod := os.Getenv("POD_NAME"); pod != "" {
		return pod
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unpend"
	}
	return host + "-" + rand.String(8)
}
