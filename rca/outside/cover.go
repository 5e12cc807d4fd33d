package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// cover is for the ClusterQueue that does not speak of what a Workload asks for: Kueue names one resource at
// a time, and each of them is to be covered, with a quota in every flavor of its group.
func cover(u *queues.Uncovered, look string) edit.Change {
	var ops, amounts []string
	for _, name := range u.Names {
		q := u.Amounts[name]
		amounts = append(amounts, q.String()+" "+string(name))
		ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/spec/resourceGroups/0/coveredResources/-","value":%q}`, name))
		for i := range u.Flavors {
			ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/spec/resourceGroups/0/flavors/%d/resources/-","value":{"name":%q,"nominalQuota":%q}}`, i, name, q.String()))
		}
	}
	return queueChange(diagnosis.Manual, diagnosis.LowRisk, "its ClusterQueue covers what it asks", fmt.Sprintf("have ClusterQueue %s cover %s, with a quota in flavor %s: %s is asked; or ask without it", u.Queue, u.Text(), strings.Join(u.Flavors, ", "), strings.Join(amounts, ", ")),
		look, fmt.Sprintf("kubectl patch clusterqueues.kueue.x-k8s.io %s --type json -p '[%s]'  # the quota of this one alone: give what the flavor's nodes have for all", u.Queue, strings.Join(ops, ",")))
}
