package deploy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

func reports(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(nodeprobe.Resource)
}

// geometry is a report that can be told from others by its number of GPUs.
func geometry(t *testing.T, node string, gpus int) *unstructured.Unstructured {
	t.Helper()
	u, err := sim.Unstructured(sim.Node{Name: node, Model: "A100-40GB", GPUs: gpus}.Geometry(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// write creates or updates, as the probe's publisher does.
func write(t *testing.T, geo dynamic.ResourceInterface, node string, gpus int) error {
	t.Helper()
	next := geometry(t, node, gpus)
	there, err := geo.Get(t.Context(), node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = geo.Create(t.Context(), next, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	next.SetResourceVersion(there.GetResourceVersion())
	_, err = geo.Update(t.Context(), next, metav1.UpdateOptions{})
	return err
}

// inPlace is what is reported: the number of GPUs by node.
func inPlace(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	list, err := cp.Dynamic().Resource(nodeprobe.Resource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		gpus, _, err := unstructured.NestedSlice(o.Object, "report", "gpus")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s:%d", o.GetName(), len(gpus)))
	}
	return strings.Join(out, " ")
}

func wantInPlace(t *testing.T, cp *controlplane.ControlPlane, want string) {
	t.Helper()
	if got := inPlace(t, cp); got != want {
		t.Errorf("reported: %s; want %s", got, want)
	}
}

func wantForbidden(t *testing.T, err error, because string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), because) {
		t.Errorf("answered with %v; want: forbidden, %s", err, because)
	}
}

const notYours = "the probe on node gpu-a may not write the NodeGeometry "

// waitForTheFence waits for admission to know the policy, which it follows by a watch.
func waitForTheFence(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	geo := reports(t, probeOn(t, cp, "gpu-a"))
	controlplane.Eventually(t, 20*time.Second, "the policy holds", func() (bool, string) {
		_, err := geo.Create(t.Context(), geometry(t, "nowhere", 1), metav1.CreateOptions{DryRun: dryRun})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), notYours+"nowhere"), fmt.Sprint(err)
	})
}

func writesItsOwn(t *testing.T, cp *controlplane.ControlPlane) {
	a, b := reports(t, probeOn(t, cp, "gpu-a")), reports(t, probeOn(t, cp, "gpu-b"))
	admin := cp.Dynamic().Resource(nodeprobe.Resource)
	if err := admin.Delete(t.Context(), "gpu-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantInPlace(t, cp, "gpu-b:1 plain:1")

	for _, gpus := range []int{2, 3} { // created, then updated
		if err := write(t, a, "gpu-a", gpus); err != nil {
			t.Errorf("its own report: %v", err)
		}
	}
	if err := write(t, b, "gpu-b", 4); err != nil {
		t.Errorf("its own report: %v", err)
	}
	wantForbidden(t, write(t, a, "gpu-b", 5), notYours+"gpu-b")
	wantForbidden(t, write(t, a, "new", 5), notYours+"new")
	unnamed := geometry(t, "", 5)
	unnamed.SetGenerateName("gpu-")
	_, err := a.Create(t.Context(), unnamed, metav1.CreateOptions{})
	wantForbidden(t, err, notYours)
	data, err := geometry(t, "gpu-a", 5).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []types.PatchType{types.MergePatchType, types.ApplyPatchType} {
		_, err = a.Patch(t.Context(), "gpu-a", kind, data, metav1.PatchOptions{FieldManager: "test"})
		wantForbidden(t, err, `cannot patch resource "nodegeometries"`)
	}
	wantForbidden(t, a.Delete(t.Context(), "gpu-a", metav1.DeleteOptions{}), `cannot delete resource "nodegeometries"`)
	_, err = a.List(t.Context(), metav1.ListOptions{})
	wantForbidden(t, err, `cannot list resource "nodegeometries"`)
	wantInPlace(t, cp, "gpu-a:3 gpu-b:4 plain:1")
}

// Who is not the probe is under RBAC alone: one with the same right writes any
// report, one without writes none, and none of it asks for a node.
func othersAreFree(t *testing.T, cp *controlplane.ControlPlane) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "same-right"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "unpend:unpend-probe"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "importer"}}}
	if _, err := cp.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	importer := reports(t, userConfig(t, cp, "importer"))
	controlplane.Eventually(t, 10*time.Second, "importer may read reports", func() (bool, string) {
		_, err := importer.Get(t.Context(), "gpu-a", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	if err := write(t, importer, "gpu-b", 6); err != nil {
		t.Errorf("who has the right and is not the probe: %v", err)
	}
	if err := write(t, cp.Dynamic().Resource(nodeprobe.Resource), "plain", 7); err != nil {
		t.Errorf("an admin: %v", err)
	}
	_, err := reports(t, userConfig(t, cp, "mallory")).Create(t.Context(), geometry(t, "gpu-c", 8), metav1.CreateOptions{})
	wantForbidden(t, err, `User "mallory" cannot create resource "nodegeometries"`)
	wantInPlace(t, cp, "gpu-a:3 gpu-b:6 plain:7")
}

func userConfig(t *testing.T, cp *controlplane.ControlPlane, user string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cp.KubeconfigFor(t, user))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// deletesItsOwn gives the probe a right that the chart does not.
func deletesItsOwn(t *testing.T, cp *controlplane.ControlPlane) {
	roles := cp.Client().RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "too-much"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{nodeprobe.Kind.Group}, Resources: []string{"nodegeometries"}, Verbs: []string{"delete"}}}}
	if _, err := roles.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "too-much"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "too-much"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: probe, Name: probe}}}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a := reports(t, probeOn(t, cp, "gpu-a"))
	controlplane.Eventually(t, 10*time.Second, "only the fence refuses", func() (bool, string) {
		err := a.Delete(t.Context(), "gpu-b", metav1.DeleteOptions{})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), notYours+"gpu-b"), fmt.Sprint(err)
	})
	if err := a.Delete(t.Context(), "gpu-a", metav1.DeleteOptions{}); err != nil {
		t.Errorf("its own report: %v", err)
	}
	wantInPlace(t, cp, "gpu-b:6 plain:7")
}
