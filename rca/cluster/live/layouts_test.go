package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/cluster"
)

// migNodes is a cluster of nodes with the operator's label, each with a ConfigMap of
// its own, and what may be got of them: the names, or everything for nil.
func migNodes(nodes int, incomplete bool, may []string) *fake.Clientset {
	objs := []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-operator"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: fallbackMap}},
	}
	for i := range nodes {
		name := fmt.Sprintf("gpu-%03d", i)
		objs = append(objs, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/mig.config": "x"}}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: name + nodeMapSuffix}})
	}
	c := fake.NewClientset(objs...)
	c.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if may == nil || slices.Contains(may, a.(clienttesting.GetAction).GetName()) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
	})
	c.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{Incomplete: incomplete, ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectrulesreviews"}},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: may}}}}, nil
	})
	return c
}

// statusMap is the autoscaler's, whose answer these tests leave out.
var statusMap = types.NamespacedName{Namespace: autoscalerNamespace, Name: cluster.AutoscalerStatus}

// asked counts what was asked about the ConfigMaps of the operator's namespace.
func asked(c *fake.Clientset) map[string]int { return askedIn(c, "gpu-operator") }

func askedIn(c *fake.Clientset, namespace string) map[string]int {
	out := map[string]int{}
	for _, a := range c.Actions() {
		in := a.GetNamespace()
		if create, ok := a.(clienttesting.CreateAction); ok {
			if review, ok := create.GetObject().(*authorizationv1.SelfSubjectRulesReview); ok {
				in = review.Spec.Namespace
			}
		}
		if r := a.GetResource().Resource; in == namespace && (r == "configmaps" || r == "selfsubjectrulesreviews") {
			out[a.GetVerb()+" "+r]++
		}
	}
	return out
}

