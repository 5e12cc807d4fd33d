package acceptance

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A published diagnosis follows the cluster although nothing happens to the pod: MIG
// manager fails, a taint comes and goes. What changes nothing is not published again.
func TestDiagnosisFollowsTheCluster(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	s := serve(t, c)
	patch := func(subresource, body string) {
		t.Helper()
		var sub []string
		if subresource != "" {
			sub = append(sub, subresource)
		}
		_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "gpu-1", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		must(t, err)
	}
	job("2g.10gb", "")(t, c)
	s.told(t, 30*time.Second, "default", "training", diagnosis.MIGLayoutMismatch)
	var took []time.Duration
	for _, step := range []struct {
		body   string
		causes []diagnosis.CauseID
	}{
		{`{"metadata":{"labels":{"nvidia.com/mig.config":"all-2g.10gb","nvidia.com/mig.config.state":"failed"}}}`, []diagnosis.CauseID{diagnosis.MIGConfigFailed}},
		{`{"metadata":{"labels":{"nvidia.com/mig.config":"all-1g.5gb","nvidia.com/mig.config.state":"success"}}}`, []diagnosis.CauseID{diagnosis.MIGLayoutMismatch}},
		{`{"spec":{"taints":[{"key":"team","value":"vision","effect":"NoSchedule"}]}}`, []diagnosis.CauseID{diagnosis.UntoleratedTaint, diagnosis.MIGLayoutMismatch}},
		{`{"spec":{"taints":null}}`, []diagnosis.CauseID{diagnosis.MIGLayoutMismatch}},
	} {
		patch("", step.body)
		took = append(took, s.told(t, 20*time.Second, "default", "training", step.causes...))
	}
	t.Logf("told after %v", took)

	before := len(s.of("default", "training"))
	for n := range 5 { // the kubelet shows that it lives
		at := metav1.Now().Add(time.Duration(n) * time.Second).UTC().Format(time.RFC3339)
		patch("status", fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","lastHeartbeatTime":%q}]}}`, corev1.NodeReady, at))
	}
	c.AddNodeObject(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cpu-1"}}) // that is news: it comes last
	controlplane.Eventually(t, 20*time.Second, "the new node is told of", func() (bool, string) {
		all := s.of("default", "training")
		return all[len(all)-1].NodeCount == 2, fmt.Sprint(all[len(all)-1].NodeCount, " nodes")
	})
	for _, d := range s.of("default", "training")[before:] {
		if d.NodeCount != 2 {
			t.Errorf("published although nothing had changed: %+v", d)
		}
	}
}
