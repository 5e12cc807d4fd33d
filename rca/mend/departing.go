package mend

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// leaves is within what time the cluster autoscaler has emptied a node that it marks, and deleted it or taken the mark off
// (max-graceful-termination-sec is 10 min, and a cloud takes some).
const leaves = time.Hour

// Forgotten is for nodes that the cluster autoscaler has marked for deletion and never deleted: it was stopped in between, say, and
// takes such marks off only where it starts again and knows the node. The taint's value is when it was put there
// (cluster-autoscaler/utils/taints). nil where no mark is so old.
func Forgotten(w *view.Cluster, nodes []string) *edit.Change {
	for _, name := range nodes {
		n := w.Nodes[name]
		if n == nil {
			continue
		}
		for _, t := range n.Spec.Taints {
			at, err := strconv.ParseInt(t.Value, 10, 64)
			if !terms.Departing(t) || err != nil {
				continue
			}
			since := w.State.Now.Sub(time.Unix(at, 0))
			if since < leaves {
				continue
			}
			return &edit.Change{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.LowRisk, Minutes: 1,
				Title:      fmt.Sprintf("take the autoscaler's mark off %s, or have it deleted: it was marked for deletion %s ago, and is there still", name, view.Age(since)),
				Untestable: "whether the autoscaler still means to delete it is in no object",
				Commands:   []string{"kubectl get pods -A -o wide | grep -i autoscaler  # then its log: does it run, and does it say why it does not delete the node?", fmt.Sprintf("kubectl taint node %s %s-  # it takes pods again", name, t.Key)}}
		}
	}
	return nil
}
