package view

import (
	"slices"
)

// HasGPUs says whether some node of the cluster has GPUs.
func (w *Cluster) HasGPUs() bool {
	if w.anyGPUs == nil {
		w.anyGPUs = new(slices.ContainsFunc(w.SortedNodes(), (*Node).HasGPUs))
	}
	return *w.anyGPUs
}
