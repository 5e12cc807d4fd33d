package capacity

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Gauges tell Prometheus how well the MIG slices that nobody holds can be used.
// What they tell is kept up to date report by report: a scrape costs the same
// however many GPUs there are.
type Gauges struct {
	now func() time.Time

	mu     sync.Mutex
	census placement.Census
	pools  pools
	nodes  map[string]*counted
	// byAge holds every fresh report that is counted, the oldest first.
	byAge *list.List
	// GPUs with MIG on, by what is known of them; no more than one applies.
	known, unknown, unhealthy, taken int
	// Of nodes whose object was seen: those taken, and the pool of each.
	takenNodes map[string]bool
	poolOf     map[string]string
	demand     demand
}

// counted is what a node's report added to the sums.
type counted struct {
	at    time.Time
	gpus  []placement.GPU // whose report made sense, and does not call them unhealthy
	sick  int             // whose report made sense, and does
	total int
	place *list.Element // in byAge; nil once the report is too old to be believed
	taken bool          // the node is
	pool  string        // of the node; empty where nothing tells it
}

var (
	freeSlices    = prometheus.NewDesc("unpend_mig_free_slices", "Memory slices of GPUs with MIG on that nobody holds.", nil, nil)
	unusable      = prometheus.NewDesc("unpend_mig_unusable_slices", "Free memory slices left over when as many instances of the profile as fit were placed.", []string{"profile"}, nil)
	placeable     = prometheus.NewDesc("unpend_mig_placeable_instances", "Instances of the profile that the free slices could hold at once, idle instances re-made.", []string{"profile"}, nil)
	fragmentation = prometheus.NewDesc("unpend_mig_fragmentation_ratio", "Share of the free slices that the next request could not use, weighed by the demand of the last 24 h.", nil, nil)
	migGPUs       = prometheus.NewDesc("unpend_mig_gpus", "GPUs with MIG on: known ones are in the other figures; not those whose report is stale or makes no sense, that are unhealthy, or whose node is parked, quarantined or worked on.", []string{"report"}, nil)
)

// NewGauges makes gauges of an empty cluster. Register them with a registry.
func NewGauges(now func() time.Time) *Gauges {
	return &Gauges{now: now, nodes: map[string]*counted{}, pools: pools{}, takenNodes: map[string]bool{}, poolOf: map[string]string{}, byAge: list.New()}
}

// Set takes a node's report in, in the place of the one before.
func (g *Gauges) Set(geo *nodeprobe.NodeGeometry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(geo.Name)
	c := &counted{at: geo.Report.ObservedAt.Time, taken: g.takenNodes[geo.Name], pool: g.poolOf[geo.Name]}
	twins := view.Twins(geo.Report)
	for _, gpu := range geo.Report.GPUs {
		if gpu.MIG == nil || !gpu.MIG.Current {
			continue
		}
		c.total++
		read, err := placement.Read(geo.Name, gpu)
		switch {
		case err != nil || twins[gpu.UUID] || geo.Report.Source == nodeprobe.SourceLabels:
		case !gpu.Healthy:
			c.sick++
		default:
			c.gpus = append(c.gpus, read)
		}
	}
	g.nodes[geo.Name] = c
	g.queue(c)
	g.count(c, 1)
	g.expire(g.now())
}

// SetNode takes in whether somebody has taken a node, for nothing there is anybody's room, and
// which pool it is of.
func (g *Gauges) SetNode(n *corev1.Node) {
	g.place(n.Name, (&view.Node{Node: n}).Taken() != "", PoolOf(n))
}

// DeleteNode forgets whether somebody had taken a node, and its pool.
func (g *Gauges) DeleteNode(name string) { g.place(name, false, "") }

func (g *Gauges) place(name string, taken bool, pool string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.takenNodes, name)
	if taken {
		g.takenNodes[name] = true
	}
	delete(g.poolOf, name)
	if pool != "" {
		g.poolOf[name] = pool
	}
	if c := g.nodes[name]; c != nil && (c.taken != taken || c.pool != pool) {
		g.count(c, -1)
		c.taken, c.pool = taken, pool
		g.count(c, 1)
	}
}

