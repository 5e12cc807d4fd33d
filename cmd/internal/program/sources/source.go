// Package sources is where commands have a cluster from: kubectl's flags, an API server or
// dumps, and a Prometheus; and how a person names an incident there. What is done with what was
// read stands in the commands.
package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/executor"
	watcherevents "github.com/unpend/unpend/watcher/events"
)

// Source is where a command reads the cluster from: dumps, or the API server of
// the kubeconfig.
type Source struct {
	Kube  *KubeFlags
	Files []string
	All   bool // -A
	// Config speaks for somebody else than the kubeconfig does; nil: nobody.
	Config *rest.Config
}

// Flags are -f and -A.
func (s *Source) Flags(c *cobra.Command) {
	c.Flags().StringArrayVarP(&s.Files, "filename", "f", nil, "read dumps (files, folders, - for stdin) instead of the cluster")
	c.Flags().BoolVarP(&s.All, "all-namespaces", "A", s.All, "look at every namespace")
}

// State reads the cluster once. The namespace is where kinds are read that may not
// be listed everywhere.
func (s *Source) State(ctx context.Context, namespace string, std console.Stdio) (*cluster.State, error) {
	if len(s.Files) > 0 {
		Garbage(garbageOfDump)
		return dump.Read(s.Files, std.In)
	}
	d, err := s.Deps()
	if err != nil {
		return nil, err
	}
	st, err := live.ReadFor(ctx, d.Client, d.Dynamic, time.Now, namespace, d.Owners)
	if err != nil {
		return nil, Unreachable(err)
	}
	return st, nil
}

// REST is how the API server is spoken to.
func (s *Source) REST() (*rest.Config, error) {
	config, err := s.Config, error(nil)
	if config == nil {
		config, err = s.Kube.rest()
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w; check --kubeconfig and --context, or read a dump with -f", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	config.Wrap(executor.OneWrite)
	config.Wrap(watcherevents.Bounded)
	return config, nil
}

// Deps read the cluster, and carry nothing out yet.
func (s *Source) Deps() (executor.Deps, error) {
	config, err := s.REST()
	if err != nil {
		return executor.Deps{}, err
	}
	client, custom, err := live.Clients(config)
	if err != nil {
		return executor.Deps{}, err
	}
	owned, err := s.Kube.owners(config)
	return executor.Deps{Client: client, Dynamic: custom, Owners: owned, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, err
}

// Unreachable says in one sentence that the API server does not answer, or not
// as one, and what to do.
func Unreachable(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch code := status.Status().Code; {
		case code == http.StatusUnauthorized:
			return fmt.Errorf("the API server does not accept these credentials (401): log in again, or check --context")
		case code == http.StatusNotFound:
			return fmt.Errorf("the server of this kubeconfig answers 404, so it is no Kubernetes API server: check its address, or --context")
		case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
			return fmt.Errorf("the API server cannot answer now (%d: %s): try again, or read a dump with -f", code, strings.TrimSpace(status.Status().Message))
		}
	}
	if dial, ok := errors.AsType[*url.Error](err); ok {
		host := dial.URL
		if u, parse := url.Parse(dial.URL); parse == nil {
			host = u.Host
		}
		return fmt.Errorf("the API server %s does not answer (%w); check the network and --context, or read a dump with -f", host, dial.Err)
	}
	return err
}

// Namespace is the one to look at; empty for all. A dump holds what somebody
// chose to put there, so commands look at all of it unless -n says otherwise.
func (s *Source) Namespace() (string, error) {
	explicit := s.Kube.Namespace()
	if s.All || len(s.Files) > 0 && explicit == "" {
		return "", nil
	}
	if len(s.Files) > 0 {
		return explicit, nil
	}
	ns, _, err := s.Kube.loader.Namespace()
	if clientcmd.IsEmptyConfig(err) {
		return "", fmt.Errorf("no cluster is configured: give --kubeconfig or --context, or read a dump with -f")
	}
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w; check --kubeconfig and --context, or read a dump with -f", err)
	}
	return ns, nil
}
