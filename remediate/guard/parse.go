package guard

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Parse reads limits.yaml. What it does not name is as Defaults has it. The error
// has a sentence for each field that is wrong, and then the limits are the defaults.
func Parse(text []byte) (Limits, error) {
	if bytes.Contains(text, []byte("\n---")) {
		return Defaults(), fmt.Errorf("read %s: it is more than one document", LimitsKey)
	}
	var doc map[string]any
	if err := yaml.UnmarshalStrict(text, &doc); err != nil {
		return Defaults(), fmt.Errorf("read %s: %w", LimitsKey, err)
	}
	l := Defaults()
	wrong := l.readFreeze(doc["freeze"])
	delete(doc, "freeze")
	values := map[string]any{}
	flatten("", doc, values)
	if wrong = append(fill(l.fields(), values), wrong...); len(wrong) > 0 {
		return Defaults(), fmt.Errorf("read %s: %w", LimitsKey, errors.Join(wrong...))
	}
	return l, nil
}

// Paused says whether the ConfigMap's kill switch is on. Who writes there
// anything but "false" means to stop.
func Paused(data map[string]string) bool {
	text, set := data[PausedKey]
	return set && strings.TrimSpace(text) != "false"
}

func (l *Limits) readFreeze(value any) []error {
	if value == nil {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		return []error{errors.New("freeze must be a list of cron, duration and timezone")}
	}
	var wrong []error
	for i, item := range list {
		at := fmt.Sprintf("freeze[%d]", i)
		doc, ok := item.(map[string]any)
		if !ok {
			wrong = append(wrong, fmt.Errorf("%s must have cron, duration and timezone", at))
			continue
		}
		f := Freeze{Timezone: "UTC"}
		values := map[string]any{}
		flatten(at, doc, values)
		bad := fill(f.fields(at+"."), values)
		if len(bad) == 0 {
			bad = f.check(at)
		}
		wrong = append(wrong, bad...)
		l.Freeze = append(l.Freeze, f)
	}
	return wrong
}

// field is one limit by its name.
type field struct {
	path string
	set  func(any) error // errors say what it must be
	get  func() any
}

func whole(path string, at *int, least, most int) field {
	return field{path, func(v any) error {
		n, ok := v.(float64) // so JSON's numbers are decoded
		if !ok || n != math.Trunc(n) || n < float64(least) || n > float64(most) {
			return fmt.Errorf("it must be a whole number from %d to %d", least, most)
		}
		*at = int(n)
		return nil
	}, func() any { return *at }}
}

func span(path string, at *time.Duration, least time.Duration) field {
	return field{path, func(v any) error {
		text, _ := v.(string)
		d, err := time.ParseDuration(text)
		if err != nil || d < least {
			return fmt.Errorf("it must be a duration such as 90s, 15m or 24h, of at least %s", short(least))
		}
		*at = d
		return nil
	}, func() any { return short(*at) }}
}

func flag(path string, at *bool) field {
	return field{path, func(v any) error {
		b, ok := v.(bool)
		if !ok {
			return errors.New("it must be true or false")
		}
		*at = b
		return nil
	}, func() any { return *at }}
}

func words(path string, at *string) field {
	return field{path, func(v any) error {
		s, ok := v.(string)
		if !ok || strings.TrimSpace(s) == "" {
			return errors.New("it must be a text that is not empty")
		}
		*at = s
		return nil
	}, func() any { return *at }}
}

// flatten lists the values of a document by their path; what is null counts as absent.
func flatten(at string, doc, out map[string]any) {
	for key, value := range doc {
		path := strings.TrimPrefix(at+"."+key, ".")
		if inner, ok := value.(map[string]any); ok {
			flatten(path, inner, out)
		} else if value != nil {
			out[path] = value
		}
	}
}

// fill sets the fields that values name, and says what is wrong with the others.
func fill(fields []field, values map[string]any) []error {
	var wrong []error
	for _, path := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.path == path })
		if i < 0 {
			wrong = append(wrong, unknown(fields, path, values[path]))
			continue
		}
		if err := fields[i].set(values[path]); err != nil {
			wrong = append(wrong, fmt.Errorf("%s is %v: %w", path, values[path], err))
		}
	}
	return wrong
}

func unknown(fields []field, path string, value any) error {
	parent := path[:strings.LastIndex(path, ".")+1]
	var known, inner []string
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.path, path+"."); ok {
			inner = append(inner, rest)
		}
		if rest, ok := strings.CutPrefix(f.path, parent); ok {
			rest, _, _ = strings.Cut(rest, ".")
			known = append(known, rest)
		}
	}
	if len(inner) > 0 {
		return fmt.Errorf("%s is %v: it must have %s", path, value, strings.Join(inner, ", "))
	}
	if parent == "" {
		known = append(known, "freeze")
	}
	return fmt.Errorf("%s is not known: there are %s", path, strings.Join(slices.Compact(known), ", "))
}

// nested is the values of fields as a document.
func nested(fields []field) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		parent, key, deep := strings.Cut(f.path, ".")
		if !deep {
			out[f.path] = f.get()
			continue
		}
		inner, ok := out[parent].(map[string]any)
		if !ok {
			inner = map[string]any{}
			out[parent] = inner
		}
		inner[key] = f.get()
	}
	return out
}

// short writes a duration without parts that are 0: 1h, 10m, 90s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
