package capacity

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/scaling"
)

// pools has the sums of Gauges for each pool of nodes, by its name. What no pool can be told
// of is summed under the empty name.
type pools map[string]*pool

type pool struct {
	census placement.Census
	gpus   int
}

var (
	poolFree          = prometheus.NewDesc("unpend_mig_pool_free_slices", "Memory slices of the pool's GPUs with MIG on that nobody holds; pool is empty where no label of the node tells it.", []string{"pool"}, nil)
	poolUnusable      = prometheus.NewDesc("unpend_mig_pool_unusable_slices", "Of a pool: free memory slices left over when as many instances of the profile as fit were placed.", []string{"pool", "profile"}, nil)
	poolPlaceable     = prometheus.NewDesc("unpend_mig_pool_placeable_instances", "Of a pool: instances of the profile that the free slices could hold at once, idle instances re-made.", []string{"pool", "profile"}, nil)
	poolFragmentation = prometheus.NewDesc("unpend_mig_pool_fragmentation_ratio", "Of a pool: share of the free slices that the next request could not use, weighed by the demand of the last 24 h.", []string{"pool"}, nil)
)

// PoolOf is the name of a node's pool by the labels of Karpenter, of clouds and of their tools;
// empty where none tells it.
func PoolOf(n *corev1.Node) string {
	if name := n.Labels[scaling.LabelPool]; name != "" {
		return name
	}
	return scaling.PoolOf(n)
}

// count adds one GPU to its pool, or takes it out again. A pool without GPUs is not told of.
func (p pools) count(name string, gpu placement.GPU, sign int) {
	its := p[name]
	if its == nil {
		its = &pool{}
		p[name] = its
	}
	if sign > 0 {
		its.census.Add(gpu)
	} else {
		its.census.Remove(gpu)
	}
	if its.gpus += sign; its.gpus == 0 {
		delete(p, name)
	}
}

func (p pools) tell(asked func(profile string) float64, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	for name, its := range p {
		gauge(poolFree, float64(its.census.Free()), name)
		for _, t := range its.census.Tallies() {
			gauge(poolUnusable, float64(t.Unusable), name, t.Profile)
			gauge(poolPlaceable, float64(t.Placeable), name, t.Profile)
		}
		gauge(poolFragmentation, its.census.Fragmentation(asked), name)
	}
}
