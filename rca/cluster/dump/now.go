package dump

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// clock remembers the newest time it was shown.
type clock struct{ at time.Time }

func (c *clock) note(times ...metav1.Time) {
	for _, t := range times {
		if t.After(c.at) {
			c.at = t.Time
		}
	}
}

// newest is the "now" of a dump: the newest of its creation, condition, event
// and report times.
func newest(s *cluster.State) time.Time {
	var c clock
	for _, k := range cluster.Kinds() {
		for _, o := range k.Objects(s) {
			c.note(o.GetCreationTimestamp())
		}
	}
	for _, n := range s.Nodes {
		for _, x := range n.Status.Conditions {
			c.note(x.LastTransitionTime, x.LastHeartbeatTime)
		}
	}
	for _, p := range s.Pods {
		for _, x := range p.Status.Conditions {
			c.note(x.LastTransitionTime, x.LastProbeTime)
		}
	}
	for _, e := range s.Events {
		c.note(metav1.Time{Time: e.EventTime.Time}, e.FirstTimestamp, e.LastTimestamp)
		if e.Series != nil {
			c.note(metav1.Time{Time: e.Series.LastObservedTime.Time})
		}
	}
	for _, g := range s.Geometries {
		c.note(g.Report.ObservedAt)
	}
	noteWorkloads(s, &c)
	return c.at
}

// noteWorkloads shows the clock the conditions of workloads and what guards them.
func noteWorkloads(s *cluster.State, c *clock) {
	for _, o := range s.Deployments {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime, x.LastUpdateTime)
		}
	}
	for _, o := range s.ReplicaSets {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime)
		}
	}
	for _, o := range s.StatefulSets {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime)
		}
	}
	for _, o := range s.DaemonSets {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime)
		}
	}
	for _, o := range s.Jobs {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime, x.LastProbeTime)
		}
	}
	for _, o := range s.PVCs {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime, x.LastProbeTime)
		}
	}
	for _, o := range s.PDBs {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime)
		}
	}
	for _, o := range s.Namespaces {
		for _, x := range o.Status.Conditions {
			c.note(x.LastTransitionTime)
		}
	}
}
