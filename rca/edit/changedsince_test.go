package edit_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/rcatest"
)

// A StatefulSet that asks for as little as is wanted by now, and waits in order for a pod of the template before, needs that
// pod deleted and no patch. Where it would replace the pod itself, or is what the pod was made from, it is patched.
func TestAStatefulSetThatWasChangedSince(t *testing.T) {
	const template = ", template: {spec: {containers: [{name: c, resources: {requests: {memory: 1Gi, cpu: 1}}}]}}}, status: {updateRevision: w-2}"
	const deleted = "kubectl -n a delete pod w-0  # the StatefulSet waits for it and does not replace it"
	for name, k := range map[string]struct{ spec, revision, title, command string }{
		"changed":           {"replicas: 3" + template, "w-1", "delete pod w-0: statefulset/w has been changed since it was made, and waits for it; it asks for 1Gi memory, no example.com/disk by now", deleted},
		"what it is":        {"replicas: 3" + template, "w-2", "ask less in statefulset/w", ""},
		"nobody says which": {"replicas: 3" + template, "", "ask less in statefulset/w", ""},
		"in parallel":       {"replicas: 3, podManagementPolicy: Parallel" + template, "w-1", "ask less in statefulset/w", ""},
		"asks more still":   {strings.Replace("replicas: 3"+template, "1Gi", "9Gi", 1), "w-1", "ask less in statefulset/w", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := staffed(t, "StatefulSet", "{spec: {"+k.spec+"}", "w-0")
			w.Wait.Labels = map[string]string{appsv1.StatefulSetRevisionLabel: k.revision}
			w.Wait.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: rcatest.List("memory", "100Gi", "cpu", "1", "example.com/disk", "1")}}, {Name: "put in"}}
			ch := edit.New(w.Case(t, "StatefulSet")).ChangeRequest(diagnosis.HostResourcesShort, "ask less", edit.AskAtMost(rcatest.List("memory", "4Gi")))
			pod := w.Wait.DeepCopy()
			ch.Pod(pod)
			asks := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory]
			want := map[bool]string{true: "1Gi", false: "4Gi"}[k.command != ""]
			if last := ch.Commands[len(ch.Commands)-1]; ch.Title != k.title || k.command != "" && (len(ch.Commands) > 1 || last != k.command) || asks.String() != want {
				t.Errorf("%q, asks %s, want %s: %q", ch.Title, asks.String(), want, ch.Commands)
			}
		})
	}
}
