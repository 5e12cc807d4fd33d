package world

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	onconflict "k8s.io/client-go/util/retry"

	"github.com/unpend/unpend/nodeprobe"
)

func intOrString(n int32) intstr.IntOrString { return intstr.FromInt32(n) }

const other = types.UID("00000000-0000-0000-0000-000000000000")

func (c *conform) patchPreconditions(t *testing.T) {
	d := c.deployment(t, "inference", 0)
	deployments := c.client.AppsV1().Deployments(c.ns)
	c.eventually(t, "the controller has seen it", func() bool {
		sets, err := c.client.AppsV1().ReplicaSets(c.ns).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(sets.Items) == 1
	})
	label := `"metadata":{"labels":{"team":"vision"}}`
	now, err := deployments.Patch(t.Context(), d.Name, types.MergePatchType, []byte(`{`+label+`}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replicas := `"spec":{"replicas":3}`
	_, err = deployments.Patch(t.Context(), d.Name, types.MergePatchType, patchWith(d.UID, d.ResourceVersion, replicas), metav1.PatchOptions{})
	conflict(t, "patch of a stale version", err)
	_, err = deployments.Patch(t.Context(), d.Name, types.MergePatchType, patchWith(other, "", replicas), metav1.PatchOptions{})
	refusal(t, "patch of another uid", err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	_, err = deployments.Patch(t.Context(), d.Name, types.MergePatchType, patchWith(other, d.ResourceVersion, replicas), metav1.PatchOptions{})
	conflict(t, "patch of another uid and a stale version", err)
	is, err := deployments.Get(t.Context(), d.Name, metav1.GetOptions{})
	if err != nil || *is.Spec.Replicas != 0 || is.UID != d.UID || is.Labels["team"] != "vision" {
		t.Errorf("replicas %d, uid %s, labels %v, %v", *is.Spec.Replicas, is.UID, is.Labels, err)
	}
	err = onconflict.RetryOnConflict(onconflict.DefaultBackoff, func() error { // its controller may write it meanwhile
		if is, err = deployments.Get(t.Context(), d.Name, metav1.GetOptions{}); err == nil {
			is, err = deployments.Patch(t.Context(), d.Name, types.MergePatchType, patchWith(now.UID, is.ResourceVersion, `"spec":{"paused":true}`), metav1.PatchOptions{})
		}
		return err
	})
	if err != nil || !is.Spec.Paused {
		t.Errorf("patch of what it is: paused %v, %v", is.Spec.Paused, err)
	}
}

func (c *conform) patchNull(t *testing.T) {
	nodes := c.client.CoreV1().Nodes()
	patch := func(text string) *corev1.Node {
		n, err := nodes.Patch(t.Context(), c.node, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := patch(`{"metadata":{"labels":{"a":"1","b":"2"},"annotations":{"x":"1","y":"2"}}}`)
	if n.Labels["a"] != "1" || n.Annotations["x"] != "1" {
		t.Errorf("labels %v, annotations %v", n.Labels, n.Annotations)
	}
	patch(`{"metadata":{"labels":{"a":null},"annotations":{"x":null}}}`)
	n, err := nodes.Get(t.Context(), c.node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, a := n.Labels["a"]
	_, x := n.Annotations["x"]
	if a || x || n.Labels["b"] != "2" || n.Annotations["y"] != "2" {
		t.Errorf("labels %v, annotations %v", n.Labels, n.Annotations)
	}
}

func (c *conform) versionsAndGenerations(t *testing.T) {
	p := c.idle(t)
	again, err := c.pods().Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"idle"}}}`), metav1.PatchOptions{})
	same(t, p, again, err)
	labelled, err := c.pods().Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"more":"yes"}}}`), metav1.PatchOptions{})
	if err != nil || labelled.ResourceVersion == p.ResourceVersion || labelled.Generation != p.Generation || p.Generation != 1 {
		t.Errorf("a label: version %s, was %s; generation %d, was %d; %v", labelled.ResourceVersion, p.ResourceVersion, labelled.Generation, p.Generation, err)
	}
	tolerating, err := c.pods().Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(`{"spec":{"tolerations":[{"key":"gpu","operator":"Exists"}]}}`), metav1.PatchOptions{})
	if err != nil || tolerating.Generation != 2 {
		t.Errorf("a toleration: generation %d, %v", tolerating.Generation, err)
	}
	n, err := c.client.CoreV1().Nodes().Patch(t.Context(), c.node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	if err != nil || n.Generation != 0 {
		t.Errorf("a node has generation %d, %v", n.Generation, err)
	}
}

func (c *conform) statusApart(t *testing.T) {
	p := c.idle(t)
	edit := p.DeepCopy()
	edit.Labels["status"] = "may"
	edit.Spec.Tolerations = append(edit.Spec.Tolerations, corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})
	edit.Status.Message = "by the status"
	got, err := c.pods().UpdateStatus(t.Context(), edit, metav1.UpdateOptions{})
	if err != nil || got.Labels["status"] != "may" || len(got.Spec.Tolerations) != len(p.Spec.Tolerations) || got.Status.Message != "by the status" {
		t.Errorf("update of the status: labels %v, tolerations %v, message %q, %v", got.Labels, got.Spec.Tolerations, got.Status.Message, err)
	}
	edit = got.DeepCopy()
	edit.Labels["more"] = "yes"
	edit.Status.Message = "by the spec"
	got, err = c.pods().Update(t.Context(), edit, metav1.UpdateOptions{})
	if err != nil || got.Labels["more"] != "yes" || got.Status.Message != "by the status" {
		t.Errorf("update of the rest: labels %v, message %q, %v", got.Labels, got.Status.Message, err)
	}
	_, err = c.pods().UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	conflict(t, "status of a stale version", err)
	got, err = c.pods().Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"third":"yes"}},"status":{"message":"patched"}}`), metav1.PatchOptions{}, "status")
	if err != nil || got.Status.Message != "patched" {
		t.Errorf("patch of the status: message %q, %v", got.Status.Message, err)
	}
}

