package deploy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/chart"
)

const (
	probe       = "unpend-probe" // the name of all that is the probe's, and of its namespace
	deployLabel = "nvidia.com/gpu.deploy.client"
)

func tier(n int) values { return values{"probe": values{"tier": n}} }

// everyProbe turns every option of the probe on.
func everyProbe() values {
	return values{
		"tier":             3,
		"namespace":        values{"name": "gpu-probes"},
		"image":            values{"repository": "registry.example.com:5000/nodeprobe", "digest": "sha256:" + strings.Repeat("1", 64), "pullPolicy": "Always"},
		"deployLabel":      "example.com/gpu",
		"nodeSelector":     values{"kubernetes.io/arch": "amd64"},
		"podAnnotations":   values{"nvidia.cdi.k8s.io/container.probe": "management.nvidia.com/gpu=all"},
		"runtimeClassName": "", "kubeletDir": "/data/kubelet", "priorityClassName": "system-node-critical",
		"resources":   values{"limits": values{"memory": "1Gi"}},
		"tolerations": []any{values{"operator": "Exists"}},
	}
}

func isProbes(o *unstructured.Unstructured) bool {
	return o.GetLabels()["app.kubernetes.io/name"] == probe
}

func probeOnly(t testing.TB, v values) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(objects(t, v), func(o *unstructured.Unstructured) bool { return !isProbes(o) })
}

// serviceOnly is what is neither the probe's nor the executor's, nor the notifier's.
func serviceOnly(t testing.TB, v values) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(objects(t, v), func(o *unstructured.Unstructured) bool {
		return isProbes(o) || isExecutors(o) || isKubectls(o) || isNotifiers(o)
	})
}

// S13: a probe that was taken over may do nothing that a probe does not.
func TestProbesRights(t *testing.T) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{"unpend.dev"}, Resources: []string{"nodegeometries"}, Verbs: []string{"get", "create", "update"}}}
	for name, v := range variants() {
		objs := probeOnly(t, v)
		if slices.Contains(kinds(objs), "Role") || slices.Contains(kinds(objs), "RoleBinding") {
			t.Errorf("%s: rights in a namespace", name)
		}
		if !slices.Contains(kinds(objs), "ClusterRole") {
			continue
		}
		role := one[rbacv1.ClusterRole](t, objs, "ClusterRole")
		if diff := cmp.Diff(want, role.Rules); diff != "" || role.AggregationRule != nil {
			t.Errorf("%s: %s", name, diff)
		}
		account := one[corev1.ServiceAccount](t, objs, "ServiceAccount")
		binding := one[rbacv1.ClusterRoleBinding](t, objs, "ClusterRoleBinding")
		if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name {
			t.Errorf("%s: %s, %s", name, binding.RoleRef.Name, diff)
		}
	}
}

func daemonSet(t testing.TB, v values) appsv1.DaemonSet {
	t.Helper()
	return one[appsv1.DaemonSet](t, probeOnly(t, v), "DaemonSet")
}

