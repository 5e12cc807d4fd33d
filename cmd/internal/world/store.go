package world

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	k8stesting "k8s.io/client-go/testing"
)

// versions numbers every write of a world, as etcd does.
type versions struct {
	mu   sync.Mutex
	last uint64
	now  func() time.Time
}

func (v *versions) next() string {
	v.last++
	return strconv.FormatUint(v.last, 10)
}

// store makes a tracker behave as an API server where the executor relies on it:
// uids, resourceVersions with conflicts, preconditions, dry run, the status and
// binding subresources, generated names, evictions that respect budgets.
type store struct {
	*versions
	tracker k8stesting.ObjectTracker
	relays  []*relay
	running sync.WaitGroup
	stored  map[schema.GroupVersionResource]map[string]runtime.Object // as the tracker has it
}

func newStore(v *versions, tracker k8stesting.ObjectTracker) *store {
	return &store{versions: v, tracker: tracker, stored: map[schema.GroupVersionResource]map[string]runtime.Object{}}
}

// keep stores an object that is new or has changed.
func (s *store) keep(gvr schema.GroupVersionResource, obj runtime.Object, ns string, write func(schema.GroupVersionResource, runtime.Object, string) error) error {
	if err := write(gvr, obj, ns); err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if s.stored[gvr] == nil {
		s.stored[gvr] = map[string]runtime.Object{}
	}
	s.stored[gvr][ns+"/"+m.GetName()] = obj.DeepCopyObject()
	return nil
}

// close ends the watches that are still read and waits for them.
func (s *store) close() {
	s.mu.Lock()
	for _, r := range s.relays {
		r.Stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// react is the reactor for every write.
func (s *store) react(action k8stesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	switch a := action.(type) {
	case k8stesting.CreateActionImpl:
		return s.create(a)
	case k8stesting.UpdateActionImpl:
		obj, err := s.update(a.GetResource(), a.GetSubresource(), a.GetObject().DeepCopyObject(), a.GetNamespace(), len(a.UpdateOptions.DryRun) > 0)
		return true, obj, err
	case k8stesting.PatchActionImpl:
		obj, err := s.patch(a)
		return true, obj, err
	case k8stesting.DeleteActionImpl:
		return true, nil, s.delete(a.GetResource(), a.GetNamespace(), a.GetName(), a.DeleteOptions)
	}
	return false, nil, nil
}

func (s *store) create(a k8stesting.CreateActionImpl) (bool, runtime.Object, error) {
	dry := len(a.CreateOptions.DryRun) > 0
	switch a.GetSubresource() {
	case "eviction":
		return true, nil, s.evict(a.GetNamespace(), a.GetObject())
	case "binding":
		return true, nil, s.bind(a.GetObject().(*corev1.Binding))
	case "":
	default:
		return false, nil, nil
	}
	obj := a.GetObject().DeepCopyObject()
	m, err := meta.Accessor(obj)
	if err != nil {
		return true, nil, err
	}
	if m.GetResourceVersion() != "" {
		return true, nil, apierrors.NewInternalError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if m.GetNamespace() == "" {
		m.SetNamespace(a.GetNamespace())
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(m.GetGenerateName() + rand.String(5))
	}
	if _, err := s.tracker.Get(a.GetResource(), a.GetNamespace(), m.GetName()); err == nil {
		return true, nil, apierrors.NewAlreadyExists(a.GetResource().GroupResource(), m.GetName())
	}
	m.SetUID(uuid.NewUUID())
	m.SetCreationTimestamp(metav1.NewTime(s.now()))
	m.SetResourceVersion(s.next())
	m.SetGeneration(0)
	if hasGeneration(obj) {
		m.SetGeneration(1)
	}
	if p, ok := obj.(*corev1.Pod); ok {
		defaultPod(p)
	}
	if dry {
		return true, obj, nil
	}
	return true, obj, s.keep(a.GetResource(), obj, a.GetNamespace(), func(gvr schema.GroupVersionResource, obj runtime.Object, ns string) error {
		return s.tracker.Create(gvr, obj, ns)
	})
}

// update writes an object or its status, on the version it was read at.
func (s *store) update(gvr schema.GroupVersionResource, subresource string, obj runtime.Object, ns string, dry bool) (runtime.Object, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	current, err := s.tracker.Get(gvr, ns, m.GetName())
	if err != nil {
		return nil, err
	}
	was, err := meta.Accessor(current)
	if err != nil {
		return nil, err
	}
	if err := precondition(gvr, was, m.GetUID(), m.GetResourceVersion()); err != nil {
		return nil, err
	}
	obj = withStatus(subresource, current, obj)
	if m, err = meta.Accessor(obj); err != nil {
		return nil, err
	}
	m.SetUID(was.GetUID())
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetResourceVersion(was.GetResourceVersion())
	m.SetGeneration(was.GetGeneration())
	if equality.Semantic.DeepEqual(obj, current) {
		return obj, nil
	}
	if hasGeneration(obj) && !equality.Semantic.DeepEqual(field(obj, "Spec").Interface(), field(current, "Spec").Interface()) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	if dry {
		return obj, nil
	}
	m.SetResourceVersion(s.next())
	return obj, s.updated(gvr, obj, ns)
}

// withStatus keeps the half of the object that the request may not write. Labels
// and annotations of pods and nodes may be written with the status.
func withStatus(subresource string, current, obj runtime.Object) runtime.Object {
	status := field(obj, "Status")
	if !status.IsValid() {
		return obj
	}
	if subresource != "status" {
		status.Set(field(current.DeepCopyObject(), "Status"))
		return obj
	}
	out := current.DeepCopyObject()
	field(out, "Status").Set(status)
	switch t := out.(type) {
	case *corev1.Pod:
		t.Labels, t.Annotations = obj.(*corev1.Pod).Labels, obj.(*corev1.Pod).Annotations
	case *corev1.Node:
		t.Labels, t.Annotations = obj.(*corev1.Node).Labels, obj.(*corev1.Node).Annotations
	}
	return out
}

// field is a field of a typed object; not valid when it has none of that name.
func field(obj runtime.Object, name string) reflect.Value {
	value := reflect.ValueOf(obj).Elem()
	if value.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return value.FieldByName(name)
}

// hasGeneration says whether the API server counts the changes of the spec.
func hasGeneration(obj runtime.Object) bool {
	switch obj.(type) {
	case *corev1.Pod, *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job, *policyv1.PodDisruptionBudget:
		return true
	}
	return false
}

func precondition(gvr schema.GroupVersionResource, m metav1.Object, uid types.UID, version string) error {
	if uid != "" && uid != m.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), m.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, m.GetUID())) //nolint:revive,staticcheck // the API server's own words
	}
	if version != "" && version != m.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), m.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

func (s *store) delete(gvr schema.GroupVersionResource, ns, name string, opts metav1.DeleteOptions) error {
	obj, err := s.tracker.Get(gvr, ns, name)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if p := opts.Preconditions; p != nil {
		var uid types.UID
		version := ""
		if p.UID != nil {
			uid = *p.UID
		}
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if err := precondition(gvr, m, uid, version); err != nil {
			return err
		}
	}
	if len(opts.DryRun) > 0 {
		return nil
	}
	delete(s.stored[gvr], ns+"/"+name)
	return s.tracker.Delete(gvr, ns, name)
}

func (s *store) updated(gvr schema.GroupVersionResource, obj runtime.Object, ns string) error {
	return s.keep(gvr, obj, ns, func(gvr schema.GroupVersionResource, obj runtime.Object, ns string) error {
		return s.tracker.Update(gvr, obj, ns)
	})
}
