package acceptance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// crds are of APIs whose controllers do not run beside the control plane.
const crds = "../../../testdata/crds"

// scheduledHere says whether the control plane's scheduler is the pod's.
func scheduledHere(p *corev1.Pod) bool {
	return p.Spec.SchedulerName == "" || p.Spec.SchedulerName == corev1.DefaultSchedulerName
}

// applies says whether what is applied could come to run: somebody makes the pods, and somebody
// schedules them, or is asked to.
func (r *replay) applies(d diagnosis.Diagnosis) bool {
	if slices.ContainsFunc(admission.Refusals(r.st), func(f incident.Refusal) bool { return !incident.OwnKind(f.Owner.Kind) }) {
		return false // its operator does not run here
	}
	return d.Causes[0].ID == diagnosis.SchedulerMissing || !slices.ContainsFunc(r.st.Pods, func(p *corev1.Pod) bool { return !scheduledHere(p) })
}

// customs makes the scenario's objects of APIs that only some clusters have. Kueue's
// Workloads are left out, for a controller would have made what stands behind them, and so
// are ClusterPolicies, for the mig-parted entries stand in a ConfigMap of one name here.
func (r *replay) customs(t *testing.T) {
	t.Helper()
	g, q := r.st.PodGroups, r.st.Queues
	for resource, objects := range map[string][]*unstructured.Unstructured{
		"podgroups": slices.Concat(g.Kubernetes, g.Plugins, g.Volcano, g.KAI), "queues": slices.Concat(q.Volcano, q.KAI),
		"localqueues": q.Local, "clusterqueues": q.Cluster, "resourceflavors": q.Flavors, "admissionchecks": q.Checks, "topologies": q.Topologies, "nvidiadrivers": r.st.NVIDIADrivers,
		"gpuclusters": r.st.GPUClusters, "nodepools": r.st.NodePools, "nodeclaims": r.st.NodeClaims, "ec2nodeclasses": r.st.NodeClasses.AWS, "nodeclasses": r.st.NodeClasses.AutoMode, "aksnodeclasses": r.st.NodeClasses.Azure, "gcenodeclasses": r.st.NodeClasses.Google, "noderesourcetopologies": r.st.NodeTopologies, "provisioningrequests": r.st.ProvisioningRequests,
	} {
		for _, o := range objects {
			r.custom(t, resource, o)
		}
	}
}

func (r *replay) custom(t *testing.T, resource string, from *unstructured.Unstructured) {
	t.Helper()
	gv, err := schema.ParseGroupVersion(from.GetAPIVersion())
	must(t, err)
	var client dynamic.ResourceInterface = r.c.Dynamic().Resource(gv.WithResource(resource))
	if ns := from.GetNamespace(); ns != "" {
		client = r.c.Dynamic().Resource(gv.WithResource(resource)).Namespace(ns)
	}
	o := strip(from.DeepCopy())
	owners := r.made(t, from)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"} {
		delete(o.Object["metadata"].(map[string]any), field)
	}
	o.SetOwnerReferences(owners)
	_, err = client.Create(t.Context(), o, metav1.CreateOptions{})
	must(t, err)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { must(t, client.Delete(ctx, o.GetName(), metav1.DeleteOptions{})) })
}

// made are the owners of an object as they were made here; the garbage collector takes who has
// none of those that it names.
func (r *replay) made(t *testing.T, from *unstructured.Unstructured) []metav1.OwnerReference {
	t.Helper()
	owner := metav1.GetControllerOf(from)
	if owner == nil || incident.OwnerKind(owner) != incident.KindOf(incident.VolcanoJob) {
		return nil
	}
	jobs := r.c.Dynamic().Resource(schema.GroupVersionResource{Group: incident.VolcanoJob.Group, Version: "v1alpha1", Resource: "jobs"})
	o, err := jobs.Namespace(from.GetNamespace()).Get(t.Context(), owner.Name, metav1.GetOptions{})
	must(t, err)
	owner.UID = o.GetUID()
	return []metav1.OwnerReference{*owner}
}

// jobs whose pods wait are made by their specs: the real controller makes the pods.
// It returns what those are called, by their names in the scenario.
func (r *replay) jobs(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, from := range r.st.Jobs {
		wait := r.waitingOf(from)
		if len(wait) == 0 {
			continue // one whose pods were refused is made elsewhere
		}
		o := strip(from.DeepCopy())
		o.Status, o.Spec.Selector = batchv1.JobStatus{}, nil // the API server makes one of the new uid
		for _, labels := range []map[string]string{o.Labels, o.Spec.Template.Labels} {
			maps.DeleteFunc(labels, func(k, _ string) bool {
				return strings.HasSuffix(k, "controller-uid") || strings.HasSuffix(k, "job-name")
			})
		}
		_, err := r.c.Client().BatchV1().Jobs(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
		controlplane.Eventually(t, 20*time.Second, "the pods of "+o.Name+" are there", func() (bool, string) {
			pods, err := r.c.Client().CoreV1().Pods(o.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + o.Name})
			if err != nil || len(pods.Items) != len(wait) {
				return false, fmt.Sprint(len(pods.Items), err)
			}
			for i, p := range wait {
				names[p.Name] = pods.Items[i].Name
			}
			return true, ""
		})
		for _, p := range wait {
			r.said(t, p, names[p.Name])
		}
	}
	return names
}

