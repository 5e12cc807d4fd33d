//go:build cgo

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

const user = "probe"

// allow gives the probe's rights, and no others.
func allow(t *testing.T, c *controlplane.ControlPlane) dynamic.Interface {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-nodeprobe"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{nodeprobe.Resource.Group}, Resources: []string{nodeprobe.Resource.Resource, "misspelt"}, Verbs: []string{"get", "create", "update"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := c.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigFor(t, user))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	reports := client.Resource(nodeprobe.Resource)
	controlplane.Eventually(t, 10*time.Second, "the rights of the probe", func() (bool, string) {
		_, err := reports.Get(t.Context(), "nobody", metav1.GetOptions{})
		return err != nil && strings.Contains(err.Error(), "not found"), err.Error()
	})
	return client
}

// TestPublish drives the probe against a real API server, with the rights it has.
func TestPublish(t *testing.T) {
	c := controlplane.Start(t)
	client, admin := allow(t, c), c.Dynamic().Resource(nodeprobe.Resource)
	stored := func(name string) nodeprobe.NodeGeometry {
		t.Helper()
		u, err := admin.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var geo nodeprobe.NodeGeometry
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &geo, true); err != nil {
			t.Fatal(err)
		}
		return geo
	}
	want := func(name string, r nodeprobe.Report) {
		t.Helper()
		if diff := cmp.Diff(r, stored(name).Report); diff != "" {
			t.Fatalf("want -, stored +:\n%s", diff)
		}
	}
	report := sim.Node{Name: "gpu-1", Model: "A100-40GB", GPUs: 2, Layouts: [][]sim.Placed{{{Profile: "3g.20gb", Start: 4}, {Profile: "1g.5gb", Start: 0}}}, MIGOff: []int{1}}.
		Geometry(time.Now().Truncate(time.Second)).Report
	report.GPUs[0].Instances[0].Holder = &nodeprobe.Holder{Namespace: "ml", Pod: "a", Container: "main"}
	report.GPUs[0].Instances[1].Holder = &nodeprobe.Holder{Unknown: true}
	report.GPUs[1].Holders = []nodeprobe.Holder{{Unknown: true}}

	p := newPublisher(client, "gpu-1")
	publish := func() error { return p.publish(t.Context(), report) }
	later := func(mode string) { // the next look
		report.ObservedAt = metav1.NewTime(report.ObservedAt.Add(time.Minute))
		report.DriverVersion = mode
	}
	for _, step := range []string{"created", "updated", "again"} {
		later(step)
		if err := publish(); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		want("gpu-1", report)
	}
	// Somebody labels the object: that is a conflict once, and the label stays.
	if _, err := admin.Patch(t.Context(), "gpu-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"ml"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	later("after a label")
	if err := publish(); err == nil {
		t.Error("written over what was not seen")
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	want("gpu-1", report)
	if stored("gpu-1").Labels["team"] != "ml" {
		t.Error("the label is gone")
	}
	// Somebody deletes it: it comes back.
	if err := admin.Delete(t.Context(), "gpu-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := publish(); err == nil {
		t.Error("updated what is gone")
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	want("gpu-1", report)
	// A restarted probe takes over what is there.
	later("restarted")
	if err := newPublisher(client, "gpu-1").publish(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	want("gpu-1", report)

	t.Run("no CRD", func(t *testing.T) {
		p := &publisher{reports: client.Resource(schema.GroupVersionResource{Group: nodeprobe.Resource.Group, Version: nodeprobe.Resource.Version, Resource: "misspelt"}), node: "gpu-1"}
		if err := p.publish(t.Context(), report); err == nil || !strings.Contains(err.Error(), "the cluster does not have the CRD") {
			t.Error(err)
		}
	})
	t.Run("all of it", func(t *testing.T) { wholeLoop(t, client, stored) })
	t.Run("nothing else was asked", func(t *testing.T) {
		verbs := map[string]int{}
		controlplane.Eventually(t, 10*time.Second, "the last create in the audit log", func() (bool, string) {
			clear(verbs)
			for _, e := range c.AuditEvents(t) {
				if e.User.Username == user && e.ObjectRef.Name != "nobody" {
					verbs[e.Verb+" "+e.ObjectRef.Resource]++
				}
			}
			return verbs["create nodegeometries"] == 3, fmt.Sprint(verbs)
		})
		for did := range verbs {
			if !slices.Contains([]string{"get nodegeometries", "create nodegeometries", "update nodegeometries", "get misspelt", "create misspelt"}, did) {
				t.Errorf("%s", did)
			}
		}
		// One read at each start and after each error, else one write.
		if verbs["get nodegeometries"] > 5 || verbs["update nodegeometries"] < 5 {
			t.Errorf("%v", verbs)
		}
	})
}

// zero makes rand say 0: no jitter, the first write at once.
type zero struct{}

func (zero) Uint64() uint64 { return 0 }

// wholeLoop runs the probe's loop against the API server: what cannot be said at
// all, then what can.
func wholeLoop(t *testing.T, client dynamic.Interface, stored func(string) nodeprobe.NodeGeometry) {
	n := newNode(0)
	n.publish = newPublisher(client, "gpu-2").publish
	n.rand = rand.New(zero{})
	looks := make(chan struct{})
	n.wait = func(ctx context.Context, _ time.Duration) {
		select {
		case <-ctx.Done():
		case looks <- struct{}{}:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.run(ctx) }()
	<-looks
	if r := stored("gpu-2").Report; r.Source != nodeprobe.SourceNVML || len(r.GPUs) != 1 || r.GPUs[0].Holders != nil {
		t.Errorf("first %+v", r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
