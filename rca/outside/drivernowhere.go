package outside

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/stack/parts"
)

// DriverNowhere says whether NVIDIA's DRA driver is installed and no node is there that it runs on, while an autoscaler brings none:
// that it publishes no devices is no riddle then, and the machine is what is missing.
func DriverNowhere(c *edit.Workload) bool {
	kit := parts.Of(c.Cluster)
	if !c.IsOwn(diagnosis.AutoscalerCannotHelp) || len(kit.Sets(parts.DRADriver)) == 0 {
		return false
	}
	for _, n := range c.Cluster.SortedNodes() {
		if kit.Pod(n, parts.DRADriver) != nil {
			return false
		}
	}
	return true
}