func (r *replay) waitingOf(j *batchv1.Job) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range r.st.Pods {
		if r.jobOf(p) == j {
			out = append(out, p)
		}
	}
	return out
}

// jobOf is the Job that makes a waiting pod; nil for any other pod.
func (r *replay) jobOf(p *corev1.Pod) *batchv1.Job {
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "Job" || p.Spec.NodeName != "" {
		return nil
	}
	for _, j := range r.st.Jobs {
		if j.Namespace == p.Namespace && j.Name == owner.Name {
			return j
		}
	}
	return nil
}

// said waits for the scheduler's word on a pod, and writes that of a scheduler that
// does not run here.
func (r *replay) said(t *testing.T, from *corev1.Pod, name string) {
	t.Helper()
	pods := r.c.Client().CoreV1().Pods(from.Namespace)
	reason, _, _ := incident.Waiting(from)
	controlplane.Eventually(t, 30*time.Second, "the scheduler speaks of "+name, func() (bool, string) {
		got, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		now, _, waits := incident.Waiting(got)
		if waits && now == reason {
			return true, ""
		}
		if !scheduledHere(from) {
			got.Status.Conditions = from.DeepCopy().Status.Conditions
			_, err = pods.UpdateStatus(t.Context(), got, metav1.UpdateOptions{})
		}
		return false, fmt.Sprint(now, err)
	})
	switch {
	case reason != "NoCondition" || len(from.Spec.SchedulingGates) > 0:
	case len(from.Spec.ResourceClaims) > 0:
		r.hadTime(t, "the claim controller", 30*time.Second)
	case !scheduledHere(from):
		r.hadTime(t, "scheduler "+from.Spec.SchedulerName, time.Minute)
	}
}

// events makes those that nobody here writes: of autoscalers and other schedulers.
// kubeletSays makes those of kubelets about devices.
func (r *replay) events(t *testing.T, names map[string]string) {
	t.Helper()
	for _, from := range r.st.Events {
		e := strip(from.DeepCopy())
		o := &e.InvolvedObject
		o.UID = "" // its object has another here
		if e.Source.Component == "" || e.Source.Component == corev1.DefaultSchedulerName || !slices.Contains([]string{"Pod", "PodGroup", "NodeClaim", "ConfigMap"}, o.Kind) || e.Type == "" || unprepared(e) {
			continue
		}
		if name := names[o.Name]; name != "" {
			o.Name = name
		}
		e.FirstTimestamp, e.LastTimestamp = metav1.NewTime(e.FirstTimestamp.Add(r.shift)), metav1.NewTime(e.LastTimestamp.Add(r.shift))
		client := r.c.Client().CoreV1().Events(e.Namespace)
		_, err := client.Create(t.Context(), e, metav1.CreateOptions{})
		must(t, err)
		ctx := context.WithoutCancel(t.Context())
		t.Cleanup(func() { must(t, client.Delete(ctx, e.Name, metav1.DeleteOptions{})) })
	}
}

// preemptions counts the pods that the scheduler has deleted so far.
func (r *replay) preemptions(t *testing.T) int {
	t.Helper()
	n := 0
	for _, e := range r.c.AuditEvents(t) {
		if e.Verb == "delete" && e.ObjectRef.Resource == "pods" && strings.HasPrefix(e.UserAgent, "kube-scheduler/") && e.ResponseStatus.Code == 200 {
			n++
		}
	}
	return n
}

// budgets are made after the pods they guard, and waited for until the real controller
// allows what the scenario does: of several that guard a pod it looks at one alone
// again when the pod changes.
func (r *replay) budgets(t *testing.T) {
	t.Helper()
	for _, from := range r.st.PDBs {
		p := strip(from.DeepCopy())
		p.Status = policyv1.PodDisruptionBudgetStatus{}
		_, err := r.c.Client().PolicyV1().PodDisruptionBudgets(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
		controlplane.Eventually(t, 20*time.Second, "budget "+from.Name+" is as in the scenario", func() (bool, string) {
			got, err := r.c.Client().PolicyV1().PodDisruptionBudgets(from.Namespace).Get(t.Context(), from.Name, metav1.GetOptions{})
			return err == nil && got.Status.ObservedGeneration == got.Generation && got.Status.DisruptionsAllowed == from.Status.DisruptionsAllowed, fmt.Sprintf("%+v, %v", got.Status, err)
		})
	}
}
