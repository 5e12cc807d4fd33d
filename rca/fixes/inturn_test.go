package fixes

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/controller/history"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/features"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// Who a changed StatefulSet stops, how many run and how many wait in the end is what the real
// controller does with random sets: in order and not, with partitions, with some that wait, with
// another number that may be away, and as controllers do it that have no such number.
func TestStatefulSetsAreReplacedAsTheirControllerDoes(t *testing.T) {
	seeds := uint64(controlplane.Of(50, 150))
	for name, gates := range map[string]featuregatetesting.FeatureOverrides{
		"bounded":   {features.StatefulSetRecreateStrategy: true},
		"unbounded": {features.MaxUnavailableStatefulSet: false},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gates)
			tried := uint64(0)
			for seed := range seeds {
				s := randomSet(t, rand.New(rand.NewPCG(seed, 0)), name == "bounded")
				if len(s.waits()) == 0 {
					continue
				}
				tried++
				before, said := s.String(), s.foreseen(t)
				if got := s.roll(t); got != said {
					t.Errorf("seed %d, %s:\nsaid %s\ndone %s", seed, before, said, got)
				}
			}
			if tried < seeds/4 {
				t.Errorf("only %d sets had a pod that waits", tried)
			}
		})
	}
}

// theSet is a StatefulSet, its real controller, and a scheduler of one node with seven slices.
type theSet struct {
	*appsv1.StatefulSet
	sync.Mutex
	controller statefulset.StatefulSetControlInterface
	pods       map[string]*corev1.Pod
	made       int
	// asks is how much a pod of the new template does.
	asks int64
	// changed: only those that a template of now is for find a node.
	changed bool
}

const capacity = 7

// randomSet is a set at rest: some of its pods run, and the others have no room.
func randomSet(t *testing.T, r *rand.Rand, bounded bool) *theSet {
	t.Helper()
	replicas := int32(1 + r.IntN(6))
	labels := map[string]string{"app": "w"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "set"},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, RevisionHistoryLimit: new(int32), PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: asking(int64(1 + r.IntN(4)))}}}
	if r.IntN(3) == 0 {
		set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	partition := int32(0)
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: rolling}
	if bounded {
		rolling.MaxUnavailable = new(intstr.FromInt32(1 + r.Int32N(4)))
		if r.IntN(4) == 0 {
			rolling.MaxUnavailable = new(intstr.FromString("40%"))
		}
	}
	s := &theSet{StatefulSet: set, pods: map[string]*corev1.Pod{}, asks: int64(1 + r.IntN(4))}
	revisions := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Apps().V1().ControllerRevisions()
	s.controller = statefulset.NewDefaultStatefulSetControl(statefulset.NewStatefulPodControlFromManager(s, &record.FakeRecorder{}), s, history.NewFakeHistory(revisions))
	s.settle(t)
	if running := s.running(); len(running) > 0 && set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement && r.IntN(2) == 0 {
		// Another one has the room of one that ran.
		p := s.pods[running[r.IntN(len(running))]]
		p.Spec.NodeName, p.Status.Conditions = "", nil
		s.place(func(q *corev1.Pod) bool { return q != p })
	}
	if running := s.running(); len(running) > 0 && set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement && r.IntN(5) == 0 {
		s.pods[running[0]].Status.Conditions = nil // it is on its node, and not ready
	}
	if lacks := s.waits(); len(lacks) > 0 {
		ordinals := make([]int, len(lacks))
		for i, name := range lacks {
			ordinals[i] = view.Ordinal(s.pods[name])
		}
		partition = r.Int32N(1 + int32(slices.Max(ordinals)))
		if set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement {
			partition = r.Int32N(1 + int32(slices.Min(ordinals)))
		}
	}
	if bounded && r.IntN(8) == 0 {
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RecreateStatefulSetStrategyType}
	}
	return s
}

func asking(n int64) corev1.PodSpec {
	return corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/mig-1g.5gb": *resource.NewQuantity(n, resource.DecimalSI)}}}}}
}

