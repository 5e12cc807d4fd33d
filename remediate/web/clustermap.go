package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// inventory has the newest report of every node.
type inventory struct {
	mu  sync.Mutex
	all map[string]*nodeprobe.NodeGeometry
}

func newInventory() *inventory { return &inventory{all: map[string]*nodeprobe.NodeGeometry{}} }

// SetGeometry takes a node's report in, in the place of the one before. It is not changed
// afterwards.
func (p *Page) SetGeometry(geo *nodeprobe.NodeGeometry) {
	p.gpus.mu.Lock()
	defer p.gpus.mu.Unlock()
	p.gpus.all[geo.Name] = geo
}

// DeleteGeometry forgets a node.
func (p *Page) DeleteGeometry(node string) {
	p.gpus.mu.Lock()
	defer p.gpus.mu.Unlock()
	delete(p.gpus.all, node)
}

func (i *inventory) list() []*nodeprobe.NodeGeometry {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.SortedFunc(maps.Values(i.all), func(a, b *nodeprobe.NodeGeometry) int { return cmp.Compare(a.Name, b.Name) })
}

// nodesPerPage are drawn on one page of the map.
const nodesPerPage = 60

// clusterPage is what it shows.
type clusterPage struct {
	Denied          bool
	Nodes           []nodeView
	All, From, To   int
	Prev, Next      string
	GPUs, Known     int
	Free            int
	Fragmentation   string
	Profiles        []placement.Tally
	Whole, WholeFor int // GPUs without MIG: all, and those that nobody holds
}

type nodeView struct {
	Name, Product, Age string
	Stale              bool
	GPUs               []gpuView
}

type gpuView struct {
	Index  int
	Slices int
	Says   string
	Kind   string // of the whole GPU: mig, free, held, unknown, unhealthy
	Cells  []cell
}

// cluster shows every GPU, and what the room on them is good for.
func (p *Page) cluster(w http.ResponseWriter, r *http.Request, who *reader) {
	h := head{Title: "GPUs", User: who.user, At: "cluster", Refresh: 30}
	may, err := who.maySeeNodes(r.Context())
	if err != nil {
		p.trouble(w, r, err)
		return
	}
	if !may {
		p.render(w, r, http.StatusForbidden, h, clusterPage{Denied: true}.node())
		return
	}
	v, err := p.veil(r.Context(), who, nil)
	if err != nil {
		p.trouble(w, r, err)
		return
	}
	all := p.gpus.list()
	body := p.summed(all)
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || n < 1 || (n-1)*nodesPerPage >= len(all) {
		n = 1
	}
	shown := all[(n-1)*nodesPerPage : min(n*nodesPerPage, len(all))]
	body.From, body.To = (n-1)*nodesPerPage+min(1, len(shown)), (n-1)*nodesPerPage+len(shown)
	if n > 1 {
		body.Prev = fmt.Sprintf("/cluster?page=%d", n-1)
	}
	if body.To < len(all) {
		body.Next = fmt.Sprintf("/cluster?page=%d", n+1)
	}
	for _, geo := range shown {
		body.Nodes = append(body.Nodes, p.nodeOf(geo, v))
	}
	if v.err != nil {
		p.trouble(w, r, v.err)
		return
	}
	p.render(w, r, http.StatusOK, h, body.node())
}

// summed counts what can be believed: healthy GPUs of reports that are fresh and make sense.
func (p *Page) summed(all []*nodeprobe.NodeGeometry) clusterPage {
	out := clusterPage{All: len(all)}
	var census placement.Census
	for _, geo := range all {
		for _, g := range geo.Report.GPUs {
			out.GPUs++
			switch {
			case p.stale(geo) || !g.Healthy || g.Untold:
				continue
			case g.MIG == nil || !g.MIG.Current:
				out.Known++
				out.Whole++
				if len(g.Holders) == 0 {
					out.WholeFor++
				}
			case geo.Report.Source == nodeprobe.SourceLabels:
			default:
				if read, err := placement.Read(geo.Name, g); err == nil {
					out.Known++
					census.Add(read)
				}
			}
		}
	}
	out.Free, out.Profiles = census.Free(), census.Tallies()
	out.Fragmentation = fmt.Sprintf("%.0f %%", 100*census.Fragmentation(func(string) float64 { return 1 }))
	return out
}

