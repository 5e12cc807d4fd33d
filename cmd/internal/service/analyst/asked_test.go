package analyst

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/kubectl"
)

func asking(namespace, name, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Annotations: map[string]string{kubectl.Why: value}}}
}

var aPod = corev1.SchemeGroupVersion.WithKind("Pod")

// Namespaces take turns, of one object the newest question counts, and one that was answered
// or taken back is none.
func TestQuestionsTakeTurns(t *testing.T) {
	a := NewAsked()
	for i := range 3 {
		a.See(aPod, asking("many", fmt.Sprint(i), "1"))
	}
	a.See(aPod, asking("few", "0", "1"))
	a.See(aPod, asking("few", "0", "2"))
	answered := asking("few", "1", "1")
	a.See(aPod, answered)
	answered.Annotations[kubectl.Answered] = "1"
	a.See(aPod, answered)
	var got []string
	for {
		q, ok := a.Next()
		if !ok {
			break
		}
		got = append(got, q.About.Namespace+"/"+q.About.Name+"="+q.Value)
	}
	if diff := cmp.Diff([]string{"few/0=2", "many/0=1", "many/1=1", "many/2=1"}, got); diff != "" {
		t.Error(diff)
	}
	a.See(aPod, asking("few", "0", "3"))
	q, _ := a.Next()
	a.See(aPod, asking("few", "0", "4"))
	q.Tries++
	a.Again(q)
	if q, ok := a.Next(); !ok || q.Value != "4" || q.Tries != 0 {
		t.Errorf("%+v", q)
	}
	a.See(aPod, asking("few", "0", "5"))
	a.See(aPod, asking("many", "0", "5"))
	if q, _ := a.Next(); q.About.Namespace != "many" {
		t.Errorf("%s has its turn twice", q.About.Namespace)
	}
}

// What does not wait is said to, by what is known of its pods; what is not read is unknown.
func TestWhatDoesNotWait(t *testing.T) {
	runs := asking("ml", "web-0", "1")
	runs.Spec.NodeName, runs.Status.Phase = "gpu-1", corev1.PodRunning
	runs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)}}
	done := asking("ml", "web-1", "1")
	done.Status.Phase, done.OwnerReferences = corev1.PodSucceeded, runs.OwnerReferences
	st := &cluster.State{Now: time.Now(), Live: true, Pods: []*corev1.Pod{runs, done}, Unread: map[string]string{}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web", Annotations: map[string]string{kubectl.Why: "1"}}}
	other := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "other", Annotations: map[string]string{kubectl.Why: "1"}}}
	ask := func(kind string, o cluster.Object) string {
		t.Helper()
		gvk := aPod
		if kind != "Pod" {
			gvk = appsv1.SchemeGroupVersion.WithKind(kind)
		}
		q, _ := kubectl.Asked(gvk, o)
		says, waits, err := Answer(t.Context(), st, rca.Options{}, q)
		if err != nil || waits {
			t.Fatal(waits, err)
		}
		return says.Headline
	}
	for want, got := range map[string]string{
		"pod/web-0 does not wait: it is Running on gpu-1":                           ask("Pod", runs),
		"pod/web-1 does not wait: it is Succeeded, and no scheduler has refused it": ask("Pod", done),
		"statefulset/web does not wait: of its pods are 1 Running, 1 Succeeded":     ask("StatefulSet", set),
		"statefulset/other does not wait: it has no pods":                           ask("StatefulSet", other),
		"pod/gone does not wait: it is gone":                                        ask("Pod", asking("ml", "gone", "1")),
	} {
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	st.Unread["Pod"] = "forbidden"
	if got := ask("Pod", runs); got != "pod/web-0 waits or not, which is not known: pods are unread (forbidden)" {
		t.Error(got)
	}
}
