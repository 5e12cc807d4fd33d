package causes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// The autoscalers whose events are known, by reporting component. Reasons alone
// are shared: Karpenter and Volcano write FailedScheduling too.
const (
	clusterAutoscaler = "cluster-autoscaler"
	karpenter         = "karpenter"
)

// promised is how long a node that was promised may take: after that the cluster autoscaler
// gives a machine up that has not joined (max-node-provision-time), Karpenter a NodeClaim
// that has not registered (pkg/controllers/nodeclaim/lifecycle/liveness.go).
const promised = 15 * time.Minute

// scalingUp: an autoscaler has said that it brings a node for the pod, a short while ago.
var scalingUp = PodRule{ID: diagnosis.ScalingUp, Aside: true, Tell: func(c *Case) *finding {
	e := c.promise()
	if e == nil || c.PromiseAge() > promised {
		return nil
	}
	return &finding{diagnosis.Likely, "an autoscaler is bringing a node", []diagnosis.Evidence{{Ref: c.podRef(), Fact: e.Reason + ": " + e.Message}}}
}}

// scaleUpStuck: it has said so, and the node has not come in all the time that it may take.
var scaleUpStuck = PodRule{ID: diagnosis.ScaleUpStuck, Aside: true, Tell: func(c *Case) *finding {
	e := c.promise()
	if e == nil || c.PromiseAge() <= promised {
		return nil
	}
	return &finding{diagnosis.Likely, fmt.Sprintf("an autoscaler promised a node %s ago, and none has come that helps", view.Age(c.PromiseAge())), []diagnosis.Evidence{{Ref: c.podRef(), Fact: e.Reason + ": " + e.Message}}}
}}

// promise is the autoscalers' last word about the pod, where that is that a node comes.
func (c *Case) promise() *corev1.Event {
	e := c.newestEvent(func(e *corev1.Event) bool {
		return from(e, clusterAutoscaler) && (e.Reason == "TriggeredScaleUp" || e.Reason == "NotTriggerScaleUp") || from(e, karpenter) && e.Reason == "Nominated"
	})
	if e == nil || e.Reason == "NotTriggerScaleUp" {
		return nil
	}
	return e
}

// PromiseAge is for how long a node has been promised: a promise that is repeated, as
// Karpenter does, is no younger for it. 0 where none is.
func (c *Case) PromiseAge() time.Duration {
	e := c.promise()
	if e == nil {
		return 0
	}
	since := seen(e)
	for _, first := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time} {
		if !first.IsZero() && first.Before(since) {
			since = first
		}
	}
	return c.Cluster.State.Now.Sub(since)
}

// autoscalerCannotHelp: an autoscaler has looked, and its last word was no.
var autoscalerCannotHelp = PodRule{ID: diagnosis.AutoscalerCannotHelp, Aside: true, Tell: func(c *Case) *finding {
	e := c.newestEvent(func(e *corev1.Event) bool {
		return from(e, clusterAutoscaler) && (e.Reason == "TriggeredScaleUp" || e.Reason == "NotTriggerScaleUp")
	})
	if e == nil || e.Reason != "NotTriggerScaleUp" {
		return nil
	}
	return &finding{diagnosis.Likely, "the cluster autoscaler looked and cannot help", []diagnosis.Evidence{{Ref: c.podRef(), Fact: strings.TrimSpace(e.Reason + ": " + e.Message)}}}
}}

func from(e *corev1.Event, component string) bool {
	return e.ReportingController == component || e.Source.Component == component
}

// newestEvent is the pod's event that ok accepts and that was seen last; a repetition
// counts as seen.
func (c *Case) newestEvent(ok func(*corev1.Event) bool) *corev1.Event {
	var newest *corev1.Event
	for _, e := range c.Cluster.State.Events {
		o := e.InvolvedObject
		if o.Kind != "Pod" || o.Namespace != c.Pod.Namespace || o.Name != c.Pod.Name || o.UID != "" && o.UID != c.Pod.UID || !ok(e) {
			continue
		}
		if newest == nil || seen(e).After(seen(newest)) {
			newest = e
		}
	}
	return newest
}

func seen(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
