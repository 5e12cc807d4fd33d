package acceptance

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

const (
	trialKind      = "trials.kubeflow.org"
	experimentKind = "experiments.kubeflow.org"
)

// tuning installs Katib's two kinds, and makes an Experiment with two Trials, each with a Job
// whose pod waits: there is no node.
func tuning(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	c := start(t, controlplane.Extras{})
	folder := t.TempDir()
	for plural, kind := range map[string]string{"trials": "Trial", "experiments": "Experiment"} {
		crd := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` + plural + `.kubeflow.org}, spec: {group: kubeflow.org, scope: Namespaced, names: {kind: ` + kind + `, plural: ` + plural + `},
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
		must(t, os.WriteFile(filepath.Join(folder, plural+".yaml"), []byte(crd), 0o600))
	}
	c.InstallCRDs(t, folder)
	c.WaitForServiceAccount(t, "default")
	made := func(plural, kind, name string, owner ...metav1.OwnerReference) metav1.OwnerReference {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{"parameter": "nobody-reads-this"}}}
		u.SetOwnerReferences(owner)
		got, err := c.Dynamic().Resource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1beta1", Resource: plural}).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{})
		must(t, err)
		return *metav1.NewControllerRef(got, schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1beta1", Kind: kind})
	}
	tune := made("experiments", "Experiment", "tune")
	for _, name := range []string{"one", "two"} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{made("trials", "Trial", name, tune)}}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}}}
		_, err := c.Client().BatchV1().Jobs("default").Create(t.Context(), j, metav1.CreateOptions{})
		must(t, err)
	}
	controlplane.Eventually(t, 60*time.Second, "both pods wait", func() (bool, string) {
		pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 2 && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return len(p.Status.Conditions) == 0 }), "not yet"
	})
	return c
}

// waits is what of a diagnosis tells whose pods wait.
type waits struct {
	Workload incident.Ref
	Waiting  int
	Unread   []string // about owners
}

func waitsIn(t *testing.T, out string) (all []waits, ids []string) {
	t.Helper()
	var list diagnosis.List
	must(t, json.Unmarshal([]byte(out), &list))
	for _, d := range list.Items {
		w := waits{Workload: d.Workload, Waiting: d.Pods.Waiting}
		for _, u := range d.Unread {
			if strings.Contains(u, "whether something owns") {
				w.Unread = append(w.Unread, u)
			}
		}
		all, ids = append(all, w), append(ids, d.Incident)
	}
	slices.Sort(ids)
	slices.SortFunc(all, func(a, b waits) int { return strings.Compare(a.Workload.Name, b.Workload.Name) })
	return all, ids
}

