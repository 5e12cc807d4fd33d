package program

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

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/executor"
	watcherevents "github.com/unpend/unpend/watcher/events"
)

// source is where a command reads the cluster from: dumps, or the API server of
// the kubeconfig.
type source struct {
	kube  *kubeFlags
	files []string
	all   bool // -A
	// config speaks for somebody else than the kubeconfig does; nil: nobody.
	config *rest.Config
}

func (s *source) flags(c *cobra.Command) {
	c.Flags().StringArrayVarP(&s.files, "filename", "f", nil, "read dumps (files, folders, - for stdin) instead of the cluster")
	c.Flags().BoolVarP(&s.all, "all-namespaces", "A", s.all, "look at every namespace")
}

// state reads the cluster once. The namespace is where kinds are read that may not
// be listed everywhere.
func (s *source) state(ctx context.Context, namespace string, std Stdio) (*cluster.State, error) {
	if len(s.files) > 0 {
		garbage(garbageOfDump)
		return cluster.FromFiles(s.files, std.In)
	}
	d, err := s.deps()
	if err != nil {
		return nil, err
	}
	st, err := cluster.ReadFor(ctx, d.Client, d.Dynamic, time.Now, namespace, d.Owners)
	if err != nil {
		return nil, unreachable(err)
	}
	return st, nil
}

// rest is how the API server is spoken to.
func (s *source) rest() (*rest.Config, error) {
	config, err := s.config, error(nil)
	if config == nil {
		config, err = s.kube.rest()
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

// deps read the cluster, and carry nothing out yet.
func (s *source) deps() (executor.Deps, error) {
	config, err := s.rest()
	if err != nil {
		return executor.Deps{}, err
	}
	client, custom, err := cluster.Clients(config)
	if err != nil {
		return executor.Deps{}, err
	}
	owned, err := s.kube.owners(config)
	return executor.Deps{Client: client, Dynamic: custom, Owners: owned, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, err
}

// unreachable says in one sentence that the API server does not answer, or not
// as one, and what to do.
func unreachable(err error) error {
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

// namespace is the one to look at; empty for all. A dump holds what somebody
// chose to put there, so commands look at all of it unless -n says otherwise.
func (s *source) namespace() (string, error) {
	explicit := s.kube.namespace()
	if s.all || len(s.files) > 0 && explicit == "" {
		return "", nil
	}
	if len(s.files) > 0 {
		return explicit, nil
	}
	ns, _, err := s.kube.loader.Namespace()
	if clientcmd.IsEmptyConfig(err) {
		return "", fmt.Errorf("no cluster is configured: give --kubeconfig or --context, or read a dump with -f")
	}
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w; check --kubeconfig and --context, or read a dump with -f", err)
	}
	return ns, nil
}
