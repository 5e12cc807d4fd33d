package cluster

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/watcher/events"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// lastApplied is what kubectl apply leaves on an object: the whole of it again.
const lastApplied = corev1.LastAppliedConfigAnnotation

// Trim takes out, in place, what no diagnosis needs and what a dump must not
// hold: env values, the fields of managedFields (who and when stay), annotations that
// nobody reads, what a pod's containers run, and the images of nodes.
func Trim(o Object) {
	trimAnnotations(o)
	if fields := o.GetManagedFields(); len(fields) > 0 {
		o.SetManagedFields(trimFields(o, fields))
	}
	switch t := any(o).(type) {
	case *corev1.Pod:
		trimPod(&t.Spec)
		trimStatus(&t.Status)
	case *appsv1.ReplicaSet:
		trimEnv(&t.Spec.Template.Spec)
	case *appsv1.Deployment:
		trimEnv(&t.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		trimEnv(&t.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		trimEnv(&t.Spec.Template.Spec)
	case *batchv1.Job:
		trimEnv(&t.Spec.Template.Spec)
	case *batchv1.CronJob:
		trimEnv(&t.Spec.JobTemplate.Spec.Template.Spec)
	case *metav1.PartialObjectMetadata:
		t.ObjectMeta = owners.Trim(t)
	case *unstructured.Unstructured:
		trimAny(t.Object)
	case *corev1.Node:
		t.Status.Images = nil
	case *corev1.Event:
		*t = *events.Trim(t)
	}
}

// trimFields keeps who wrote when. For a node it also keeps that dated labels
// were written: since when a layout is pending is told by nothing else. Of a pod it keeps
// who wrote its node, and nothing else: a scheduler's binding leaves no such trace. Of what a queue
// has, and of jobs of other kinds, of which there are as many as of Jobs, nobody asks that.
func trimFields(o Object, fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if u, is := any(o).(*unstructured.Unstructured); is {
		if kind := u.GroupVersionKind().GroupKind(); kind == incident.KueueWorkload || slices.Contains(incident.Operated, kind) {
			return nil
		}
	}
	_, node := any(o).(*corev1.Node)
	_, pod := any(o).(*corev1.Pod)
	if pod {
		return trimPodFields(fields)
	}
	out := make([]metav1.ManagedFieldsEntry, len(fields))
	for i, f := range fields {
		out[i] = f
		out[i].FieldsV1 = nil
		if node {
			out[i].FieldsV1 = datedFields(f.FieldsV1)
		}
	}
	return out
}

func trimPodFields(fields []metav1.ManagedFieldsEntry) (out []metav1.ManagedFieldsEntry) {
	for _, f := range fields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:nodeName"`) {
			f.FieldsV1 = byHand
			out = append(out, f)
		}
	}
	return out
}

// byHand are the fields of who wrote a pod's node: one for all.
var byHand = metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)

// trimPod keeps of a pod's containers and volumes what places them. How they are run, and
// what they mount, is most of a pod and read by nobody.
func trimPod(spec *corev1.PodSpec) {
	spec.Volumes = slices.Clip(slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.EmptyDir != nil || v.DownwardAPI != nil // of any node
	}))
	if len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
	spec.InitContainers, spec.Containers = trimContainers(spec.InitContainers), trimContainers(spec.Containers)
	spec.EphemeralContainers = nil
}

// trimStatus takes out addresses, by which ids the runtime knows containers and images, and,
// of a pod that is ready, what came before that.
func trimStatus(status *corev1.PodStatus) {
	ready := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
	passed := func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodInitialized || c.Type == corev1.ContainersReady
	}
	if slices.ContainsFunc(status.Conditions, ready) && slices.ContainsFunc(status.Conditions, passed) {
		status.Conditions = slices.Clone(slices.DeleteFunc(slices.Clone(status.Conditions), passed)) // twice: what is taken out takes no room
	}
	status.PodIP, status.PodIPs, status.HostIP, status.HostIPs = "", nil, "", nil
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			list[i].ContainerID, list[i].ImageID = "", ""
		}
	}
	status.EphemeralContainerStatuses = nil
}

