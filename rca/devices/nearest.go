package devices

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// nearest picks, of the devices that do not match, the one that misses least: of
// the right class, with the fewest clauses not met, by the smallest difference. nil
// when there is none.
func (a *Ask) nearest(devices []*Device) *Device {
	var near *Device
	best := 0.0
	for _, d := range devices {
		r := a.Readings[d]
		if r.Fits {
			continue
		}
		miss := 0.0
		for _, f := range r.Failed {
			miss += d.miss(f.Text)
		}
		if near != nil {
			old := a.Readings[near]
			if cmp.Or(view.Rank(r.class)-view.Rank(old.class), len(r.Failed)-len(old.Failed), cmp.Compare(miss, best)) >= 0 {
				continue
			}
		}
		near, best = d, miss
	}
	return near
}

// NearOn is the nearest device of all or, where some match, of those on a node, if it
// has none that do.
func (v *Claims) NearOn(a *Ask, node string) *Device {
	if len(a.matching) == 0 {
		return a.near
	}
	if slices.ContainsFunc(v.ByNode[node], func(d *Device) bool { return a.Readings[d].Fits }) {
		return nil
	}
	return a.nearest(v.ByNode[node])
}

// miss is how far the device is from a clause, between 0 and 1.
func (d *Device) miss(text string) float64 {
	c, ok := ComparisonOf(text)
	if !ok {
		return 1
	}
	has, ok := d.Value(c.Property)
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
func (a *Ask) fails(near *Device) string {
	var asked, has []string
	for _, f := range a.Readings[near].Failed {
		asked = append(asked, ShortClause(f.Text))
		for _, p := range Properties(f.Text) {
			value, ok := near.Value(p)
			text := "no " + p.Name
			if _, simple := ComparisonOf(f.Text); ok && simple {
				text = value
			} else if ok {
				text = p.Name + " " + value
			}
			if !slices.Contains(has, text) {
				has = append(has, text)
			}
		}
		if len(Properties(f.Text)) == 0 && strings.Contains(f.Text, "device.driver") {
			has = append(has, near.ID.Driver)
		}
	}
	says := strings.Join(asked, " and ") + " fails"
	if len(has) > 0 {
		says += ": the nearest device has " + strings.Join(has, ", ")
	}
	return says
}

// nearFact is what the nearest device is.
func (a *Ask) nearFact(d *Device) diagnosis.Evidence {
	var parts []string
	at := "spec.devices[name=" + d.ID.Name + "]"
	claims := []diagnosis.Claim{diagnosis.That("spec.driver", "", diagnosis.Is, d.ID.Driver), diagnosis.That(at, "", diagnosis.Exists, "")}
	for _, f := range a.Readings[d].Failed {
		for _, p := range Properties(f.Text) {
			value, ok := d.Value(p)
			if ok {
				claims = append(claims, diagnosis.That(at, "", diagnosis.Contains, value))
			} else {
				value = "not published"
			}
			if text := p.Name + " " + value; !slices.Contains(parts, text) {
				parts = append(parts, text)
			}
		}
	}
	return diagnosis.Fact(d.Ref(), fmt.Sprintf("nearest device %s of driver %s: %s", d.ID.Name, d.ID.Driver, strings.Join(parts, ", ")), claims...)
}
