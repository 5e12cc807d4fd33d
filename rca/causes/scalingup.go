package causes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The autoscalers whose events are known, by reporting component. Reasons alone
// are shared: Karpenter and Volcano write FailedScheduling too.
const (
	clusterAutoscaler = "cluster-autoscaler"
	karpenter         = "karpenter"
)

// scalingUp: an autoscaler has said that it brings a node for the pod.
var scalingUp = PodRule{ID: diagnosis.ScalingUp, Aside: true, Tell: func(c *Case) *finding {
	e := c.newestEvent(func(e *corev1.Event) bool {
		return from(e, clusterAutoscaler) && (e.Reason == "TriggeredScaleUp" || e.Reason == "NotTriggerScaleUp") || from(e, karpenter) && e.Reason == "Nominated"
	})
	if e == nil || e.Reason == "NotTriggerScaleUp" {
		return nil
	}
	return &finding{diagnosis.Likely, "an autoscaler is bringing a node", []diagnosis.Evidence{{Ref: c.podRef(), Fact: e.Reason + ": " + e.Message}}}
}}

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
