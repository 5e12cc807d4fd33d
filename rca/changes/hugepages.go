package changes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// setPagesAside is for the node whose kernel has not set as many huge pages aside as the pod asks: nobody who leaves
// gives it some. A kubelet counts them when it starts (Kubernetes' documentation, "Manage HugePages").
func (c *Bench) setPagesAside(n *view.Node) []edit.Change {
	for _, name := range view.SortedNames(c.Wants) {
		asked, has := c.Wants[name], n.Status.Allocatable[name]
		if !view.HugePages(name) || has.Cmp(asked) >= 0 {
			continue
		}
		pages := "N"
		if size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix)); err == nil && size.Sign() > 0 {
			pages = fmt.Sprint((asked.Value() + size.Value() - 1) / size.Value())
		}
		return []edit.Change{c.Once(fmt.Sprintf("have a node set %s of %s aside, or %s ask for none", asked.String(), name, c.WorkloadName()), func(title string) edit.Change {
			return edit.LookAt(diagnosis.HostResourcesShort, title, "what a kernel sets aside shows once its kubelet has started again",
				"kubectl get nodes -o custom-columns=NAME:.metadata.name,PAGES:.status.allocatable."+string(name)+",IMAGE:.status.nodeInfo.osImage,KUBELET:.status.nodeInfo.kubeletVersion,AGE:.metadata.creationTimestamp  # do only the new ones have none? then their image is at fault",
				fmt.Sprintf("# on the machine: the kernel's hugepages for that size (%s pages; sysctl vm.nr_hugepages for 2Mi), for good in its image or start-up settings; then restart its kubelet, which counts them when it starts", pages),
				c.EditByHand("resources: no "+string(name)+", and no volume of medium HugePages"))
		})}
	}
	return nil
}