// trimContainers makes a list of its own: an informer may hand over again what it did
// before, and that is shared with other pods since.
func trimContainers(list []corev1.Container) []corev1.Container {
	list = slices.Clone(list)
	for i, c := range list {
		if maps.Equal(c.Resources.Requests, c.Resources.Limits) { // as those of GPUs mostly are: once in memory
			c.Resources.Requests = c.Resources.Limits
		}
		list[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy}
		if k := c.SecurityContext; k != nil && k.Privileged != nil && *k.Privileged {
			list[i].SecurityContext = allRights
		}
	}
	return list
}

// allRights are those of a privileged container, one for all: schedulers that share cards pass over it.
var allRights = &corev1.SecurityContext{Privileged: new(true)}

func trimEnv(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			clearValues(list[i].Env)
		}
	}
	for i := range spec.EphemeralContainers {
		clearValues(spec.EphemeralContainers[i].Env)
	}
}

func clearValues(env []corev1.EnvVar) {
	for i := range env {
		env[i].Value = ""
	}
}

// trimAny does the same to every "env" list of a custom resource: a ClusterPolicy has one per
// operand. Of the pods of which queues and other owners have templates it keeps what it keeps of a
// pod: there are as many Workloads of Kueue as Jobs.
func trimAny(v any) {
	switch t := v.(type) {
	case map[string]any:
		clearAnyValues(t["env"])
		for _, key := range []string{"initContainers", "containers"} {
			trimAnyContainers(t[key])
		}
		if volumes, ok := t["volumes"].([]any); ok && slices.ContainsFunc(volumes, ofAnyNode) {
			t["volumes"] = slices.Clip(slices.DeleteFunc(volumes, ofAnyNode))
		}
		for _, inner := range t {
			trimAny(inner)
		}
	case []any:
		for _, inner := range t {
			trimAny(inner)
		}
	}
}

func clearAnyValues(env any) {
	list, _ := env.([]any)
	for _, e := range list {
		if one, ok := e.(map[string]any); ok {
			delete(one, "value")
		}
	}
}

// placing are the fields of a container that trimContainers keeps.
var placing = []string{"name", "image", "ports", "resources", "resizePolicy", "restartPolicy"}

func trimAnyContainers(v any) {
	list, _ := v.([]any)
	for _, c := range list {
		one, ok := c.(map[string]any)
		if _, run := one["image"]; !ok || !run {
			continue // something else of that name
		}
		rights, _ := one["securityContext"].(map[string]any)
		maps.DeleteFunc(rights, func(key string, value any) bool { return key != "privileged" || value != true })
		maps.DeleteFunc(one, func(key string, _ any) bool {
			return !slices.Contains(placing, key) && (key != "securityContext" || len(rights) == 0)
		})
	}
}

// ofAnyNode says whether a volume is made on each node alike.
func ofAnyNode(v any) bool {
	one, _ := v.(map[string]any)
	for _, kind := range []string{"projected", "configMap", "secret", "emptyDir", "downwardAPI"} {
		if one[kind] != nil {
			return true
		}
	}
	return false
}

// dated are the labels of nodes whose age matters: MIG manager's state, and that of the
// driver's upgrade.
var dated = []string{`"f:nvidia.com/gpu-driver-upgrade-state"`, `"f:nvidia.com/mig.config"`, `"f:nvidia.com/mig.config.state"`}

// datedFields is the part of a node's managed fields that names dated labels, nil when the
// entry wrote none.
func datedFields(f *metav1.FieldsV1) *metav1.FieldsV1 {
	if f == nil {
		return nil
	}
	var wrote []string
	for _, label := range dated {
		if strings.Contains(f.GetRawString(), label) {
			wrote = append(wrote, label+":{}")
		}
	}
	if len(wrote) == 0 {
		return nil
	}
	return metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + strings.Join(wrote, ",") + `}}}`)
}
