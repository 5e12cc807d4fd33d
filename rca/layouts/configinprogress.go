package layouts

import (
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// stuckAfter is when a pending layout is no longer in progress: MIG manager
// itself waits at most five minutes for each component (mig-parted
// pkg/mig/reconfigure/reconfigure.go).
const stuckAfter = 6 * time.Minute

// ConfigInProgress holds while MIG manager is within its deadline.
func ConfigInProgress(c *view.Cluster, n *view.Node, _ *Short) *view.Finding {
	state := n.Manager().State
	if since, deaf := Unheard(n); deaf && c.State.Now.Sub(since) <= settling {
		return view.Found(diagnosis.Likely, fmt.Sprintf("mig.config %q was asked for a moment ago, and MIG manager is about to begin", n.Labels[view.LabelMIGConfig]),
			diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s was written at %s, after %s=success", view.LabelMIGConfig, n.Labels[view.LabelMIGConfig], since.UTC().Format("2006-01-02 15:04:05 MST"), view.LabelMIGState), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...))
	}
	if state != "pending" && state != "rebooting" {
		return nil
	}
	since, known := labelSetAt(n, view.LabelMIGState)
	evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, %s=%s", view.LabelMIGConfig, n.Labels[view.LabelMIGConfig], view.LabelMIGState, state), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...)}
	if !known {
		return view.Found(diagnosis.Possible, "its MIG layout is being changed", evidence...)
	}
	if c.State.Now.Sub(since) > stuckAfter {
		return nil
	}
	return view.Found(diagnosis.Proven, "its MIG layout is being changed now", evidence...)
}

// labelSetAt reads from managedFields when the label was last written.
func labelSetAt(n *view.Node, label string) (time.Time, bool) {
	key := fmt.Sprintf("%q", "f:"+label)
	var newest time.Time
	for _, m := range n.ManagedFields {
		if m.Time == nil || m.FieldsV1 == nil && m.Manager != "nvidia-mig-manager" {
			continue
		}
		if (m.FieldsV1 == nil || strings.Contains(m.FieldsV1.GetRawString(), key)) && m.Time.After(newest) {
			newest = m.Time.Time
		}
	}
	return newest, !newest.IsZero()
}