// count adds a node's GPUs to the sums, or takes them out again.
func (g *Gauges) count(c *counted, sign int) {
	switch {
	case c.taken:
		g.taken += sign * c.total
	case c.place == nil:
		g.unknown += sign * c.total
	default:
		for _, gpu := range c.gpus {
			if sign > 0 {
				g.census.Add(gpu)
			} else {
				g.census.Remove(gpu)
			}
			g.pools.count(c.pool, gpu, sign)
		}
		g.known += sign * len(c.gpus)
		g.unhealthy += sign * c.sick
		g.unknown += sign * (c.total - len(c.gpus) - c.sick)
	}
}

// queue finds a report's place by age. Reports mostly come in the order of their times,
// so it is near the end.
func (g *Gauges) queue(c *counted) {
	after := g.byAge.Back()
	for after != nil && after.Value.(*counted).at.After(c.at) {
		after = after.Prev()
	}
	if after == nil {
		c.place = g.byAge.PushFront(c)
	} else {
		c.place = g.byAge.InsertAfter(c, after)
	}
}

// Delete forgets a node.
func (g *Gauges) Delete(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(node)
}

func (g *Gauges) drop(node string) {
	if c := g.nodes[node]; c != nil {
		g.count(c, -1)
		if c.place != nil {
			g.byAge.Remove(c.place)
		}
		delete(g.nodes, node)
	}
}

// doubt turns what was known of a node into unknown.
func (g *Gauges) doubt(c *counted) {
	g.count(c, -1)
	g.byAge.Remove(c.place)
	c.place = nil
	g.count(c, 1)
}

// Asked notes that an incident's pods wait for what they request; the same
// incident counts once an hour.
func (g *Gauges) Asked(i incident.Incident) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name := range i.Requests {
		if profile, ok := strings.CutPrefix(name, view.MIGPrefix); ok {
			g.demand.note(profile, i.ID, g.now())
		}
	}
}

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{freeSlices, unusable, placeable, fragmentation, migGPUs, poolFree, poolUnusable, poolPlaceable, poolFragmentation} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *Gauges) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.expire(now)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(freeSlices, float64(g.census.Free()))
	for _, t := range g.census.Tallies() {
		gauge(unusable, float64(t.Unusable), t.Profile)
		gauge(placeable, float64(t.Placeable), t.Profile)
	}
	shares := g.demand.since(now.Add(-24 * time.Hour))
	asked := func(profile string) float64 { return shares[view.Spelled(profile)] }
	gauge(fragmentation, g.census.Fragmentation(asked))
	g.pools.tell(asked, gauge)
	gauge(migGPUs, float64(g.known), "known")
	gauge(migGPUs, float64(g.unknown), "unknown")
	gauge(migGPUs, float64(g.unhealthy), "unhealthy")
	gauge(migGPUs, float64(g.taken), "taken")
}

// expire stops counting reports that are too old to be believed: each is met
// once.
func (g *Gauges) expire(now time.Time) {
	for e := g.byAge.Front(); e != nil && now.Sub(e.Value.(*counted).at) > cluster.MaxReportAge; e = g.byAge.Front() {
		g.doubt(e.Value.(*counted))
	}
}

// demand counts incidents by profile and hour.
type demand struct {
	hours []hour // oldest first, at most 25
}

type hour struct {
	start time.Time
	asked map[string]map[string]bool // by profile: the incidents
}

func (d *demand) note(profile, incident string, now time.Time) {
	start := now.Truncate(time.Hour)
	if n := len(d.hours); n == 0 || d.hours[n-1].start.Before(start) {
		d.hours = append(d.hours, hour{start, map[string]map[string]bool{}})
		d.hours = d.hours[max(0, len(d.hours)-25):]
	}
	asked := d.hours[len(d.hours)-1].asked
	if asked[profile] == nil {
		asked[profile] = map[string]bool{}
	}
	asked[profile][incident] = true
}

func (d *demand) since(from time.Time) map[string]float64 {
	sum := map[string]float64{}
	for _, h := range d.hours {
		if h.start.Before(from.Truncate(time.Hour)) {
			continue
		}
		for profile, incidents := range h.asked {
			sum[profile] += float64(len(incidents))
		}
	}
	return sum
}