func (c *conform) deletePreconditions(t *testing.T) {
	p := c.idle(t)
	uid, version := other, "1"
	conflict(t, "deletion of another uid", c.pods().Delete(t.Context(), p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
	conflict(t, "deletion of a stale version", c.pods().Delete(t.Context(), p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID, ResourceVersion: &version}}))
	is, err := c.pods().Get(t.Context(), p.Name, metav1.GetOptions{})
	same(t, p, is, err)
	if err := c.pods().Delete(t.Context(), p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}}); err != nil {
		t.Error(err)
	}
	c.gone(t, p)
}

func (c *conform) absent(t *testing.T) {
	notFound := func(what string, err error) { refusal(t, what, err, http.StatusNotFound, metav1.StatusReasonNotFound) }
	_, err := c.pods().Get(t.Context(), "nobody", metav1.GetOptions{})
	notFound("get", err)
	notFound("delete", c.pods().Delete(t.Context(), "nobody", metav1.DeleteOptions{}))
	notFound("evict", c.evict(t, "nobody", nil))
	_, err = c.pods().Patch(t.Context(), "nobody", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	notFound("patch", err)
	_, err = c.client.AppsV1().Deployments(c.ns).Get(t.Context(), "nobody", metav1.GetOptions{})
	notFound("get a deployment", err)
	_, err = c.custom.Resource(nodeprobe.Resource).Get(t.Context(), "nobody", metav1.GetOptions{})
	notFound("get a report", err)
}

func (c *conform) present(t *testing.T) {
	p := c.idle(t)
	next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: c.spec(corev1.RestartPolicyAlways)}
	_, err := c.pods().Create(t.Context(), next, metav1.CreateOptions{})
	refusal(t, "create", err, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	_, err = c.pods().Create(t.Context(), next, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	refusal(t, "dry run of create", err, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	is, err := c.pods().Get(t.Context(), p.Name, metav1.GetOptions{})
	same(t, p, is, err)
	_, err = c.pods().Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "copy", ResourceVersion: p.ResourceVersion}, Spec: next.Spec}, metav1.CreateOptions{})
	if err == nil {
		t.Error("an object with a version was created")
	}
}