// Kinds of owners that are named are walked through, live and in the dump of it, by who watches
// and who diagnoses alike: two trials of an experiment are one incident. Where one is not named,
// not installed or may not be read, the walk ends there, and says why.
func TestOwnerKindsLive(t *testing.T) {
	needsControlPlane(t)
	c := tuning(t)
	ref := func(kind, name string) incident.Ref {
		return incident.Ref{Kind: kind + ".kubeflow.org", Namespace: "default", Name: name}
	}
	trials := func(why string) []waits {
		var out []waits
		for _, name := range []string{"one", "two"} {
			out = append(out, waits{ref("Trial", name), 1, []string{"Trial.kubeflow.org: " + why + "; whether something owns " + name + ", and what, is not known"}})
		}
		return out
	}
	whole := []waits{{ref("Experiment", "tune"), 2, nil}}
	c.Allow(t, "reader", "pods", "nodes", "events", "namespaces", "jobs.batch", experimentKind)
	admin, reader := c.Kubeconfig(), c.KubeconfigFor(t, "reader")
	for name, tc := range map[string]struct {
		kubeconfig string
		kinds      string
		want       []waits
	}{
		"both":                    {admin, trialKind + "," + experimentKind, whole},
		"and one not installed":   {admin, trialKind + ",workflows.argoproj.io," + experimentKind, whole},
		"none":                    {admin, "", trials("owners of this kind are not read")},
		"the lower one":           {admin, trialKind, []waits{{ref("Experiment", "tune"), 2, []string{"Experiment.kubeflow.org: owners of this kind are not read; whether something owns tune, and what, is not known"}}}},
		"the upper one":           {admin, experimentKind, trials("owners of this kind are not read")},
		"not installed":           {admin, "trials.example.org", trials("owners of this kind are not read")},
		"that may not be read":    {reader, trialKind + "," + experimentKind, trials("the right to list trials.kubeflow.org is missing")},
		"another kind may not be": {reader, experimentKind, trials("owners of this kind are not read")},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-A", "--kubeconfig", tc.kubeconfig}
			if tc.kinds != "" {
				args = append(args, "--owner-kinds", tc.kinds)
			}
			code, out, errs := call(t, append([]string{"why", "-o", "json"}, args...)...)
			if code != exitDone {
				t.Fatalf("exit %d: %s", code, errs)
			}
			got, ids := waitsIn(t, out)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			code, dump, errs := call(t, append([]string{"dump", "-o", "yaml"}, args...)...)
			if code != exitDone || strings.Contains(dump, "nobody-reads-this") {
				t.Fatalf("exit %d: %s", code, errs)
			}
			file := filepath.Join(t.TempDir(), "dump.yaml")
			must(t, os.WriteFile(file, []byte(dump), 0o600))
			_, out, _ = call(t, "why", "-o", "json", "-A", "-f", file)
			if again, of := waitsIn(t, out); len(again) != len(got) || !slices.Equal(of, ids) || (len(again[0].Unread) == 0) != (len(got[0].Unread) == 0) {
				t.Errorf("in its dump: %v %v, live %v %v", again, of, got, ids)
			}
		})
	}
	t.Run("watched", func(t *testing.T) {
		named, err := owners.Names([]string{trialKind, experimentKind})
		must(t, err)
		read, err := owners.New(c.Config(), named)
		must(t, err)
		heard := make(chan incident.Incident, 10)
		w, err := watcher.New(watcher.Options{Client: c.Client(), Owners: read, Sweep: time.Hour, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
			Publish: func(_ context.Context, i incident.Incident) error { heard <- i; return nil }})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		i := <-heard
		cancel()
		must(t, <-ended)
		_, out, _ := call(t, "why", "-o", "json", "-A", "--kubeconfig", admin, "--owner-kinds", trialKind+","+experimentKind)
		if _, ids := waitsIn(t, out); i.Workload != whole[0].Workload || i.Waiting != 2 || !slices.Equal(ids, []string{i.ID}) {
			t.Errorf("watched %+v, diagnosed %q", i, ids)
		}
	})
	t.Run("asked for", func(t *testing.T) {
		kinds := []string{"--kubeconfig", admin, "--owner-kinds", trialKind, "--owner-kinds", experimentKind}
		for _, of := range []string{"experiment/tune", "experiments.kubeflow.org/tune", "trial/one", "job/two", "tune"} {
			if code, out, errs := call(t, append([]string{"why", "-n", "default", of}, kinds...)...); code != exitDone || !strings.Contains(out, "default/tune (Experiment.") {
				t.Errorf("%s: exit %d: %s%s", of, code, out, errs)
			}
		}
		if code, _, errs := call(t, append([]string{"why", "-n", "default", "experiment.example.org/tune"}, kinds...)...); code == exitDone || !strings.Contains(errs, "is not there") {
			t.Errorf("of another API: exit %d: %s", code, errs)
		}
	})
}

// What names no kind is refused by name, with what to write, before anything is read.
func TestOwnerKindsThatAreNone(t *testing.T) {
	const write = `"Trial.kubeflow.org" names no kind: write its plural, a dot and its group, without a version, as in workflows.argoproj.io`
	if code, _, errs := call(t, "why", "--owner-kinds", "Trial.kubeflow.org", "--server", "https://127.0.0.1:1"); code != exitUsage || !strings.Contains(errs, "--owner-kinds: "+write) {
		t.Errorf("exit %d: %s", code, errs)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, []byte("rca: {ownerKinds: [trials.kubeflow.org, Trial.kubeflow.org, '*.argoproj.io']}\n"), 0o600))
	code, _, errs := call(t, "run", "--config", file)
	if code != exitError || !strings.Contains(errs, "rca.ownerKinds: "+write) || !strings.Contains(errs, `"*.argoproj.io" has a wildcard`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}
