package watcher

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// informer is one that is not run: it has what it was given, and has or has not listed it all.
type informer struct {
	cache.SharedIndexInformer
	listed bool
}

func (i informer) HasSynced() bool { return i.listed }

func given(listed bool, pods ...*corev1.Pod) informer {
	in := informer{cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{}), listed}
	for _, p := range pods {
		if err := in.GetStore().Add(p); err != nil {
			panic(err)
		}
	}
	return in
}

// What the watch told is corrected by a sweep that knew better: by a newer version, by a pod that
// nobody told of, and where one had stopped to wait by then. Pods that do not wait are not asked
// for, so a sweep says nothing of them.
func TestASweepCorrectsTheWatch(t *testing.T) {
	pod := func(version string, waits bool) *corev1.Pod {
		p := incidenttest.WaitingPod("p", "nvidia.com/gpu", nil)
		if p.UID, p.ResourceVersion = "p", version; !waits {
			p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
		}
		return p
	}
	for name, c := range map[string]struct {
		told  *corev1.Pod
		swept *corev1.Pod
		at    string
		gone  bool
		want  string // versions; empty: there is none
	}{
		"nothing was swept":                   {pod("5", true), nil, "", false, "5"},
		"it waited no more":                   {pod("5", true), nil, "9", false, ""},
		"it waited no more, as of then":       {pod("9", true), nil, "9", false, ""},
		"it waits since":                      {pod("10", true), nil, "9", false, "10"},
		"it runs, and was not asked for":      {pod("5", false), nil, "9", false, "5"},
		"the sweep is newer":                  {pod("5", false), pod("7", true), "9", false, "7"},
		"the watch is newer":                  {pod("8", false), pod("7", true), "9", false, "8"},
		"both are the same":                   {pod("7", true), pod("7", true), "9", false, "7"},
		"nobody told of it":                   {nil, pod("7", true), "9", false, "7"},
		"nobody told of it, and it is gone":   {nil, pod("7", true), "9", true, ""},
		"it was told of, and another is gone": {pod("5", true), pod("7", true), "9", true, "7"},
	} {
		w, _ := still(t, func(*Options) {})
		w.pods, w.refusing[kindEvent] = given(true), given(true)
		if c.told != nil {
			w.pods = given(true, c.told)
		}
		if w.swept = (sweep{at: c.at}); c.swept != nil {
			w.swept.waiting = map[types.UID]*corev1.Pod{"p": c.swept}
		}
		w.gone["p"] = c.gone
		var got []string
		for _, p := range w.view() {
			got = append(got, p.ResourceVersion)
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// Nothing is told before all is listed, but for what may not be read, and for kinds that a
// configuration names and that are not installed.
func TestWhenAllIsListed(t *testing.T) {
	of := schema.GroupResource{Resource: "x"}
	forbidden, absent := apierrors.NewForbidden(of, "", nil), apierrors.NewNotFound(of, "")
	for name, c := range map[string]struct {
		kind         string
		owners, pods bool
		err          error
		want         bool
	}{
		"all is":                        {"Job", true, true, nil, true},
		"the pods are not":              {"Job", true, false, nil, false},
		"the owners are not":            {"Job", false, true, nil, false},
		"they may not be read":          {"Job", false, true, forbidden, true},
		"nor the pods":                  {"Job", false, false, forbidden, false},
		"they cannot be read":           {"Job", false, true, errors.New("no route"), false},
		"Kubernetes' own are not found": {"Job", false, true, absent, false},
		"others are not installed":      {"TFJob.kubeflow.org", false, true, absent, true},
		"others were, and are not now":  {"TFJob.kubeflow.org", true, true, absent, true},
		"others are still to be listed": {"TFJob.kubeflow.org", false, true, nil, false},
	} {
		w, _ := still(t, func(*Options) {})
		w.pods, w.owners = given(c.pods), map[string]cache.SharedIndexInformer{c.kind: given(c.owners)}
		w.troubles[c.kind] = c.err
		if got := w.filled(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