// What each tier may: these four, and nothing else of its node.
func TestTiers(t *testing.T) {
	base := []corev1.EnvVar{
		{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}, {Name: "NVIDIA_DRIVER_CAPABILITIES", Value: "utility"}}
	monitor := append(slices.Clone(base), corev1.EnvVar{Name: "NVIDIA_MIG_MONITOR_DEVICES", Value: "all"})
	directory := corev1.HostPathDirectory
	folder := []corev1.Volume{{Name: "pod-resources", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/pod-resources", Type: &directory}}}}
	mount := []corev1.VolumeMount{{Name: "pod-resources", MountPath: "/var/lib/kubelet/pod-resources", ReadOnly: true}}
	seccomp := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	nobody := &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), SeccompProfile: seccomp}
	root := &corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), SeccompProfile: seccomp}
	for n, want := range map[int]struct {
		pod     *corev1.PodSecurityContext
		add     []corev1.Capability
		env     []corev1.EnvVar
		volumes []corev1.Volume
		mounts  []corev1.VolumeMount
		enforce string
	}{
		1: {nobody, nil, base, nil, nil, "restricted"},
		2: {root, nil, base, folder, mount, "privileged"},
		3: {root, []corev1.Capability{"SYS_ADMIN"}, monitor, folder, mount, "privileged"},
	} {
		pod := daemonSet(t, tier(n)).Spec.Template.Spec
		wanted := corev1.PodSpec{
			ServiceAccountName: probe, AutomountServiceAccountToken: new(true), EnableServiceLinks: new(false),
			RuntimeClassName: new("nvidia"), NodeSelector: map[string]string{deployLabel: "true"},
			Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, {Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
			SecurityContext: want.pod, Volumes: want.volumes,
			Containers: []corev1.Container{{
				Name: "probe", Image: "ghcr.io/unpend/nodeprobe:" + chart.Load(t, "unpend").Metadata.AppVersion, ImagePullPolicy: corev1.PullIfNotPresent,
				Env: want.env, VolumeMounts: want.mounts, Resources: pod.Containers[0].Resources,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: want.add}},
			}},
		}
		if diff := cmp.Diff(wanted, pod); diff != "" {
			t.Errorf("tier %d: %s", n, diff)
		}
		ns := one[corev1.Namespace](t, probeOnly(t, tier(n)), "Namespace")
		if got := ns.Labels["pod-security.kubernetes.io/enforce"]; ns.Name != probe || got != want.enforce {
			t.Errorf("tier %d: namespace %s enforces %q", n, ns.Name, got)
		}
	}
	if diff := cmp.Diff(daemonSet(t, tier(1)), daemonSet(t, nil)); diff != "" {
		t.Errorf("by default not the smallest tier: %s", diff)
	}
}

// Helm's notes and the guide say what each tier sees, and what a tier too small leaves unknown.
func TestTiersAreTold(t *testing.T) {
	const gpus, whole, instances, lost = "which GPUs there are, their health, MIG mode and profiles", "which pod holds which whole GPU", "where every MIG instance lies and which pod holds it", "Where MIG instances lie is unknown that way"
	for name, tc := range map[string]struct {
		with values
		says []string
	}{
		"0": {values{"probe": values{"enabled": false}}, []string{"No probe runs, which is tier 0", lost}},
		"1": {nil, []string{"Its tier is 1: it sees " + gpus + ".", lost}},
		"2": {tier(2), []string{"Its tier is 2: it sees " + gpus, whole + ".", lost}},
		"3": {tier(3), []string{"Its tier is 3: it sees " + gpus, whole, instances + "."}},
	} {
		text, _ := notes(t, tc.with)
		for _, sentence := range []string{"No probe runs", gpus, whole, instances, lost} {
			wanted := slices.ContainsFunc(tc.says, func(says string) bool { return strings.Contains(says, sentence) })
			if strings.Contains(text, sentence) != wanted {
				t.Errorf("tier %s: it says %q is %v: %s", name, sentence, !wanted, text)
			}
		}
		for _, says := range tc.says {
			if !strings.Contains(text, says) {
				t.Errorf("tier %s: it does not say %q: %s", name, says, text)
			}
		}
	}
	guide, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if !strings.Contains(string(guide), fmt.Sprintf("\n| %d", n)) {
			t.Errorf("the guide does not tell of tier %d", n)
		}
	}
}

