package devices

import (
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

func TestClauses(t *testing.T) {
	cases := map[string][]string{
		`a`:                             {`a`},
		`a && b`:                        {`a`, `b`},
		`a&&b&&c`:                       {`a`, `b`, `c`},
		`(a && b) && c`:                 {`a`, `b`, `c`},
		`((a))`:                         {`a`},
		`(a) && (b || c)`:               {`a`, `b || c`},
		`(a) == (b)`:                    {`(a) == (b)`},
		`a && b || c`:                   {`a && b || c`},
		`a ? b && c : d`:                {`a ? b && c : d`},
		`a.?b.orValue(true) && c`:       {`a.?b.orValue(true)`, `c`},
		`s == "x && y" && b`:            {`s == "x && y"`, `b`},
		`s == 'it\'s && y' && b`:        {`s == 'it\'s && y'`, `b`},
		`s == r'c:\' && b`:              {`s == r'c:\'`, `b`},
		`s == """a" && "b""" && b`:      {`s == """a" && "b"""`, `b`},
		"a && // b && c\n d":            {`a`, "// b && c\n d"},
		`[a && b].all(x, x && y) && c`:  {`[a && b].all(x, x && y)`, `c`},
		`a && (b`:                       {`a && (b`}, // no expression at all
		`a) && (b`:                      {`a) && (b`},
		`"unfinished && b`:              {`"unfinished && b`},
		``:                              {``},
		`a &&& b`:                       {`a`, `& b`},
		`{"a": b && c}.size() > 0 && d`: {`{"a": b && c}.size() > 0`, `d`},
	}
	for expression, want := range cases {
		if got := Clauses(expression); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

// For what the scheduler's own compiler accepts, the clauses are true together
// exactly when the whole is: for a device that has everything and one that has
// nothing.
func FuzzClauses(f *testing.F) {
	for _, s := range []string{
		`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"`,
		`(device.driver == 'a && b') || true && false`,
		`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0 && (true ? false : true)`,
		`true && [1, 2].exists(i, i > 1 && true) && !(false && true)`,
		`r'\' == '\\' && """"&&""" != '' // && false`,
		`device.attributes["gpu.nvidia.com"].?type.orValue("&&") == b'\'' || true`,
		"true && // ' \" (\n (true)", `((`, `"\`, `'''`, `&&`, `?`, `(a)&&`,
	} {
		f.Add(s)
	}
	cache := cel.NewCache(compiled, cel.Features{EnableConsumableCapacity: true})
	kind := "mig"
	devices := []cel.Device{
		{Driver: "gpu.nvidia.com", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("9728Mi")}}},
		{Driver: "other.example.com"},
	}
	f.Fuzz(func(t *testing.T, expression string) {
		parts := Clauses(expression)
		if len(parts) == 1 || len(expression) > 1000 { // the compiler is slow on long nonsense
			return
		}
		whole := cache.GetOrCompile(expression)
		if whole.Error != nil {
			return
		}
		for _, d := range devices {
			want, _, err := whole.DeviceMatches(t.Context(), d)
			all, failed := true, false
			for _, part := range parts {
				c := cache.GetOrCompile(part)
				if c.Error != nil && strings.Contains(c.Error.Detail, "Syntax error") {
					t.Fatalf("%q of %q: %v", part, expression, c.Error)
				}
				if c.Error != nil {
					return // a clause of another type than bool, which && takes and a selector does not
				}
				got, _, err := c.DeviceMatches(t.Context(), d)
				all, failed = all && got && err == nil, failed || err == nil && !got
			}
			if err == nil && want != all || err == nil && !want && !failed {
				t.Errorf("%q is %v, its clauses %q are %v", expression, want, parts, all)
			}
		}
	})
}
