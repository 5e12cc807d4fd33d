package growth

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Down is the controller of an autoscaler that is there and does not run: it brings no node, and tells nobody so.
type Down struct {
	Namespace, Name string
	// Pod is one of its pods, and Container what of it does not run; nil and empty where it has none.
	Pod       *corev1.Pod
	Container string
	// Crashes: the container ends again and again. Stopped: it is told to have no pod.
	Crashes, Stopped bool
	why              string
	evidence         diagnosis.Evidence
}

// controls is a case of which it is asked whether those run who are to bring its node.
type controls struct{ *Case }

// controllers are those of the autoscalers that do not run: nil where one does, where none is seen, or where that was not read.
type controllers struct{ karpenter, autoscaler *Down }

// controllersOf are found once for a cluster: all who wait have the same.
func controllersOf(w *view.Cluster) *controllers {
	return view.Kept(w, func(w *view.Cluster) *controllers {
		return &controllers{downOf(w, scaling.Karpenters(w.State)), downOf(w, scaling.ClusterAutoscalers(w.State))}
	})
}

// Ref is the controller for people.
func (d *Down) Ref() string { return view.ObjectRef("Deployment", d.Namespace, d.Name) }

// downOf is the first of them where none of them runs.
func downOf(w *view.Cluster, all []*appsv1.Deployment) *Down {
	st := w.State
	if st.Unread["Pod"] != "" || st.Unread["Deployment"] != "" {
		return nil
	}
	var down *Down
	for _, d := range all {
		found := downFor(w, d)
		if found == nil {
			return nil
		}
		down = cmp.Or(down, found)
	}
	return down
}

// downFor says why a controller does not run; nil where it does, or may yet.
func downFor(w *view.Cluster, d *appsv1.Deployment) *Down {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil
	}
	var pods []*corev1.Pod
	for _, p := range w.State.Pods {
		if p.Namespace != d.Namespace || view.Ended(p) || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		if view.Ready(p) {
			return nil
		}
		pods = append(pods, p)
	}
	down := &Down{Namespace: d.Namespace, Name: d.Name}
	switch {
	case d.Spec.Replicas != nil && *d.Spec.Replicas == 0:
		down.Stopped, down.why = true, "it is scaled to 0 replicas"
		down.evidence = diagnosis.Fact(down.Ref(), "spec.replicas is 0", diagnosis.That("spec.replicas", "", diagnosis.Is, "0"))
		return down
	case len(pods) > 0:
		for _, p := range pods {
			if haltsAt(w, down, p) {
				return down
			}
		}
		return nil
	case w.State.Now.Sub(d.CreationTimestamp.Time) < silentAfter:
		return nil // it may only be rolled out
	}
	down.why = "it has no pod"
	down.evidence = diagnosis.Fact(down.Ref(), "has no pod", diagnosis.That("count(pods)", "", diagnosis.Is, "0"))
	return down
}

// haltsAt notes of a pod why it does not run, where that is seen and does not pass by itself.
func haltsAt(w *view.Cluster, down *Down, p *corev1.Pod) bool {
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		w := s.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		at := "status.containerStatuses[name=" + s.Name + "]"
		down.Pod, down.Container, down.Crashes = p, s.Name, w.Reason == "CrashLoopBackOff"
		down.why = "container " + s.Name + " of " + p.Name + " " + view.Quotable(w.Reason, 63)
		claims := []diagnosis.Claim{diagnosis.That(at+".state.waiting.reason", "", diagnosis.Is, w.Reason)}
		fact := s.Name + ": " + view.Quotable(w.Reason, 63)
		if s.RestartCount > 0 {
			fact += ", restarted " + strconv.Itoa(int(s.RestartCount)) + " times"
			claims = append(claims, diagnosis.That(at+".restartCount", "", diagnosis.Is, strconv.Itoa(int(s.RestartCount))))
		}
		words, of := w.Message, ".state.waiting"
		if last := s.LastTerminationState.Terminated; down.Crashes && last != nil {
			words, of = last.Message, ".lastState.terminated"
		}
		if words != "" {
			down.why += ": " + view.Quotable(words, 160)
			fact += ": " + view.Quotable(words, 240)
			claims = append(claims, diagnosis.That(at+of, "", diagnosis.Contains, diagnosis.Says(words).Value))
		}
		down.evidence = diagnosis.Fact(view.PodRef(p), fact, claims...)
		return true
	}
	return unready(w, down, p)
}

// unready notes that a pod has not been ready for long.
func unready(w *view.Cluster, down *Down, p *corev1.Pod) bool {
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		for _, k := range p.Status.Conditions {
			since := k.LastTransitionTime.Time
			if k.Type != kind || k.Status != corev1.ConditionFalse || since.IsZero() || w.State.Now.Sub(since) < silentAfter {
				continue
			}
			down.Pod, down.why = p, p.Name+" is not ready"
			fact, claims := "is not ready", []diagnosis.Claim{view.ConditionIs(string(kind), "False")}
			if kind == corev1.PodScheduled {
				down.why, fact = p.Name+" has no node", "has no node"
			}
			if k.Message != "" {
				down.why += ": " + view.Quotable(k.Message, 160)
				claims = append(claims, diagnosis.Says(k.Message))
			}
			down.evidence = diagnosis.Fact(view.PodRef(p), fact+" since "+since.UTC().Format(time.RFC3339), claims...)
			return true
		}
	}
	return false
}

// karpenterDown tells of a Karpenter that has NodePools for the pod and does not run.
func (c controls) karpenterDown(g *Growth, o *scaling.Outlook) {
	down := controllersOf(c.Cluster).karpenter
	if down == nil || c.tooSoon(down) {
		return
	}
	var sure, maybe []scaling.Pool
	for i := range o.Pools {
		switch c.poolFit(&o.Pools[i]) {
		case scaling.Yes:
			sure = append(sure, o.Pools[i])
		case scaling.Maybe:
			maybe = append(maybe, o.Pools[i])
		case scaling.No:
		}
	}
	if g.Pools, g.Suits = sure, len(sure) > 0; !g.Suits {
		g.Pools = maybe
	}
	if len(g.Pools) > 0 {
		c.tellDown(g, "Karpenter, which is to make machines of NodePool "+poolTitles(g.Pools)+",", down)
	}
}

// autoscalerDown tells of a cluster autoscaler that does not run.
func (c controls) autoscalerDown(g *Growth, o *scaling.Outlook) {
	fresh := o.Status != nil && !o.Status.Updated.IsZero() && c.Cluster.State.Now.Sub(o.Status.Updated) <= silentAfter
	if len(g.told) > 0 || fresh || len(o.Pools) > 0 || len(c.Asks) == 0 || !c.stopped() {
		return // else another of its pods writes
	}
	if down := controllersOf(c.Cluster).autoscaler; down != nil && !c.tooSoon(down) {
		c.tellDown(g, "the cluster autoscaler", down)
	}
}

// tooSoon says whether a controller without a pod may only be rolled out while this pod has just come.
func (c controls) tooSoon(down *Down) bool {
	return down.Pod == nil && !down.Stopped && c.Cluster.State.Now.Sub(c.Pod.CreationTimestamp.Time) < silentAfter
}

func (c controls) tellDown(g *Growth, who string, down *Down) {
	g.Down, g.Bar = down, scaling.NotReady
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("%s does not run, so no node is brought: %s, %s", who, down.Ref(), down.why), down.evidence)
}
