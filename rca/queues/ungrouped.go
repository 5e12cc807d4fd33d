package queues

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Ungrouped says whether the pods do not exist because nothing stands for them in a queue: Volcano's
// controllers make a Job's PodGroup before its pods, and its scheduler looks at groups alone.
func (c *Case) Ungrouped() bool { return c.Held != nil && c.Held.Ungrouped }

// groupedWithin is how long the controllers may take to make a Job's PodGroup.
const groupedWithin = time.Minute

// Ungroup is why a Job of Volcano has no PodGroup, as far as that can be told.
type Ungroup struct {
	view.Finding
	// Young: its controllers may be about to make it.
	Young bool
	// Controllers is the Deployment of Volcano's controllers that has no pod which is ready; nil
	// where none is seen, or one works.
	Controllers *appsv1.Deployment
	// Said: they have looked at the Job, and said what keeps them.
	Said bool
}

// WhyUngrouped tells of a Job that has no PodGroup; nil for every other.
func (c *Case) WhyUngrouped() *Ungroup {
	if !c.Ungrouped() {
		return nil
	}
	j, st := unmadeOf(c.Cluster, c.Held.Owner), c.Cluster.State
	u := &Ungroup{Young: !c.Incident.Since.IsZero() && st.Now.Sub(c.Incident.Since) < groupedWithin}
	says, certainty, evidence := "Volcano's controllers have made no PodGroup for it, and no pod before that", diagnosis.Likely, []diagnosis.Evidence{j.phase()}
	if why := st.Unread["PodGroup.scheduling.volcano.sh"]; why != "" {
		says, certainty = "it has no pod, and whether Volcano has made a PodGroup for it was not read", diagnosis.Possible
	} else {
		evidence = append(evidence, j.noGroup())
	}
	word := j.said()
	switch {
	case u.Young:
		says = "Volcano's controllers are about to make its PodGroup, and its pods after that"
	case word != nil:
		u.Said = true
		says += "; they say: " + view.Quotable(word.Message, 160)
		evidence = append(evidence, diagnosis.Fact(j.ref(), word.Reason+": "+view.Quotable(word.Message, 300), diagnosis.Says(word.Message)))
	default:
		if u.Controllers = controllersDown(c.Cluster); u.Controllers != nil {
			fact, claims := noneReady(u.Controllers)
			says += "; " + u.Controllers.Namespace + "/" + u.Controllers.Name + ", which would, " + fact
			evidence = append(evidence, diagnosis.Fact(view.ObjectRef("Deployment", u.Controllers.Namespace, u.Controllers.Name), fact, claims...))
			if certainty == diagnosis.Likely {
				certainty = diagnosis.Proven
			}
		}
	}
	u.Finding = *view.Found(certainty, says, evidence...)
	return u
}

// unmade is a Job of Volcano's that has no PodGroup yet. What its controllers have done and said goes by
// the Job alone: no pod of it exists, and the one that stands for them has no part in it.
type unmade struct {
	w      *view.Cluster
	owner  incident.Ref
	object *unstructured.Unstructured // nil where it was not read
}

func unmadeOf(w *view.Cluster, owner incident.Ref) *unmade {
	return &unmade{w, owner, objectOf(w.State.VolcanoJobs, owner.Namespace, owner.Name)}
}

func (j *unmade) ref() string { return view.ObjectRef(j.owner.Kind, j.owner.Namespace, j.owner.Name) }

// phase is how far the controllers have got with the Job: its phase is the first thing that they
// write.
func (j *unmade) phase() diagnosis.Evidence {
	path, phase := "status.state.phase", ""
	if j.object != nil {
		phase = nestedText(j.object, "status", "state", "phase")
	}
	none := diagnosis.That("count(pods)", "", diagnosis.Is, "0")
	if phase == "" {
		return diagnosis.Fact(j.ref(), "has no status and no pod", diagnosis.That(path, "", diagnosis.Absent, ""), none)
	}
	return diagnosis.Fact(j.ref(), "is "+phase+" and has no pod", diagnosis.That(path, "", diagnosis.Is, phase), none)
}

// noGroup is that no PodGroup is there under either of the names that the controllers give it (the
// Job's own in old versions).
func (j *unmade) noGroup() diagnosis.Evidence {
	o := j.owner
	claims := []diagnosis.Claim{diagnosis.That("", "", diagnosis.Absent, "").Of(view.ObjectRef("PodGroup.scheduling.volcano.sh", o.Namespace, o.Name))}
	if j.object != nil && j.object.GetUID() != "" {
		claims = append(claims, diagnosis.That("", "", diagnosis.Absent, "").Of(view.ObjectRef("PodGroup.scheduling.volcano.sh", o.Namespace, o.Name+"-"+string(j.object.GetUID()))))
	}
	return diagnosis.Fact(j.ref(), "none of the PodGroups that were read is its own", claims...)
}

// said is the newest warning about the Job; nil for none.
func (j *unmade) said() *corev1.Event {
	var newest *corev1.Event
	for _, e := range j.w.EventsOf("Job", j.owner.Namespace, j.owner.Name) {
		group, _, _ := strings.Cut(e.InvolvedObject.APIVersion, "/")
		if e.Type != corev1.EventTypeWarning || group != "batch.volcano.sh" {
			continue
		}
		if newest == nil || cmp.Or(scaling.Seen(e).Compare(scaling.Seen(newest)), strings.Compare(e.Message, newest.Message)) > 0 {
			newest = e
		}
	}
	return newest
}

// controllersDown is the Deployment of Volcano's controllers, where it has no pod that is ready; nil
// where one has, or none is seen: they may run outside the cluster.
func controllersDown(w *view.Cluster) *appsv1.Deployment {
	_, down := managers(w, "vc-controller-manager")
	return down
}

// managers are the Deployments of an image by that name: one that has a pod which is ready, else one that
// has none; neither where none is seen.
func managers(w *view.Cluster, image string) (works, down *appsv1.Deployment) {
	for _, d := range w.State.Deployments {
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(k corev1.Container) bool {
			name, _, _ := strings.Cut(path.Base(k.Image), ":")
			name, _, _ = strings.Cut(name, "@")
			return name == image
		}) {
			continue
		}
		if d.Status.ReadyReplicas > 0 {
			return d, nil
		}
		down = d
	}
	return nil, down
}

// noneReady is that a Deployment has no pod which is ready.
func noneReady(d *appsv1.Deployment) (string, []diagnosis.Claim) {
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return "is scaled to 0", []diagnosis.Claim{diagnosis.That("spec.replicas", "", diagnosis.Is, "0")}
	}
	return fmt.Sprintf("has 0 of %s ready", view.CountOf(int(ptr.Deref(d.Spec.Replicas, 1)), "pod")), append(statedReplicas(d), diagnosis.That("status.readyReplicas", "", diagnosis.Is, "0"))
}

// statedReplicas claims how many a Deployment is to have, where it says that.
func statedReplicas(d *appsv1.Deployment) []diagnosis.Claim {
	if d.Spec.Replicas == nil {
		return nil
	}
	return []diagnosis.Claim{diagnosis.That("spec.replicas", "", diagnosis.Is, fmt.Sprint(*d.Spec.Replicas))}
}
