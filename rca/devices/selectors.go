package devices

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/unpend/unpend/rca/view"
)

// reading is what selectors say of one device.
type reading struct {
	class  bool     // the class takes it
	Fits   bool     // the request takes it too
	Failed []Clause // what it does not meet, of the class if that refuses it
	// fault is a clause that could not be evaluated on it.
	fault *fault
}

// Clause is a part of one selector.
type Clause struct {
	Text     string
	Selector int
	Class    bool // of the class, not of the request
}

// fault is a selector that does not compile, or not evaluate on a device.
type fault struct {
	Clause
	Device *Device // nil: it does not compile
	Err    string
}

// readDevice asks the selectors as the scheduler does: those of the class first,
// and no further than the first that refuses (allocator.go, selectorsMatch).
func (inv *Inventory) readDevice(ctx context.Context, class, own []resourcev1.DeviceSelector, d *Device) reading {
	var r reading
	if r.class = inv.meets(ctx, class, true, d, &r); r.class {
		r.Fits = inv.meets(ctx, own, false, d, &r)
	}
	return r
}

func (inv *Inventory) meets(ctx context.Context, selectors []resourcev1.DeviceSelector, class bool, d *Device, r *reading) bool {
	all := true
	for i, s := range selectors {
		if s.CEL == nil {
			continue
		}
		ok, err := inv.eval(ctx, s.CEL.Expression, d)
		if err != nil && all { // behind a selector that refuses the scheduler asks nothing
			r.fault = &fault{Clause{s.CEL.Expression, i, class}, d, err.Error()}
		}
		if ok {
			continue
		}
		all = false
		for _, text := range Clauses(s.CEL.Expression) {
			if ok, err := inv.eval(ctx, text, d); !ok || err != nil {
				r.Failed = append(r.Failed, Clause{text, i, class})
				if err != nil && r.fault != nil && r.fault.Selector == i && r.fault.Class == class {
					r.fault.Text = text
				}
			}
		}
	}
	return all
}

// eval asks one expression of one device, in the scheduler's own environment.
func (inv *Inventory) eval(ctx context.Context, expression string, d *Device) (bool, error) {
	c := inv.selectors.GetOrCompile(expression)
	if c.Error != nil {
		return false, c.Error
	}
	ok, _, err := c.DeviceMatches(ctx, cel.Device{Driver: d.ID.Driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity})
	if err != nil {
		return false, cel.EnhanceRuntimeError(err)
	}
	return ok, nil
}

// uncompiled finds the first selector that does not compile, and in it the first
// clause.
func (inv *Inventory) uncompiled(selectors []resourcev1.DeviceSelector, class bool) *fault {
	for i, s := range selectors {
		if s.CEL == nil {
			continue
		}
		c := inv.selectors.GetOrCompile(s.CEL.Expression)
		if c.Error == nil {
			continue
		}
		f := &fault{Clause: Clause{s.CEL.Expression, i, class}, Err: oneLine(c.Error.Detail)}
		for _, text := range Clauses(s.CEL.Expression) {
			if part := inv.selectors.GetOrCompile(text); part.Error != nil {
				f.Text, f.Err = text, oneLine(part.Error.Detail)
				break
			}
		}
		return f
	}
	return nil
}

// stumbled is where in a clause the compiler stumbled, which is not where in the
// selector.
var stumbled = regexp.MustCompile(`^<input>:\d+:\d+: `)

// oneLine takes the message out of what CEL's compiler says: below it the source is
// drawn.
func oneLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.TrimPrefix(s, "compilation failed: ")
	return stumbled.ReplaceAllString(strings.TrimPrefix(s, "ERROR: "), "")
}

// The ways in which people write what a device must have.
const (
	quoted = `(?:"([^"]*)"|'([^']*)')`
	field  = `device\.(attributes|capacity)\[\s*` + quoted + `\s*\](?:\.([A-Za-z_]\w*)|\[\s*` + quoted + `\s*\])`
)

var (
	reference = regexp.MustCompile(field)
	driverIs  = regexp.MustCompile(`^device\.driver\s*==\s*` + quoted + `$`)
	// device.attributes[…].name == literal
	literal = regexp.MustCompile(`^` + field + `\s*(==|!=|>=|<=|>|<)\s*(.+)$`)
	// device.capacity[…].name.compareTo(quantity(…)) >= 0
	compared = regexp.MustCompile(`^` + field + `\.compareTo\(\s*quantity\(\s*` + quoted + `\s*\)\s*\)\s*(==|!=|>=|<=|>|<)\s*0$`)
)

// Property is an attribute or a capacity that a clause speaks of.
type Property struct {
	Capacity bool
	Domain   string
	Name     string
}

func propertyOf(m []string) Property {
	return Property{m[1] == "capacity", cmp.Or(m[2], m[3]), cmp.Or(m[4], m[5], m[6])}
}

// Properties lists what an expression speaks of, in its order.
func Properties(expression string) []Property {
	var out []Property
	for _, m := range reference.FindAllStringSubmatch(expression, -1) {
		if p := propertyOf(m); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// drivers lists the drivers that selectors insist on; none: any will do.
func drivers(selectors []resourcev1.DeviceSelector) []string {
	var out []string
	for _, s := range selectors {
		if s.CEL == nil {
			continue
		}
		for _, text := range Clauses(s.CEL.Expression) {
			if m := driverIs.FindStringSubmatch(text); m != nil {
				out = append(out, cmp.Or(m[1], m[2]))
			}
		}
	}
	return out
}

// comparison is a clause of the form "property op value".
type comparison struct {
	Property
	Op, value string // the value as CEL has it; of a capacity the quantity alone
}

// ComparisonOf reads a clause that compares one property with a constant; false for any
// other clause.
func ComparisonOf(text string) (comparison, bool) {
	text = strings.TrimSpace(text)
	if m := compared.FindStringSubmatch(text); m != nil {
		return comparison{propertyOf(m), m[9], cmp.Or(m[7], m[8])}, true
	}
	m := literal.FindStringSubmatch(text)
	if m == nil || len(Properties(m[8])) > 0 {
		return comparison{}, false
	}
	return comparison{propertyOf(m), m[7], strings.TrimSpace(m[8])}, true
}

// ShortClause is a clause for people.
func ShortClause(text string) string {
	if c, ok := ComparisonOf(text); ok {
		return fmt.Sprintf("%s %s %s", c.Name, c.Op, c.value)
	}
	return view.Cut(strings.Join(strings.Fields(text), " "), 120)
}

// Value is what the device has of a property, as CEL would write it.
func (d *Device) Value(p Property) (string, bool) {
	// Without a domain a property is of the driver's own.
	if p.Domain == d.ID.Driver {
		if text, ok := d.named(p.Capacity, resourcev1.QualifiedName(p.Name)); ok {
			return text, true
		}
	}
	return d.named(p.Capacity, resourcev1.QualifiedName(p.Domain+"/"+p.Name))
}

func (d *Device) named(capacity bool, name resourcev1.QualifiedName) (string, bool) {
	if capacity {
		c, ok := d.Capacity[name]
		if !ok {
			return "", false
		}
		return c.Value.String(), true
	}
	a, ok := d.Attributes[name]
	if !ok {
		return "", false
	}
	return attributeText(a), true
}

func attributeText(a resourcev1.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return strconv.Quote(*a.StringValue)
	case a.IntValue != nil:
		return fmt.Sprint(*a.IntValue)
	case a.BoolValue != nil:
		return fmt.Sprint(*a.BoolValue)
	case a.VersionValue != nil:
		return *a.VersionValue
	}
	return "a list"
}
