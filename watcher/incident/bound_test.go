package incident

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Whatever a tenant writes into pods, their incident stays below MaxMessage, has the id
// of the whole, and counts what it left out.
func TestMessageIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		char := rapid.SampledFrom([]string{"a", "<", "\x00", "\"", "é", "\xff", "\u2028", "😀"})
		text := func(label string) string {
			return strings.Repeat(char.Draw(t, label), rapid.SampledFrom([]int{0, 1, 100, 318, 5000}).Draw(t, label+" length"))
		}
		requests := corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("1"), "cpu": resource.MustParse("2")}
		for n := range rapid.SampledFrom([]int{0, 1, 62, 63, 5000}).Draw(t, "resources") {
			requests[corev1.ResourceName(fmt.Sprintf("a.example/%s%d", strings.Repeat("x", 300), n))] = resource.MustParse("123456789012345678")
		}
		var pods []*corev1.Pod
		kind, owner, namespace := text("kind"), text("owner"), text("namespace")
		for n := range rapid.SampledFrom([]int{1, 30}).Draw(t, "pods") {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(n, text("name")), UID: types.UID(text("uid")), ResourceVersion: text("version"),
				OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}}}}
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: text("reason")}}
			pods = append(pods, p)
		}
		found := Group(pods, func(string, string, string) (metav1.Object, bool) { return nil, false })
		if len(found) != 1 {
			t.Fatalf("%d incidents", len(found))
		}
		i := found[0]
		for _, i := range []Incident{i, i.AsResolved()} {
			_, body, err := i.Message()
			if err != nil || len(body) >= MaxMessage {
				t.Fatalf("%d bytes, %v", len(body), err)
			}
			i = Incident{}
			if err := json.Unmarshal(body, &i); err != nil {
				t.Fatal(err)
			}
			if want := min(len(requests), maxRequests); len(i.Requests) != want || i.More != len(requests)-want {
				t.Fatalf("%d requests and %d more of %d", len(i.Requests), i.More, len(requests))
			}
			if i.Requests["nvidia.com/mig-1g.5gb"] != "1" || i.Requests["cpu"] != "2" {
				t.Fatal("what is read first is left out")
			}
		}
		if is := ID(Topmost(pods[0], func(string, string, string) (metav1.Object, bool) { return nil, false }), Requests(pods[0])); i.ID != is || i.Waiting != len(pods) {
			t.Fatalf("%s, %d wait; want %s, %d", i.ID, i.Waiting, is, len(pods))
		}
	})
}

// What fits is left as it is.
func TestCut(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"abcdef", "abcdef"}, {"abcdefg", "abc…"}, {"<<", "…"}, {"ééé", "ééé"}, {"éééé", "é…"}} {
		if got := cut(c[0], 8); got != c[1] {
			t.Errorf("cut(%q) = %q, want %q", c[0], got, c[1])
		}
	}
	if got := cut("abcdef", 3); got != "…" { // which no shorter text is
		t.Errorf("cut to nothing: %q", got)
	}
}