func TestProbesValues(t *testing.T) {
	set := daemonSet(t, everything())
	pod := set.Spec.Template.Spec
	if set.Namespace != "gpu-probes" || set.Name != "unpend-other-probe" || pod.ServiceAccountName != set.Name {
		t.Errorf("%s in %s as %s", set.Name, set.Namespace, pod.ServiceAccountName)
	}
	if want := "registry.example.com:5000/nodeprobe@sha256:" + strings.Repeat("1", 64); pod.Containers[0].Image != want {
		t.Errorf("image %s", pod.Containers[0].Image)
	}
	if diff := cmp.Diff(map[string]string{"example.com/gpu": "true", "kubernetes.io/arch": "amd64"}, pod.NodeSelector); diff != "" {
		t.Error(diff)
	}
	if pod.RuntimeClassName != nil || volume(t, pod, "pod-resources").HostPath.Path != "/data/kubelet/pod-resources" {
		t.Errorf("runtime class %v, volumes %v", pod.RuntimeClassName, pod.Volumes)
	}
	// The probe looks for the socket where it always is.
	if got := pod.Containers[0].VolumeMounts[0].MountPath; got != "/var/lib/kubelet/pod-resources" {
		t.Errorf("mounted at %s", got)
	}
	if pod.PriorityClassName != "system-node-critical" || pod.Containers[0].Resources.Limits.Memory().String() != "1Gi" || set.Spec.Template.Annotations["nvidia.cdi.k8s.io/container.probe"] == "" {
		t.Errorf("%+v", pod)
	}
	// A selector of nodes cannot switch the pausing off.
	if got := daemonSet(t, values{"probe": values{"nodeSelector": values{deployLabel: "false"}}}).Spec.Template.Spec.NodeSelector; got[deployLabel] != "true" {
		t.Errorf("node selector %v", got)
	}
}

// A tenth of the probes at a time: a report of one that restarts stays good.
func TestProbesUpdate(t *testing.T) {
	tenth := intstr.FromString("10%")
	want := appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &tenth}}
	if diff := cmp.Diff(want, daemonSet(t, nil).Spec.UpdateStrategy); diff != "" {
		t.Error(diff)
	}
}

func TestNothingComesInToTheProbe(t *testing.T) {
	got, set := one[networkingv1.NetworkPolicy](t, probeOnly(t, nil), "NetworkPolicy"), daemonSet(t, nil)
	want := networkingv1.NetworkPolicySpec{PodSelector: *set.Spec.Selector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}}
	got.Spec.Egress = nil // TestEgress
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Namespace != set.Namespace {
		t.Error(got.Namespace, diff)
	}
	if ports := set.Spec.Template.Spec.Containers[0].Ports; len(ports) > 0 {
		t.Errorf("ports %v", ports)
	}
	if off := kinds(probeOnly(t, values{"networkPolicy": values{"enabled": false}})); slices.Contains(off, "NetworkPolicy") {
		t.Error("rendered all the same")
	}
}

// A namespace has 63 characters at most, and none ends in a dash.
func TestProbesNamespaceFromALongOne(t *testing.T) {
	release := strings.Repeat("a", 56) + "-" + strings.Repeat("b", 6)
	files, err := chart.Release{Namespace: release}.Render(t)
	if err != nil {
		t.Fatal(err)
	}
	var ns corev1.Namespace
	if err := yaml.UnmarshalStrict([]byte(files["unpend/templates/probe/namespace.yaml"]), &ns); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("a", 56) + "-probe"; ns.Name != want {
		t.Errorf("namespace %s", ns.Name)
	}
}

// In one namespace, too, neither's selector takes the other's pods.
func TestSelectorsAreApart(t *testing.T) {
	for name, v := range variants() {
		if name == "least" || name == "standby" || name == "clicks" || v["layout"] == "separate" {
			continue
		}
		service, set := one[appsv1.Deployment](t, objects(t, v), "Deployment"), daemonSet(t, v)
		for _, c := range []struct {
			selector *metav1.LabelSelector
			own      map[string]string
			others   map[string]string
		}{{service.Spec.Selector, service.Spec.Template.Labels, set.Spec.Template.Labels}, {set.Spec.Selector, set.Spec.Template.Labels, service.Spec.Template.Labels}} {
			selector, err := metav1.LabelSelectorAsSelector(c.selector)
			if err != nil {
				t.Fatal(err)
			}
			if !selector.Matches(labels.Set(c.own)) || selector.Matches(labels.Set(c.others)) {
				t.Errorf("%s: %s", name, selector)
			}
		}
	}
}