func (c *conform) dryRun(t *testing.T) {
	p := c.holder(t)
	dry := []string{metav1.DryRunAll}
	got, err := c.pods().Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: dry})
	if err != nil || got.Labels["a"] != "b" {
		t.Errorf("dry run of a patch answers labels %v, %v", got.Labels, err)
	}
	if err := c.evict(t, p.Name, &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}, dry...); err != nil {
		t.Errorf("dry run of an eviction: %v", err)
	}
	if err := c.pods().Delete(t.Context(), p.Name, metav1.DeleteOptions{DryRun: dry}); err != nil {
		t.Errorf("dry run of a deletion: %v", err)
	}
	made, err := c.pods().Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "more-"}, Spec: p.Spec}, metav1.CreateOptions{DryRun: dry})
	if err != nil || made.UID == "" || made.Name == "" {
		t.Errorf("dry run of a creation answers %q, uid %q, %v", made.Name, made.UID, err)
	}
	list, err := c.pods().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d pods, %v", len(list.Items), err)
	}
	same(t, p, &list.Items[0], nil)
}

func (c *conform) geometry(t *testing.T) {
	reports := c.custom.Resource(nodeprobe.Resource)
	stale, err := reports.Get(t.Context(), c.node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	next := stale.DeepCopy()
	next.Object["report"].(map[string]any)["driverVersion"] = "590.1"
	now, err := reports.Update(t.Context(), next, metav1.UpdateOptions{})
	if err != nil || now.GetResourceVersion() == stale.GetResourceVersion() {
		t.Fatalf("version %s after %s, %v", now.GetResourceVersion(), stale.GetResourceVersion(), err)
	}
	_, err = reports.Update(t.Context(), stale, metav1.UpdateOptions{})
	conflict(t, "update of a stale version", err)
	is, err := reports.Get(t.Context(), c.node, metav1.GetOptions{})
	same(t, now, is, err)
}

func (c *conform) cordon(t *testing.T) {
	nodes := c.client.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), c.node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(value string, tainted bool) {
		t.Helper()
		if _, err := nodes.Patch(t.Context(), c.node, types.MergePatchType, patchWith(n.UID, "", `"spec":{"unschedulable":`+value+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		c.eventually(t, "the node's taint follows", func() bool {
			n, err := nodes.Get(t.Context(), c.node, metav1.GetOptions{})
			return err == nil && tainted == slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
			})
		})
	}
	set("true", true)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waiting"}, Spec: c.spec(corev1.RestartPolicyAlways)}
	if _, err := c.pods().Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p = c.await(t, "the scheduler refuses it", refused)
	if p.Spec.NodeName != "" {
		t.Errorf("bound to %s", p.Spec.NodeName)
	}
	set("null", false)
	c.await(t, "it runs", func(p *corev1.Pod) bool { return p.Spec.NodeName == c.node && p.Status.Phase == corev1.PodRunning })
}

func (c *conform) ownerGone(t *testing.T) {
	j := c.job(t, "training")
	first := c.await(t, "the pod runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	background := metav1.DeletePropagationBackground
	if err := c.client.BatchV1().Jobs(c.ns).Delete(t.Context(), j.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &j.UID}, PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	c.gone(t, first)
	c.eventually(t, "no pod is left", func() bool {
		list, err := c.pods().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}

func (c *conform) newTemplate(t *testing.T) {
	d := c.deployment(t, "inference", 1)
	first := c.await(t, "the pod runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if _, err := c.client.AppsV1().Deployments(c.ns).Patch(t.Context(), d.Name, types.MergePatchType, patchWith(d.UID, "", `"spec":{"template":{"spec":{"nodeSelector":{"nvidia.com/gpu.present":"true"}}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.gone(t, first)
	c.await(t, "another runs", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning && p.Spec.NodeSelector["nvidia.com/gpu.present"] == "true"
	})
}