// foreseen is what a change of the template is said to bring.
func (s *theSet) foreseen(t *testing.T) string {
	t.Helper()
	c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(st *cluster.State) {
		st.Nodes, st.StatefulSets = st.Nodes[:1], []*appsv1.StatefulSet{s.DeepCopy()}
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			st.Pods = append(st.Pods, s.pods[name].DeepCopy())
		}
	})
	refs := make([]incident.PodRef, 0, len(s.waits()))
	for _, name := range s.waits() {
		refs = append(refs, incident.PodRef{Name: name, UID: string(s.pods[name].UID)})
	}
	k, err := causes.Open(evict.NewLedger(c.Cluster), incident.Incident{ID: "i", Workload: incident.Ref{Kind: "StatefulSet", Namespace: "a", Name: "w"}, Pods: refs, Waiting: len(refs)})
	if err != nil {
		t.Fatal(err)
	}
	c = New(k, nil, nil, nil)
	var ch edit.Change
	c.EditTemplate(&ch, map[string]any{"x": "y"}, false)
	said := ""
	err = whatif.Try(c.Cluster.Snapshot, func(snapshot *whatif.Snapshot) error {
		o, err := c.replace(t.Context(), snapshot, ch.Rolling, func(name string) *corev1.Pod {
			p := rcatest.Victim(name, 0, 0, 0, "w")
			p.Spec = asking(s.asks)
			return p
		})
		stopped := make([]string, len(o.stopped))
		for i, p := range o.stopped {
			stopped[i] = p.Name
		}
		said = outcomeText(o.runs, o.pending, stopped)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// roll changes the template, does what a person has to, and says what came of it.
func (s *theSet) roll(t *testing.T) string {
	t.Helper()
	before := map[types.UID]string{}
	for _, name := range s.running() {
		before[s.pods[name].UID] = name
	}
	s.Spec.Template.Spec, s.Spec.Template.Annotations = asking(s.asks), map[string]string{"version": "2"}
	s.Generation++
	byHand := s.waits()
	s.changed = true
	s.settle(t)
	if s.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement && s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		for _, name := range byHand {
			delete(s.pods, name)
		}
		s.settle(t)
	}
	runs := len(s.running())
	gained := runs - len(before)
	for _, p := range s.pods {
		delete(before, p.UID)
	}
	return outcomeText(gained, int(*s.Spec.Replicas)-runs, slices.Collect(maps.Values(before)))
}

func outcomeText(runs, pending int, stopped []string) string {
	slices.Sort(stopped)
	return fmt.Sprintf("%+d run, %d wait, %v stopped", runs, pending, stopped)
}

// settle lets the controller and the scheduler work until neither does anything more.
func (s *theSet) settle(t *testing.T) {
	t.Helper()
	for range 100 {
		was := s.String()
		if _, err := s.controller.UpdateStatefulSet(t.Context(), s.StatefulSet, slices.Collect(maps.Values(s.pods)), time.Time{}); err != nil {
			t.Fatal(err)
		}
		now := s.Status.UpdateRevision
		s.place(func(p *corev1.Pod) bool { return p.Labels[appsv1.StatefulSetRevisionLabel] == now })
		if len(s.pods) == int(*s.Spec.Replicas) { // else the rest is on its way
			s.place(func(p *corev1.Pod) bool { return !s.changed || view.Ordinal(p) < view.FirstRolled(s.StatefulSet) })
		}
		if s.String() == was {
			return
		}
	}
	t.Fatalf("%s does not come to rest", s)
}

// place gives the node's room to who waits and may have it, by name.
func (s *theSet) place(may func(*corev1.Pod) bool) {
	free := int64(capacity)
	for _, name := range s.running() {
		free -= asked(s.pods[name])
	}
	for _, name := range s.waits() {
		if p := s.pods[name]; may(p) && asked(p) <= free {
			free -= asked(p)
			p.Spec.NodeName = "a"
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		}
	}
}

func asked(p *corev1.Pod) int64 {
	q := p.Spec.Containers[0].Resources.Requests["nvidia.com/mig-1g.5gb"]
	return q.Value()
}

func (s *theSet) having(node string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		if s.pods[name].Spec.NodeName == node {
			out = append(out, name)
		}
	}
	return out
}

func (s *theSet) running() []string { return s.having("a") }
func (s *theSet) waits() []string   { return s.having("") }

func (s *theSet) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %+v, new ones ask %d:", s.Spec.PodManagementPolicy, s.Spec.UpdateStrategy, s.asks)
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil {
		fmt.Fprintf(&out, " partition %d, %v away:", *r.Partition, r.MaxUnavailable)
	}
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[name]
		fmt.Fprintf(&out, " %s(%s asks %d on %q ready %v)", name, p.UID, asked(p), p.Spec.NodeName, view.Ready(p))
	}
	return out.String()
}

// CreatePod makes a pod; the controller makes those of a set that is in no order at the same time.
func (s *theSet) CreatePod(_ context.Context, p *corev1.Pod, _ *appsv1.StatefulSet) error {
	s.Lock()
	defer s.Unlock()
	s.made++
	p = p.DeepCopy()
	p.UID, p.Status.Phase = types.UID(fmt.Sprint("pod-", s.made)), corev1.PodPending
	s.pods[p.Name] = p
	return nil
}

// DeletePod lets a pod go at once.
func (s *theSet) DeletePod(p *corev1.Pod) error {
	s.Lock()
	defer s.Unlock()
	delete(s.pods, p.Name)
	return nil
}

// GetPod finds a pod.
func (s *theSet) GetPod(_, name string) (*corev1.Pod, error) {
	s.Lock()
	defer s.Unlock()
	if p := s.pods[name]; p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

// UpdatePod keeps a pod as the controller has changed it.
func (s *theSet) UpdatePod(p *corev1.Pod, _ *appsv1.StatefulSet) error {
	s.Lock()
	defer s.Unlock()
	s.pods[p.Name] = p
	return nil
}

// CreateClaim is asked for nothing: the sets have no claims.
func (s *theSet) CreateClaim(*corev1.PersistentVolumeClaim, *appsv1.StatefulSet) error { return nil }

// GetClaim finds none.
func (s *theSet) GetClaim(_, name string) (*corev1.PersistentVolumeClaim, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

// UpdateClaim is asked for nothing.
func (s *theSet) UpdateClaim(*corev1.PersistentVolumeClaim, *appsv1.StatefulSet) error { return nil }

// UpdateStatefulSetStatus keeps what the controller says.
func (s *theSet) UpdateStatefulSetStatus(_ context.Context, _ *appsv1.StatefulSet, status *appsv1.StatefulSetStatus) error {
	s.Status = *status.DeepCopy()
	return nil
}