// What the cluster autoscaler says of itself is got by its name, where one may; that it is
// not there is no news, that it may not be read is.
func TestAutoscalerStatusIsRead(t *testing.T) {
	status := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalerNamespace, Name: cluster.AutoscalerStatus,
		Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-02", "other": "x"}}, Data: map[string]string{"status": "autoscalerStatus: Running"}}
	for name, c := range map[string]struct {
		may    []string
		there  bool
		asked  map[string]int
		found  bool
		unread string
	}{
		"there":       {nil, true, map[string]int{"create selfsubjectrulesreviews": 1, "get configmaps": 1}, true, ""},
		"not there":   {nil, false, map[string]int{"create selfsubjectrulesreviews": 1, "get configmaps": 1}, false, ""},
		"not allowed": {[]string{"another"}, true, map[string]int{"create selfsubjectrulesreviews": 1}, false, "the right to get configmaps in namespace kube-system is missing"},
	} {
		client := migNodes(0, false, c.may)
		if c.there {
			if err := client.Tracker().Add(status.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Follow(t.Context(), client, customs(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		f.State(t.Context())
		s := f.State(t.Context())
		f.Close()
		at := slices.IndexFunc(s.ConfigMaps, func(m *corev1.ConfigMap) bool { return m.Name == cluster.AutoscalerStatus })
		if (at >= 0) != c.found || s.Unread[cluster.AutoscalerStatusKind] != c.unread {
			t.Errorf("%s: found %v, unread %q", name, at >= 0, s.Unread[cluster.AutoscalerStatusKind])
		}
		if at >= 0 && (len(s.ConfigMaps[at].Annotations) != 1 || s.ConfigMaps[at].Data["status"] == "") {
			t.Errorf("%s: %+v", name, s.ConfigMaps[at])
		}
		if diff := cmp.Diff(c.asked, askedIn(client, autoscalerNamespace)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestConfigMapsAreAskedForOnce(t *testing.T) {
	const review, get = "create selfsubjectrulesreviews", "get configmaps"
	both := []string{fallbackMap, "gpu-150" + nodeMapSuffix}
	for _, c := range []struct {
		name       string
		nodes      int
		incomplete bool
		may        []string
		want       map[string]int
		found      int
		unread     string
	}{
		{"with the rights of the chart", 200, false, []string{fallbackMap}, map[string]int{review: 1, get: 1}, 1,
			"the right to get 200 of 201 configmaps in namespace gpu-operator is missing, gpu-000-mig-config among them"},
		{"with one of a node named", 200, false, both, map[string]int{review: 1, get: 2}, 2,
			"the right to get 199 of 201 configmaps in namespace gpu-operator is missing, gpu-000-mig-config among them"},
		{"where nobody can list the rules", 200, true, both, map[string]int{review: 1, get: 51}, 2,
			"of 200 configmaps of nodes in namespace gpu-operator only 50 are read; the right to get 49 of 201 configmaps in namespace gpu-operator is missing, gpu-000-mig-config among them"},
		{"with all rights", 20, false, nil, map[string]int{review: 1, get: 21}, 21, ""},
		{"with all rights to many", 60, false, nil, map[string]int{review: 1, get: 51}, 51, "of 60 configmaps of nodes in namespace gpu-operator only 50 are read"},
		{"with no right", 2, false, []string{"another"}, map[string]int{review: 1}, 0, "the right to get configmaps in namespace gpu-operator is missing"},
	} {
		client := migNodes(c.nodes, c.incomplete, c.may)
		f, err := Follow(t.Context(), client, customs(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		var s *cluster.State
		for range 20 {
			s = f.State(t.Context())
		}
		f.Close()
		if diff := cmp.Diff(c.want, asked(client)); diff != "" {
			t.Errorf("%s: requests of 20 diagnoses: %s", c.name, diff)
		}
		if len(s.ConfigMaps) != c.found || s.Unread["ConfigMap"] != c.unread {
			t.Errorf("%s: %d found, unread %q", c.name, len(s.ConfigMaps), s.Unread["ConfigMap"])
		}
	}
}

// The config that a device plugin mounts is got by its name, where one may: how it shares GPUs
// stands there. The script beside it is not, and what may not be read is said.
func TestPluginConfigIsRead(t *testing.T) {
	mounts := func(names ...string) (out []corev1.Volume) {
		for _, name := range names {
			out = append(out, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
		}
		return out
	}
	set := func(name, container string, volumes []corev1.Volume) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "nvdp", Name: name},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container}}, Volumes: volumes}}}}
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nvdp", Name: "shares"}, Data: map[string]string{"any": "sharing: {}"}}
	for name, c := range map[string]struct {
		may    []string
		asked  map[string]int
		found  bool
		unread string
	}{
		"there":       {nil, map[string]int{"create selfsubjectrulesreviews": 1, "get configmaps": 1}, true, ""},
		"not allowed": {[]string{"another"}, map[string]int{"create selfsubjectrulesreviews": 1}, false, "the right to get configmaps in namespace nvdp is missing (shares)"},
	} {
		client := migNodes(0, false, c.may)
		for _, o := range []runtime.Object{config.DeepCopy(), set("plugin", "nvidia-device-plugin-ctr", mounts("shares", "nvidia-device-plugin-entrypoint")), set("other", "exporter", mounts("private"))} {
			if err := client.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Follow(t.Context(), client, customs(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s := f.State(t.Context())
		f.Close()
		found := slices.ContainsFunc(s.ConfigMaps, func(m *corev1.ConfigMap) bool { return m.Name == "shares" && m.Data["any"] != "" })
		if found != c.found || s.Unread[cluster.PluginConfigKind] != c.unread {
			t.Errorf("%s: found %v, unread %q", name, found, s.Unread[cluster.PluginConfigKind])
		}
		if diff := cmp.Diff(c.asked, askedIn(client, "nvdp")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What was added is found, and what was taken away is missed, when an answer is old.
func TestAnswersGetOld(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	client := migNodes(1, false, nil)
	l := newLayouts(client, func() time.Time { return at })
	read := func() (names []string) {
		found, why, status := l.read(t.Context(), []string{"gpu-operator"}, []string{fallbackMap}, []string{"gpu-000" + nodeMapSuffix, "gpu-001" + nodeMapSuffix}, statusMap)
		if why != "" || len(status) > 0 {
			t.Error(why, status)
		}
		for _, cm := range found {
			names = append(names, cm.Name)
		}
		return names
	}
	before := []string{fallbackMap, "gpu-000" + nodeMapSuffix}
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Error(diff)
	}
	maps := client.CoreV1().ConfigMaps("gpu-operator")
	if err := maps.Delete(t.Context(), "gpu-000"+nodeMapSuffix, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gpu-001" + nodeMapSuffix}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	at = at.Add(fresh - time.Second)
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Errorf("an answer that still stands: %s", diff)
	}
	at = at.Add(time.Second)
	if diff := cmp.Diff([]string{fallbackMap, "gpu-001" + nodeMapSuffix}, read()); diff != "" {
		t.Errorf("after half a minute: %s", diff)
	}
	if diff := cmp.Diff(map[string]int{"create selfsubjectrulesreviews": 1, "create configmaps": 1, "delete configmaps": 1, "get configmaps": 6}, asked(client)); diff != "" {
		t.Error(diff)
	}
}

// An error is said, and asked about again after a while, not at each diagnosis. What was
// answered before stands meanwhile: that the API server cannot be asked now is counted, and
// changes nothing of what the cluster is.
func TestErrorsPass(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	client := migNodes(0, false, nil)
	broken := true
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken, nil, apierrors.NewInternalError(errors.New("etcd has no leader"))
	})
	l := newLayouts(client, func() time.Time { return at })
	failed := 0
	l.failed = func(error) { failed++ }
	for _, c := range []struct {
		after  time.Duration
		broken bool
		gets   int
		why    string
	}{
		{0, true, 1, "configmap gpu-operator/default-mig-parted-config: Internal error occurred: etcd has no leader"},
		{freshError - time.Second, false, 1, "configmap gpu-operator/default-mig-parted-config: Internal error occurred: etcd has no leader"},
		{time.Second, false, 2, ""},
		{fresh, true, 3, ""},
		{freshError, true, 4, ""},
		{freshError, false, 5, ""},
	} {
		at, broken = at.Add(c.after), c.broken
		found, why, status := l.read(t.Context(), []string{"gpu-operator"}, []string{fallbackMap}, nil, statusMap)
		if why != c.why || status[statusMap] != strings.ReplaceAll(c.why, "gpu-operator/"+fallbackMap, statusMap.String()) || (len(found) == 1) != (c.why == "") || asked(client)["get configmaps"] != c.gets {
			t.Errorf("after %s: %q, %d found, asked %v", c.after, why, len(found), asked(client))
		}
	}
	if failed != 6 {
		t.Errorf("%d failures are told of, want those of three times two maps", failed)
	}
}
