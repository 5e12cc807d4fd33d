package idle

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/unpend/unpend/rca/diagnosis"
)

const (
	// engineActive is the share of time, 0 to 1, in which a graphics or compute engine
	// worked, of a GPU or of a MIG instance; engineRatio is its name from dcgm-exporter
	// 4.9 on.
	engineActive = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	engineRatio  = "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"
	// gpuUtil is the same of a whole GPU in percent, and gpuRatio, from dcgm-exporter 4.9
	// on, 0 to 1. MIG has none (DCGM and nvidia-smi say N/A), so they are read only where
	// no instance is.
	gpuUtil  = "DCGM_FI_DEV_GPU_UTIL"
	gpuRatio = "DCGM_FI_DEV_GPU_UTIL_RATIO"
)

// metrics are all that tell of work. A cluster whose exporters are being upgraded has some
// of either generation, and a pod of an exporter that was just replaced has both.
var metrics = []metric{{engineActive, 100, false}, {engineRatio, 100, false}, {gpuUtil, 1, true}, {gpuRatio, 100, true}}

// metric is one of them, with what makes percent of it.
type metric struct {
	name  string
	scale float64
	whole bool // it is true of whole GPUs alone
}

// match chooses its series.
func (m metric) match() string {
	if m.whole {
		return `GPU_I_ID="",`
	}
	return ""
}

// lookedFor names those that were asked for of a holder.
func lookedFor(h diagnosis.Holder) string {
	var names []string
	for _, m := range metrics {
		if !m.whole || !h.MIG {
			names = append(names, m.name)
		}
	}
	return strings.Join(names, ", ")
}

// grid is a time in parts of one length: the last ends at the moment that is asked
// about.
type grid struct {
	end  time.Time
	part time.Duration
	n    int
}

// start is where the first part ends, as the API counts.
func (g grid) start() time.Time { return g.began(1) }

// began is when part i did.
func (g grid) began(i int) time.Time { return g.end.Add(-time.Duration(g.n-i) * g.part) }

// window parts the window so that none of its parts is long.
func (c *Client) window(at time.Time) grid {
	n := max(parts, int((c.opts.Window+longest-1)/longest))
	return grid{at.Truncate(time.Millisecond), (c.opts.Window / time.Duration(n)).Truncate(time.Millisecond), n}
}

// back is the window and the time before it, in the same parts.
func (g grid) back() grid {
	g.n = max(g.n, min(int(lookBack/g.part), maxBack))
	return g
}

// query asks for the most of each part, by pod and device. Where a scrape does not
// honour the exporter's labels, pod is the exporter and exported_pod the holder.
// Points carry over nothing from the parts before, as an instant selector would.
func (c *Client) query(ctx context.Context, metric, match string, g grid, holders []diagnosis.Holder) (model.Matrix, error) {
	spaces, pods := map[string]bool{}, map[string]bool{}
	for _, h := range holders {
		spaces[regexp.QuoteMeta(h.Namespace)] = true
		pods[regexp.QuoteMeta(h.Name)] = true
	}
	in, who := oneOf(spaces), `".+"`
	if len(holders) <= maxNamed {
		who = oneOf(pods)
	}
	length := fmt.Sprintf("%dms", g.part.Milliseconds())
	text := fmt.Sprintf(`max by (namespace, pod, exported_namespace, exported_pod, UUID, gpu, GPU_I_ID) (`+
		`max_over_time(%[1]s{%[2]sexported_pod=~%[5]s,exported_namespace=~%[3]s}[%[4]s]) or max_over_time(%[1]s{%[2]sexported_pod="",pod=~%[5]s,namespace=~%[3]s}[%[4]s]))`,
		metric, match, in, length, who)
	value, warnings, _, err := c.api.QueryRange(ctx, text, promv1.Range{Start: g.start(), End: g.end, Step: g.part})
	switch {
	case err != nil:
		return nil, err
	case len(warnings) > 0:
		return nil, fmt.Errorf("answers in part only: %s", warnings[0]) // who is missing may have worked
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("answers a range with %s", value.Type())
	}
	return matrix, nil
}

// oneOf is a matcher's expression for any of these, as PromQL quotes it.
func oneOf(expressions map[string]bool) string {
	return strconv.Quote(strings.Join(slices.Sorted(maps.Keys(expressions)), "|"))
}

// device is a GPU, or a GPU instance of one.
type device struct{ uuid, gpu, instance string }

// seen is how much each device of a pod worked, in percent, part by part; NaN where
// nothing was seen.
type seen map[diagnosis.PodName]map[device][]float64

// add takes series in. Several of one device (an exporter that was restarted) are
// one: the most of them counts.
func (s seen) add(m model.Matrix, g grid, scale float64) {
	for _, series := range m {
		pod, d := owner(series.Metric), deviceOf(series.Metric)
		if s[pod] == nil {
			s[pod] = map[device][]float64{}
		}
		points := s[pod][d]
		if points == nil {
			points = slices.Repeat([]float64{math.NaN()}, g.n)
			s[pod][d] = points
		}
		for _, v := range series.Values {
			i := int(math.Round(float64(v.Timestamp.Time().Sub(g.start())) / float64(g.part)))
			work := scale * float64(v.Value)
			if i >= 0 && i < g.n && !math.IsNaN(work) && !(points[i] >= work) {
				points[i] = work
			}
		}
	}
}

// addWhole takes in what is true of whole GPUs alone: not of a pod that was seen on
// MIG instances.
func (s seen) addWhole(m model.Matrix, g grid, scale float64) {
	s.add(slices.DeleteFunc(m, func(series *model.SampleStream) bool {
		for d := range s[owner(series.Metric)] {
			if d.instance != "" {
				return true
			}
		}
		return false
	}), g, scale)
}

func owner(m model.Metric) diagnosis.PodName {
	if pod := m["exported_pod"]; pod != "" {
		return diagnosis.PodName{Namespace: string(m["exported_namespace"]), Name: string(pod)}
	}
	return diagnosis.PodName{Namespace: string(m["namespace"]), Name: string(m["pod"])}
}

func deviceOf(m model.Metric) device {
	return device{string(m["UUID"]), string(m["gpu"]), string(m["GPU_I_ID"])}
}
