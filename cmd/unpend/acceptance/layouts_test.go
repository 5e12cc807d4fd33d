package acceptance

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

const (
	operatorNamespace = "gpu-operator"
	ownLayouts        = "own-layouts"
)

// layouts are a platform team's own: with these a plan has to write an entry of its own.
const layouts = `version: v1
mig-configs:
  # the only one we use
  all-1g.5gb:
    - devices: all
      mig-enabled: true
      mig-devices:
        1g.5gb: 7
`

// newOwnLane is a lane whose ClusterPolicy names a ConfigMap of the team's own.
func newOwnLane(t *testing.T) *lane {
	t.Helper()
	l := laneOn(t, start(t, controlplane.Extras{}), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 300 * time.Millisecond, Namespace: operatorNamespace, ConfigMap: ownLayouts})
	l.own = true
	l.InstallCRDs(t, "testdata/crds")
	policy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
		"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": ownLayouts}}}}}
	_, err := l.Dynamic().Resource(schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}).Create(t.Context(), policy, metav1.CreateOptions{})
	must(t, err)
	_, err = l.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}, metav1.CreateOptions{})
	must(t, err)
	return l
}

// setLayouts makes the ConfigMap as the team has written it: what one plan leaves would
// serve the next.
func (l *lane) setLayouts(t *testing.T) {
	t.Helper()
	maps := l.Client().CoreV1().ConfigMaps(operatorNamespace)
	if err := maps.Delete(t.Context(), ownLayouts, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ownLayouts}, Data: map[string]string{"config.yaml": layouts}}, metav1.CreateOptions{})
	must(t, err)
}

// layoutsLeft wants the entry of a plan that succeeded to be there beside what the team
// has written, and nothing left of one that failed.
func (c *cell) layoutsLeft(t *testing.T, config string, fails bool) {
	t.Helper()
	cm, err := c.Client().CoreV1().ConfigMaps(operatorNamespace).Get(t.Context(), ownLayouts, metav1.GetOptions{})
	must(t, err)
	added, there := strings.CutPrefix(cm.Data["config.yaml"], layouts)
	if !there || fails != (added == "") || !fails && !strings.HasPrefix(added, "  "+config+":\n") {
		t.Errorf("config %s, and the team's layouts are\n%s", config, cm.Data["config.yaml"])
	}
}
