package view

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// GangKind is one way in which a pod names the group that it is scheduled with, all
// or none.
type GangKind struct {
	Name func(*corev1.Pod) string
	// Groups are the objects that say how many pods make a gang; nil where none is
	// read (Kueue's plain pod groups, LeaderWorkerSet, Koordinator).
	Groups func(*cluster.State) []*unstructured.Unstructured
	API    string
	Min    []string // the field of the least number
}

// gangKinds, in the order in which they are asked: a pod that several schedulers
// could read is the group's that its own fields name.
var gangKinds = []*GangKind{
	{Name: schedulingGroup, Groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.Kubernetes }, API: "scheduling.k8s.io", Min: []string{"spec", "schedulingPolicy", "gang", "minCount"}},
	pluginsGang("scheduling.x-k8s.io/pod-group"), pluginsGang("pod-group.scheduling.sigs.k8s.io"), // the former key
	{Name: label("kueue.x-k8s.io/pod-group-name")},
	{Name: label("leaderworkerset.sigs.k8s.io/group-key")},
	volcanoGang("scheduling.k8s.io/group-name"), volcanoGang("scheduling.volcano.sh/group-name"),
	{Name: annotation("pod-group-name"), Groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.KAI }, API: "scheduling.run.ai", Min: minMember},
	{Name: annotation("gang.scheduling.koordinator.sh/name")},
}

var minMember = []string{"spec", "minMember"}

func pluginsGang(key string) *GangKind {
	return &GangKind{Name: label(key), Groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.Plugins }, API: "scheduling.x-k8s.io", Min: minMember}
}

func volcanoGang(key string) *GangKind {
	return &GangKind{Name: annotation(key), Groups: func(s *cluster.State) []*unstructured.Unstructured { return s.PodGroups.Volcano }, API: "scheduling.volcano.sh", Min: minMember}
}

func schedulingGroup(p *corev1.Pod) string {
	if g := p.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

func label(key string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string { return p.Labels[key] }
}

func annotation(key string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string { return p.Annotations[key] }
}

// Membership is the name of a pod's group and in whose terms it is; empty for a pod
// that stands alone.
func Membership(p *corev1.Pod) (*GangKind, string) {
	for _, k := range gangKinds {
		if name := k.Name(p); name != "" {
			return k, name
		}
	}
	return nil, ""
}

// GangOf names the group of a pod with its namespace; empty for one that stands alone.
func GangOf(p *corev1.Pod) string {
	if _, name := Membership(p); name != "" {
		return p.Namespace + "/" + name
	}
	return ""
}

// AsInt reads a number as JSON decoders give it.
func AsInt(v any) int {
	switch n := v.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// ShapeOf is what a pod asks of nodes, comparable.
func ShapeOf(p *corev1.Pod) string {
	wants := PodRequests(p)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		q := wants[name]
		parts = append(parts, string(name)+"="+q.String())
	}
	var affinity *corev1.NodeAffinity
	if p.Spec.Affinity != nil {
		affinity = p.Spec.Affinity.NodeAffinity
	}
	return strings.Join(parts, ",") + string(diagnosis.MustJSON([]any{p.Spec.NodeSelector, affinity, p.Spec.Tolerations, p.Spec.ResourceClaims}))
}
