package scaling

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func event(component, reason, kind, name, message string, last time.Time) *corev1.Event {
	return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "kube-system", Name: name}, Source: corev1.EventSource{Component: component}, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(last)}
}

// What a cloud refused Karpenter or the cluster autoscaler is read of their own Events alone,
// the last first.
func TestWhatCloudsRefused(t *testing.T) {
	const ice = "InsufficientCapacityError"
	st := &cluster.State{Events: []*corev1.Event{
		event("karpenter", ice, "NodeClaim", "gpu-a-x7b2k", "refused\n  with  UnfulfillableCapacity", noon.Add(-time.Hour)),
		event("eks-auto-mode/compute", ice, "NodeClaim", "gpu-b-abcde", "b", noon),
		event("karpenter", ice, "NodeClaim", "alone", "a", noon),
		event("karpenter", "Registered", "NodeClaim", "gpu-c-abcde", "c", noon),
		event("other", ice, "NodeClaim", "gpu-d-abcde", "d", noon),
		event("karpenter", ice, "Pod", "gpu-e-abcde", "e", noon),
		event(ClusterAutoscaler, "ScaleUpFailed", "ConfigMap", "st", "due to  OutOfResourcesErrorClass.QUOTA_EXCEEDED;", noon.Add(-time.Hour)),
		event(ClusterAutoscaler, "ScaleUpTimedOut", "ConfigMap", "st", "late", noon),
		event(ClusterAutoscaler, "FailedToScaleUpGroup", "ConfigMap", "st", "early", noon),
		event(ClusterAutoscaler, "ScaledUpGroup", "ConfigMap", "st", "grown", noon),
		event("other", "ScaleUpFailed", "ConfigMap", "st", "other", noon),
		event(ClusterAutoscaler, "ScaleUpFailed", "Pod", "st", "pod", noon),
	}}
	var got []string
	o := Read(st)
	for _, r := range o.Refused {
		got = append(got, fmt.Sprintf("%s of %q at %s: %s [%s]", r.Claim, r.Pool, r.At.Format("15:04"), r.Text, Names(r.Codes)))
	}
	for _, f := range o.Failures {
		got = append(got, fmt.Sprintf("%s of %s at %s: %s [%s]", f.Reason, f.Ref, f.At.Format("15:04"), f.Text, Names(f.Codes)))
	}
	want := []string{
		`alone of "" at 12:00: a []`,
		`gpu-b-abcde of "gpu-b" at 12:00: b []`,
		`gpu-a-x7b2k of "gpu-a" at 11:00: refused with UnfulfillableCapacity [UnfulfillableCapacity]`,
		`FailedToScaleUpGroup of ConfigMap/kube-system/st at 12:00: early []`,
		`ScaleUpTimedOut of ConfigMap/kube-system/st at 12:00: late []`,
		`ScaleUpFailed of ConfigMap/kube-system/st at 11:00: due to OutOfResourcesErrorClass.QUOTA_EXCEEDED; [QUOTA_EXCEEDED]`,
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func object(name string, fields map[string]any) *unstructured.Unstructured {
	fields["metadata"] = map[string]any{"name": name}
	return &unstructured.Unstructured{Object: fields}
}

// Pools, claims and groups are found by name; what is not there is nil. Of ConfigMaps that look
// like a status, the autoscaler's own is read.
func TestFoundByName(t *testing.T) {
	status := func(name, group string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"status": "autoscalerStatus: Running\nnodeGroups: [{name: a/b/" + group + "}]\n"}}
	}
	st := &cluster.State{NodePools: []*unstructured.Unstructured{object("p", map[string]any{}), object("q", map[string]any{})},
		NodeClaims: []*unstructured.Unstructured{object("none", map[string]any{}), object("k", map[string]any{"status": map[string]any{"nodeName": "n"}})},
		ConfigMaps: []*corev1.ConfigMap{status(cluster.AutoscalerStatus, "gpu"), status("copy-of-status", "other")}}
	o := Read(st)
	if o.Pool("q").Name != "q" || o.Pool("p").Name != "p" || o.Pool("x") != nil {
		t.Errorf("pools: %+v", o.Pools)
	}
	if o.Claim("k").Name != "k" || o.Claim("none").Name != "none" || o.Claim("x") != nil || o.ClaimOf("n").Name != "k" || o.ClaimOf("x") != nil || o.ClaimOf("") != nil {
		t.Errorf("claims: %+v", o.Claims)
	}
	if g := o.Group("a/b/gpu"); g == nil || g != o.Group("gpu") || o.Group("b/gpu") != nil || o.Group("other") != nil || o.Status.Ref != "ConfigMap/ns/"+cluster.AutoscalerStatus {
		t.Errorf("groups: %+v", o.Status)
	}
	if Read(&cluster.State{}).Group("gpu") != nil {
		t.Error("a group without a status")
	}
}

