package cluster

import (
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// finish sorts everything, keeps the newest of objects met twice, and looks up
// what is derived.
func (s *State) finish() {
	for i := range kinds {
		k := &kinds[i]
		objs := k.objects(s)
		slices.SortStableFunc(objs, compareNames)
		list := reflect.ValueOf(k.list(s)).Elem()
		list.Set(list.Slice(0, 0))
		for j, o := range objs {
			if j+1 < len(objs) && compareNames(o, objs[j+1]) == 0 {
				continue // the later one stands
			}
			k.add(s, o)
		}
	}
	s.Geometries = make(map[string]*nodeprobe.NodeGeometry, len(s.reports))
	for _, g := range s.reports {
		s.Geometries[g.Name] = g
	}
	s.dropStrayEvents()
}

func compareNames(a, b Object) int {
	if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
		return c
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// dropStrayEvents forgets events about pods that do not exist.
func (s *State) dropStrayEvents() {
	exists := make(map[string]bool, len(s.Pods))
	for _, p := range s.Pods {
		exists[p.Namespace+"/"+p.Name] = true
	}
	s.Events = slices.DeleteFunc(s.Events, func(e *corev1.Event) bool {
		return e.InvolvedObject.Kind == "Pod" && !exists[e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name]
	})
}

// newest is the "now" of a dump: the newest of its creation, condition, event
// and report times.
func (s *State) newest() time.Time {
	var now time.Time
	note := func(t metav1.Time) {
		if t.After(now) {
			now = t.Time
		}
	}
	for i := range kinds {
		for _, o := range kinds[i].objects(s) {
			note(o.GetCreationTimestamp())
		}
	}
	for _, n := range s.Nodes {
		for _, c := range n.Status.Conditions {
			note(c.LastTransitionTime)
			note(c.LastHeartbeatTime)
		}
	}
	for _, p := range s.Pods {
		for _, c := range p.Status.Conditions {
			note(c.LastTransitionTime)
			note(c.LastProbeTime)
		}
	}
	for _, e := range s.Events {
		note(metav1.Time{Time: e.EventTime.Time})
		note(e.LastTimestamp)
		if e.Series != nil {
			note(metav1.Time{Time: e.Series.LastObservedTime.Time})
		}
	}
	for _, g := range s.reports {
		note(g.Report.ObservedAt)
	}
	return now
}
