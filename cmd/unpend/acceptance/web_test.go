package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/testdata/controlplane"
)

// Two people with tokens of the real API server see, on the page of the built service, each
// the incident of the namespace that they may read, and nothing of the other's; who has no
// token sees nothing.
func TestS9TwoPeopleOnThePage(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	dir, metrics, page := t.TempDir(), controlplane.FreeAddress(t), controlplane.FreeAddress(t)
	config := filepath.Join(dir, "unpend.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: default}\nbus: {storeDir: %s}\nweb: {metrics: %q, listen: %q, cluster: prod}\n", t.TempDir(), metrics, page), 0o600))
	p := newProcess(t, nil, "unpend", "run", "--config", config, "--kubeconfig", c.Kubeconfig())
	p.start(t)
	spaces := []string{c.Namespace(t), c.Namespace(t)}
	tokens := make([]string, len(spaces))
	for i, ns := range spaces {
		c.WaitForServiceAccount(t, ns)
		tokens[i] = readerOf(t, c, ns)
		_, err := c.Client().CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("waits-%d", i)}, Spec: podFor("2g.10gb")}, metav1.CreateOptions{})
		must(t, err)
	}
	for i, ns := range spaces {
		var got string
		controlplane.Eventually(t, time.Minute, "the page shows "+ns, func() (bool, string) {
			got = asReader(t, page, "/", tokens[i])
			return strings.Contains(got, ns+"/waits-"), got
		})
		other := spaces[1-i]
		controlplane.Eventually(t, time.Minute, "the other is diagnosed too", func() (bool, string) {
			return strings.Contains(asReader(t, page, "/", tokens[1-i]), other+"/waits-"), ""
		})
		if got = asReader(t, page, "/", tokens[i]); !strings.Contains(got, ns) || strings.Contains(got, other) || strings.Contains(got, tokens[i]) {
			t.Errorf("who may read %s alone is shown:\n%s", ns, got)
		}
		_, id, _ := strings.Cut(asReader(t, page, "/", tokens[1-i]), `href="/incidents/`)
		id, _, _ = strings.Cut(id, `"`)
		if got := asReader(t, page, "/incidents/"+id, tokens[i]); !strings.HasPrefix(got, "404 ") || strings.Contains(got, other) {
			t.Errorf("the incident of %s is shown to who may read %s:\n%s", other, ns, got)
		}
		if got := asReader(t, page, "/incidents/"+id, tokens[1-i]); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "MIGLayoutMismatch") || !strings.Contains(got, "<svg class=\"gpu\"") {
			t.Errorf("their own:\n%s", got)
		}
		if got := asReader(t, page, "/cluster", tokens[i]); !strings.HasPrefix(got, "403 ") || strings.Contains(got, "gpu-1") {
			t.Errorf("who may not list nodes sees the map:\n%s", got)
		}
	}
	if got := asReader(t, page, "/", ""); !strings.HasPrefix(got, "303 ") || strings.Contains(got, spaces[0]) {
		t.Errorf("without a token: %s", got)
	}
	if all := strings.Join(p.out.all(), "\n"); strings.Contains(all, tokens[0]) || strings.Contains(all, tokens[1]) {
		t.Error("its log has a token")
	}
}

// podFor asks for one instance.
func podFor(profile string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName("nvidia.com/mig-" + profile): resource.MustParse("1")}}}}}
}

// readerOf is a token of a ServiceAccount that may read the pods of its namespace.
func readerOf(t *testing.T, c *controlplane.ControlPlane, ns string) string {
	t.Helper()
	client := c.Client()
	_, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "reader"}}}, metav1.CreateOptions{})
	must(t, err)
	got, err := client.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return got.Status.Token
}

// asReader is the status of a page, and what is on it.
func asReader(t *testing.T, address, path, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	must(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Transport{}).RoundTrip(r)
	if err != nil {
		return err.Error() // it does not listen yet
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.Status + "\n" + string(body)
}
