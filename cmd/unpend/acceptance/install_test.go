package acceptance

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// install installs the chart in mode approve in a namespace, without what a kubelet
// would run: an executor that is started there has the rights of its ServiceAccount,
// those who approve have theirs, and the chart's policies judge both.
func (l *lane) install(t *testing.T, ns string, approvers ...any) {
	t.Helper()
	off := chart.Values{"enabled": false}
	kinds := l.kinds
	if kinds == nil {
		kinds = chart.Values{"nominate": true}
	}
	values := chart.Values{"mode": "approve", "probe": off, "networkPolicy": off, "persistence": off, "gpuOperator": chart.Values{"namespace": ""},
		"remediate": chart.Values{"approvers": chart.Values{"users": approvers, "groups": append([]any{}, l.groups...)}, "kinds": kinds}}
	if l.own {
		values["gpuOperator"] = chart.Values{"namespace": operatorNamespace, "migConfigMaps": []any{ownLayouts}}
	}
	if l.heard {
		values["slack"] = chart.Values{"channel": "C0123456789", "existingSecret": "slack", "appKey": "app"}
	}
	send := chart.To(l.ControlPlane)
	for _, o := range (chart.Release{Namespace: ns, Values: values}).Objects(t) {
		switch o.GetKind() {
		case "Deployment", "Job", "Lease", "PersistentVolumeClaim", "Service":
			continue
		}
		must(t, send.Create(t, o))
		if o.GetNamespace() == ns {
			continue // it goes with the namespace
		}
		at, err := send.Resource(o)
		must(t, err)
		t.Cleanup(func() {
			if err := at.Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	client, err := kubernetes.NewForConfig(l.asExecutor(t, ns))
	must(t, err)
	controlplane.Eventually(t, 20*time.Second, "RBAC knows the executor", func() (bool, string) {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), "no-such-node", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// asExecutor speaks with a token of the executor's ServiceAccount, as its pod does.
func (l *lane) asExecutor(t *testing.T, ns string) *rest.Config {
	t.Helper()
	seconds := int64(12 * 60 * 60) // longer than any test; by default a token is good for an hour
	got, err := l.Client().CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), executor.LeaderLease, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	must(t, err)
	config := rest.AnonymousClientConfig(l.Config())
	config.BearerToken = got.Status.Token
	return config
}

// storeAs is the plans as a person writes them, who has to be who they say.
func (l *lane) storeAs(t *testing.T, user string, groups ...string) plan.Store {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigFor(t, user, groups...))
	must(t, err)
	return storeOf(t, config)
}

func storeOf(t *testing.T, config *rest.Config) plan.Store {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return plan.Store{Dynamic: client}
}
