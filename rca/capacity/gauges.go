package capacity

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	nodes  map[string]*counted
	// byAge holds every fresh report that is counted, the oldest first.
	byAge *list.List
	// known and unknown count GPUs with MIG on.
	known, unknown int
	demand         demand
}

// counted is what a node's report added to the sums.
type counted struct {
	at    time.Time
	gpus  []placement.GPU // whose report made sense
	total int
	place *list.Element // in byAge; nil once the report is too old to be believed
}

var (
	freeSlices    = prometheus.NewDesc("unpend_mig_free_slices", "Memory slices of GPUs with MIG on that nobody holds.", nil, nil)
	unusable      = prometheus.NewDesc("unpend_mig_unusable_slices", "Free memory slices left over when as many instances of the profile as fit were placed.", []string{"profile"}, nil)
	placeable     = prometheus.NewDesc("unpend_mig_placeable_instances", "Instances of the profile that the free slices could hold at once, idle instances re-made.", []string{"profile"}, nil)
	fragmentation = prometheus.NewDesc("unpend_mig_fragmentation_ratio", "Share of the free slices that the next request could not use, weighed by the demand of the last 24 h.", nil, nil)
	migGPUs       = prometheus.NewDesc("unpend_mig_gpus", "GPUs with MIG on, by whether their report is fresh and makes sense.", []string{"report"}, nil)
)

// NewGauges makes gauges of an empty cluster. Register them with a registry.
func NewGauges(now func() time.Time) *Gauges {
	return &Gauges{now: now, nodes: map[string]*counted{}, byAge: list.New()}
}

// Set takes a node's report in, in the place of the one before.
func (g *Gauges) Set(geo *nodeprobe.NodeGeometry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(geo.Name)
	c := &counted{at: geo.Report.ObservedAt.Time}
	twins := view.Twins(geo.Report)
	for _, gpu := range geo.Report.GPUs {
		if gpu.MIG == nil || !gpu.MIG.Current {
			continue
		}
		c.total++
		if read, err := placement.Read(geo.Name, gpu); err == nil && !twins[gpu.UUID] && geo.Report.Source != nodeprobe.SourceLabels {
			c.gpus = append(c.gpus, read)
		}
	}
	g.nodes[geo.Name] = c
	g.unknown += c.total
	g.believe(c)
	g.expire(g.now())
}

// believe counts a report. Reports mostly come in the order of their times, so
// its place is near the end.
func (g *Gauges) believe(c *counted) {
	after := g.byAge.Back()
	for after != nil && after.Value.(*counted).at.After(c.at) {
		after = after.Prev()
	}
	if after == nil {
		c.place = g.byAge.PushFront(c)
	} else {
		c.place = g.byAge.InsertAfter(c, after)
	}
	for _, gpu := range c.gpus {
		g.census.Add(gpu)
	}
	g.known += len(c.gpus)
	g.unknown -= len(c.gpus)
}

// Delete forgets a node.
func (g *Gauges) Delete(node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(node)
}

func (g *Gauges) drop(node string) {
	if c := g.nodes[node]; c != nil {
		g.doubt(c)
		g.unknown -= c.total
		delete(g.nodes, node)
	}
}

// doubt turns what was known of a node into unknown.
func (g *Gauges) doubt(c *counted) {
	if c.place == nil {
		return
	}
	g.byAge.Remove(c.place)
	c.place = nil
	for _, gpu := range c.gpus {
		g.census.Remove(gpu)
	}
	g.known -= len(c.gpus)
	g.unknown += len(c.gpus)
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
	for _, d := range []*prometheus.Desc{freeSlices, unusable, placeable, fragmentation, migGPUs} {
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
	gauge(fragmentation, g.census.Fragmentation(func(profile string) float64 { return shares[view.Spelled(profile)] }))
	gauge(migGPUs, float64(g.known), "known")
	gauge(migGPUs, float64(g.unknown), "unknown")
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
