package cluster

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// Finish sorts everything, keeps the newest of objects met twice, and looks up
// what is derived.
func (s *State) Finish() {
	for i := range kinds {
		k := &kinds[i]
		objs := k.Objects(s)
		slices.SortStableFunc(objs, compareNames)
		list := reflect.ValueOf(k.list(s)).Elem()
		list.Set(list.Slice(0, 0))
		for j, o := range objs {
			if j > 0 && compareNames(o, objs[j-1]) == 0 {
				last := list.Index(list.Len() - 1)
				if supersedes(o, last.Interface().(Object)) {
					last.Set(reflect.ValueOf(o))
				}
				continue
			}
			k.Add(s, o)
		}
	}
	s.finishOwners()
	s.Geometries = make(map[string]*nodeprobe.NodeGeometry, len(s.reports))
	for _, g := range s.reports {
		s.Geometries[g.Name] = g
	}
	s.dropStrayEvents()
}

// supersedes says whether the later of two versions of an object stands: unless
// its resourceVersion says that it is the older one.
func supersedes(later, earlier Object) bool {
	a, b := later.GetResourceVersion(), earlier.GetResourceVersion()
	if a == "" || b == "" {
		return true
	}
	return CompareVersions(a, b) >= 0
}

// CompareVersions orders resourceVersions: numbers that grow (KEP-5504), a longer
// one is larger.
func CompareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
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
