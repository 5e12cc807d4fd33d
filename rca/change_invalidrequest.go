package rca

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (c *Bench) correctRequests() []change {
	sets := map[string]map[corev1.ResourceName]pair{}
	var texts []string
	for _, bad := range invalidRequests(c.next()) {
		if bad.init {
			return []change{{kind: Manual, manual: true, risk: NoRisk, until: "its template is corrected", title: "correct the init container " + bad.container,
				commands: []string{fmt.Sprintf("kubectl -n %s edit %s", c.next().Namespace, c.workloadName())}}}
		}
		if sets[bad.container] == nil {
			sets[bad.container] = map[corev1.ResourceName]pair{}
		}
		sets[bad.container][bad.resource] = pair{bad.whole(), bad.whole()}
		texts = append(texts, fmt.Sprintf("%s %s as request and limit", text(bad.whole()), bad.resource))
	}
	if len(sets) == 0 {
		return []change{{kind: Manual, manual: true, risk: NoRisk, until: "its requests are valid", title: "look at what changes the requests of its pods",
			commands: []string{fmt.Sprintf("kubectl -n %s describe %s", c.next().Namespace, c.workloadName())}}}
	}
	return []change{c.setRequests("write "+strings.Join(texts, ", "), sets)}
}