// An Event was last observed when its series says so, or it itself, in the old fields or the
// new; and first, when the earliest of them says so.
func TestTimesOfEvents(t *testing.T) {
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	for name, k := range map[string]struct {
		event       corev1.Event
		begun, seen time.Time
	}{
		"of a series":      {corev1.Event{EventTime: metav1.NewMicroTime(at(1)), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(9))}}, at(1), at(9)},
		"of the new kind":  {corev1.Event{EventTime: metav1.NewMicroTime(at(1))}, at(1), at(1)},
		"of the old kind":  {corev1.Event{FirstTimestamp: metav1.NewTime(at(2)), LastTimestamp: metav1.NewTime(at(8))}, at(2), at(8)},
		"of both":          {corev1.Event{EventTime: metav1.NewMicroTime(at(3)), LastTimestamp: metav1.NewTime(at(8)), FirstTimestamp: metav1.NewTime(at(2))}, at(2), at(3)},
		"that only exists": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(4))}}, at(4), at(4)},
		"with one end":     {corev1.Event{LastTimestamp: metav1.NewTime(at(8))}, at(8), at(8)},
	} {
		if begun, seen := Begun(&k.event), Seen(&k.event); !begun.Equal(k.begun) || !seen.Equal(k.seen) {
			t.Errorf("%s: from %s to %s", name, begun, seen)
		}
	}
}

// Karpenter and Volcano share reasons: who wrote an Event is in either of two fields.
func TestWhoseAnEventIs(t *testing.T) {
	for want, e := range map[bool][]corev1.Event{
		true:  {{ReportingController: "karpenter"}, {Source: corev1.EventSource{Component: "karpenter"}}, {ReportingController: "x", Source: corev1.EventSource{Component: "karpenter"}}, {ReportingController: "eks-auto-mode/compute"}},
		false: {{}, {ReportingController: "volcano", Source: corev1.EventSource{Component: "volcano"}}},
	} {
		for i := range e {
			if FromKarpenter(&e[i]) != want {
				t.Errorf("%+v: %v", e[i], !want)
			}
		}
	}
}

// What was grown and where a pod is expected stands in the words of an Event, and nothing else
// does.
func TestWhatAutoscalersPromise(t *testing.T) {
	if got := fmt.Sprint(Grown("pod triggered scale-up: [{https://c/zones/z/grp 0->2 (max: 4)} {eks-gpu 1->2 (max: 3)}]"), Grown("pod didn't trigger scale-up: ")); got != "[https://c/zones/z/grp eks-gpu] []" {
		t.Error(got)
	}
	claims, nodes := Nominated("Pod should schedule on: nodeclaim/gpu-x7b2k, node/ip-10-0-0-1.ec2.internal")
	if got := fmt.Sprint(claims, nodes); got != "[gpu-x7b2k] [ip-10-0-0-1.ec2.internal]" {
		t.Error(got)
	}
	if claims, nodes = Nominated("Pod should schedule on: node/n"); len(claims) != 0 || fmt.Sprint(nodes) != "[n]" {
		t.Error(claims, nodes)
	}
}