func (p *Page) stale(geo *nodeprobe.NodeGeometry) bool {
	age := p.opts.Now().Sub(geo.Report.ObservedAt.Time)
	return age > p.opts.ReportsFor || age < -time.Minute
}

func (p *Page) nodeOf(geo *nodeprobe.NodeGeometry, v *veil) nodeView {
	n := nodeView{Name: clean(geo.Name), Stale: p.stale(geo), Age: ago(p.opts.Now().Sub(geo.Report.ObservedAt.Time))}
	products := map[string]int{}
	for _, g := range geo.Report.GPUs {
		products[clean(g.Product)]++
		n.GPUs = append(n.GPUs, gpuOf(g, geo.Report.Source == nodeprobe.SourceLabels, v))
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(products)) {
		text = append(text, fmt.Sprintf("%d × %s", products[name], name))
	}
	n.Product = strings.Join(text, ", ")
	return n
}

// gpuOf draws one GPU as wide as its slices are many.
func gpuOf(g nodeprobe.GPU, labels bool, v *veil) gpuView {
	out := gpuView{Index: g.Index, Slices: 8, Kind: "mig"}
	switch {
	case !g.Healthy || g.Untold:
		out.Kind, out.Says = "unhealthy", "unhealthy"
	case g.MIG == nil || !g.MIG.Current:
		out.whole(g.Holders, v)
	case labels:
		out.Kind, out.Says = "unknown", "positions are not reported"
	default:
		out.instances(g, v)
	}
	if out.Kind != "mig" {
		out.Cells = []cell{{W: out.Slices, Kind: out.Kind}}
	}
	out.Says = fmt.Sprintf("GPU %d: %s", g.Index, out.Says)
	return out
}

func (g *gpuView) whole(holders []nodeprobe.Holder, v *veil) {
	if len(holders) == 0 {
		g.Kind, g.Says = "free", "free"
		return
	}
	var names []string
	g.Kind = "held"
	for _, h := range holders {
		if h.Unknown {
			g.Kind = "unknown"
		}
		names = append(names, v.holder(h))
	}
	g.Says = "held by " + strings.Join(names, ", ")
}

func (g *gpuView) instances(gpu nodeprobe.GPU, v *veil) {
	grid, err := placement.GridOf(gpu)
	read, wrong := placement.Read("", gpu)
	if err != nil || wrong != nil {
		g.Kind, g.Says = "unknown", "its report makes no sense"
		return
	}
	g.Slices = grid.Slices()
	at, held := 0, 0
	var says []string
	for _, s := range read.Slots {
		if s.Start > at {
			g.Cells = append(g.Cells, cell{X: at, W: s.Start - at, Kind: "free"})
		}
		c := cell{X: s.Start, W: s.Size, Kind: "idle"}
		text := "nobody"
		if s.Held {
			c.Kind, text = "held", v.holder(s.Holder)
			held += s.Size
		}
		if s.Unknown {
			c.Kind = "unknown"
		}
		says = append(says, clean(s.Profile)+"@"+strconv.Itoa(s.Start)+" "+text)
		g.Cells = append(g.Cells, c)
		at = s.Start + s.Size
	}
	if at < g.Slices {
		g.Cells = append(g.Cells, cell{X: at, W: g.Slices - at, Kind: "free"})
	}
	g.Says = fmt.Sprintf("%d of %d memory slices held; %s", held, g.Slices, cmp.Or(strings.Join(says, ", "), "no instance"))
}

// holder is who holds something, as far as the reader may know.
func (v *veil) holder(h nodeprobe.Holder) string {
	switch {
	case h.Unknown || h.Pod == "":
		return "somebody who could not be told"
	case !v.may(h.Namespace):
		return "a pod in another namespace"
	}
	return clean(h.Namespace + "/" + h.Pod)
}
