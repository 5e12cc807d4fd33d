package program

import (
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// target is what the user asked about: an incident by its id, a pod, or a
// workload anywhere between the pod and its topmost owner.
type target struct {
	kind, name, namespace string
	group                 string          // of the API, where it was said
	mark                  string          // of the cluster that an incident is of
	labels                labels.Selector // of the pods; nil: any
}

// shortKinds are kubectl's short names of the kinds that make pods.
var shortKinds = map[string]string{"po": "pod", "deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob", "rc": "replicationcontroller"}

// newTarget reads NAME or KIND/NAME; without arguments everything is asked about.
func newTarget(args []string, namespace string) (target, error) {
	t := target{namespace: namespace}
	if len(args) == 0 {
		return t, nil
	}
	if m := sources.IncidentID.FindStringSubmatch(strings.TrimPrefix(args[0], sources.NamePrefix)); m != nil {
		t.name, t.mark = m[1], m[2]
		return t, nil
	}
	kind, name, slash := strings.Cut(args[0], "/")
	if !slash {
		kind, name = "", args[0]
	}
	if name == "" || slash && kind == "" || strings.Contains(name, "/") {
		return t, console.Usage("%q names nothing: write NAME or KIND/NAME, and the namespace with -n", args[0])
	}
	kind, t.group, _ = strings.Cut(strings.ToLower(kind), ".") // jobs.batch
	if long, ok := shortKinds[kind]; ok {
		kind = long
	}
	t.kind, t.name = strings.TrimSuffix(kind, "s"), name
	return t, nil
}

// label chooses by the labels of pods, too.
func (t *target) label(selector string) error {
	if selector == "" {
		return nil
	}
	s, err := labels.Parse(selector)
	if err != nil {
		return console.Usage("-l %q is no selector of labels: %v", selector, err)
	}
	t.labels = s
	return nil
}

// selects says which incidents the user asked about; nil: all. It looks at every pod, also at
// those beyond the names that an incident carries, and at those that were refused before they
// existed.
func (t target) selects(st *cluster.State) func(incident.Incident) bool {
	if t.namespace == "" && t.name == "" && t.labels == nil {
		return nil
	}
	ids := map[string]bool{}
	for _, p := range st.Pods {
		if t.matches(p, st) {
			ids[incident.ID(incident.Topmost(p, st.Owner), incident.Requests(p))] = true
		}
	}
	for _, r := range admission.Refusals(st) {
		if t.matches(r.Pod, st) {
			ids[incident.ID(incident.Topmost(r.Pod, st.Owner), incident.Requests(r.Pod))] = true
		}
	}
	return func(i incident.Incident) bool { return ids[i.ID] || t.kind == "" && i.ID == t.name }
}

func (t target) matches(p *corev1.Pod, st *cluster.State) bool {
	if t.namespace != "" && p.Namespace != t.namespace || t.labels != nil && !t.labels.Matches(labels.Set(p.Labels)) {
		return false
	}
	return t.name == "" || slices.ContainsFunc(incident.Owners(p, st.Owner), func(r incident.Ref) bool {
		return r.Name == t.name && t.is(r.Kind)
	})
}

// is says whether a kind, as a Ref names it, is the one that is asked about: any group's of
// that name where none was said. The group may have a version before it, as kubectl takes it.
func (t target) is(kind string) bool {
	name, group, _ := strings.Cut(kind, ".")
	for _, k := range incident.Kinds {
		if k.Kind == kind {
			group = k.Group
		}
	}
	group = strings.ToLower(group)
	return t.kind == "" || strings.ToLower(name) == t.kind && (t.group == "" || group == "" || t.group == group || strings.HasSuffix(t.group, "."+group))
}

// explainNothing says that what was asked about does not wait; that it does not
// exist is an error.
func (t target) explainNothing(st *cluster.State, w io.Writer) error {
	if why := st.Unread["Pod"]; why != "" && len(st.Pods) == 0 {
		return fmt.Errorf("pods are unread (%s), so nothing can be said about what waits", why)
	}
	if text := t.there(st); text != "" && !slices.ContainsFunc(st.Pods, func(p *corev1.Pod) bool { return t.matches(p, st) }) {
		fmt.Fprintln(w, terminal.Clean(text+"."))
		return nil
	}
	there, known := exists(st, t.namespace)
	if known && !there {
		return noNamespace(st, t.namespace)
	}
	if t.name == "" {
		text := "Nothing waits in " + t.looked(st)
		if why := st.Unread["Pod"]; why != "" {
			text += " among the pods that were read: " + why
		}
		if !there {
			text += "; whether that namespace exists is not known: " + st.Unread["Namespace"]
		}
		for _, line := range append([]string{text}, rca.Placed(st, t.namespace)...) {
			fmt.Fprintln(w, terminal.Clean(line+"."))
		}
		return nil
	}
	near := ""
	for _, p := range st.Pods {
		if t.matches(p, st) {
			waits := "does not wait"
			if rca.HoldsAndWaits(p) {
				waits = "waits for no GPU, it has its own"
			}
			fmt.Fprintln(w, terminal.Clean(fmt.Sprintf("%s %s: pod %s/%s is %s%s%s.", t.name, waits, p.Namespace, p.Name, incident.Standing(p), rca.LastWords(st, p), liesAround(st, p))))
			return nil
		}
		if _, _, waits := incident.Waiting(p); waits && near == "" && (t.namespace == "" || p.Namespace == t.namespace) {
			near = "pod/" + p.Name + " -n " + p.Namespace
		}
	}
	for _, r := range admission.Refusals(st) {
		if near == "" && (t.namespace == "" || r.Owner.Namespace == t.namespace) {
			near = strings.ToLower(r.Owner.Kind) + "/" + r.Owner.Name + " -n " + r.Owner.Namespace
		}
	}
	if near != "" {
		return fmt.Errorf("%s is not there; did you mean %s?", t, near)
	}
	return fmt.Errorf("%s is not there, and nothing waits", t)
}

// liesAround says why a pod has failed, and of one whose ReplicaSet has all that it wants that it may go: nobody deletes it.
func liesAround(st *cluster.State, p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodFailed || p.Status.Reason == "" {
		return ""
	}
	text := ": " + p.Status.Reason
	if words := strings.Join(strings.Fields(p.Status.Message), " "); words != "" {
		text += " (" + strings.TrimSuffix(words, ".") + ")"
	}
	by := metav1.GetControllerOfNoCopy(p)
	for _, set := range st.ReplicaSets {
		if by == nil || set.UID != by.UID || set.Spec.Replicas == nil || set.Status.ReadyReplicas < *set.Spec.Replicas {
			continue
		}
		return text + fmt.Sprintf("; replicaset/%s has all that it wants (%d), so this one only lies around and may be deleted: kubectl -n %s delete pod %s", set.Name, *set.Spec.Replicas, p.Namespace, p.Name)
	}
	return text
}

func (t target) String() string {
	s := t.name
	if t.kind != "" {
		s = t.kind + "/" + s
	}
	if t.namespace != "" {
		s += " in namespace " + t.namespace
	}
	return s
}
