package rca

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// nearest picks, of the devices that do not match, the one that misses least: of
// the right class, with the fewest clauses not met, by the smallest difference. nil
// when there is none.
func (a *deviceAsk) nearest(devices []*device) *device {
	var near *device
	best := 0.0
	for _, d := range devices {
		r := a.readings[d]
		if r.fits {
			continue
		}
		miss := 0.0
		for _, f := range r.failed {
			miss += d.miss(f.text)
		}
		if near != nil {
			old := a.readings[near]
			if cmp.Or(rank(r.class)-rank(old.class), len(r.failed)-len(old.failed), cmp.Compare(miss, best)) >= 0 {
				continue
			}
		}
		near, best = d, miss
	}
	return near
}

// nearOn is the nearest device of all or, where some match, of those on a node, if it
// has none that do.
func (v *claimView) nearOn(a *deviceAsk, node string) *device {
	if len(a.matching) == 0 {
		return a.near
	}
	if slices.ContainsFunc(v.byNode[node], func(d *device) bool { return a.readings[d].fits }) {
		return nil
	}
	return a.nearest(v.byNode[node])
}

// miss is how far the device is from a clause, between 0 and 1.
func (d *device) miss(text string) float64 {
	c, ok := comparisonOf(text)
	if !ok {
		return 1
	}
	has, ok := d.value(c.property)
	if !ok {
		return 1
	}
	want, got := number(c.value), number(has)
	if math.IsNaN(want) || math.IsNaN(got) || want == 0 && got == 0 {
		return 1
	}
	return math.Abs(want-got) / (math.Abs(want) + math.Abs(got))
}

func number(s string) float64 {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	if q, err := resource.ParseQuantity(s); err == nil {
		return q.AsApproximateFloat64()
	}
	return math.NaN()
}

// fails says which clauses the nearest device does not meet, and what it has.
func (a *deviceAsk) fails(near *device) string {
	var asked, has []string
	for _, f := range a.readings[near].failed {
		asked = append(asked, short(f.text))
		for _, p := range properties(f.text) {
			value, ok := near.value(p)
			text := "no " + p.name
			if _, simple := comparisonOf(f.text); ok && simple {
				text = value
			} else if ok {
				text = p.name + " " + value
			}
			if !slices.Contains(has, text) {
				has = append(has, text)
			}
		}
		if len(properties(f.text)) == 0 && strings.Contains(f.text, "device.driver") {
			has = append(has, near.id.driver)
		}
	}
	says := strings.Join(asked, " and ") + " fails"
	if len(has) > 0 {
		says += ": the nearest device has " + strings.Join(has, ", ")
	}
	return says
}

// nearFact is what the nearest device is.
func (a *deviceAsk) nearFact(d *device) Evidence {
	var parts []string
	for _, f := range a.readings[d].failed {
		for _, p := range properties(f.text) {
			value, ok := d.value(p)
			if !ok {
				value = "not published"
			}
			if text := p.name + " " + value; !slices.Contains(parts, text) {
				parts = append(parts, text)
			}
		}
	}
	return Evidence{d.ref(), fmt.Sprintf("nearest device %s of driver %s: %s", d.id.name, d.id.driver, strings.Join(parts, ", "))}
}
