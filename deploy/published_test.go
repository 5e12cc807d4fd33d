package deploy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/chart"
)

// helm lint has nothing to say of the charts, in any installation, but that they have no icon.
func TestLint(t *testing.T) {
	installations := map[string]values{"mig-demo": {"kwok": values{"nodes": 1}}}
	for name, v := range variants() {
		installations["unpend "+name] = v
	}
	for name, v := range installations {
		of, _, _ := strings.Cut(name, " ")
		for _, m := range lint.All("charts/"+of, v, namespace, true).Messages {
			if m.Severity > support.InfoSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// What Artifact Hub is told of the chart is so: https://artifacthub.io/docs/topics/annotations/helm/
func TestArtifactHub(t *testing.T) {
	c := chart.Load(t, "unpend")
	const of = "artifacthub.io/"
	read := func(key string, into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict([]byte(c.Metadata.Annotations[of+key]), into); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	var images []struct{ Name, Image string }
	read("images", &images)
	service := podOf(t, objects(t, nil)).Spec.Containers[0].Image
	probes := daemonSet(t, nil).Spec.Template.Spec.Containers[0].Image
	if diff := cmp.Diff([]struct{ Name, Image string }{{"unpend", service}, {"nodeprobe", probes}}, images); diff != "" {
		t.Error(diff)
	}
	var said []struct{ Kind, Version, Name, DisplayName, Description string }
	read("crds", &said)
	var got, want []string
	for _, k := range said {
		got = append(got, k.Kind+" "+k.Version+" "+k.Name)
		if k.DisplayName == "" || k.Description == "" {
			t.Errorf("%s: nothing is said of it", k.Name)
		}
	}
	for _, f := range c.CRDObjects() {
		var crd struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				Names    struct{ Kind string }
				Versions []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal(f.File.Data, &crd); err != nil {
			t.Fatal(err)
		}
		want = append(want, crd.Spec.Names.Kind+" "+crd.Spec.Versions[0].Name+" "+crd.Metadata.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var changes []struct{ Kind, Description string }
	read("changes", &changes)
	for _, change := range changes {
		if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind) || change.Description == "" {
			t.Errorf("%+v", change)
		}
	}
	license, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Annotations[of+"license"] != "Apache-2.0" || !strings.Contains(string(license), "Apache License") || c.Metadata.Annotations[of+"containsSecurityUpdates"] == "" || len(changes) == 0 {
		t.Errorf("%v", c.Metadata.Annotations)
	}
	if _, err := os.Stat(filepath.Join("charts", "unpend", "values.schema.json")); err != nil {
		t.Error(err)
	}
}

// Every pod that stays has one NetworkPolicy, which denies what it does not name, in and out.
func TestEveryPodHasItsNetworkPolicy(t *testing.T) {
	for name, v := range variants() {
		if name == "least" { // it turns them off
			continue
		}
		objs := objects(t, v)
		var policies []networkingv1.NetworkPolicy
		for _, o := range objs {
			if o.GetKind() == "NetworkPolicy" {
				var p networkingv1.NetworkPolicy
				convert(t, o, &p)
				policies = append(policies, p)
			}
		}
		pods := podsOf(t, objs)
		if slices.Contains(kinds(objs), "DaemonSet") {
			pods = append(pods, probePodOf(daemonSet(t, v)))
		}
		for _, pod := range pods {
			if n := len(slices.DeleteFunc(slices.Clone(policies), func(p networkingv1.NetworkPolicy) bool { return !denies(t, p, pod) })); n != 1 {
				t.Errorf("%s: %d policies for %s in %s", name, n, pod.Name, pod.Namespace)
			}
		}
		if len(policies) != len(pods) {
			t.Errorf("%s: %d policies, %d pods", name, len(policies), len(pods))
		}
	}
}

func denies(t *testing.T, p networkingv1.NetworkPolicy, pod *corev1.Pod) bool {
	t.Helper()
	selects, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	return p.Namespace == pod.Namespace && selects.Matches(labels.Set(pod.Labels)) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
}
