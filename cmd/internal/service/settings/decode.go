package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// decode reads a configuration strictly: a key nobody knows is a mistake. Whatever cannot be read
// is told by its key.
func (c *Config) decode(data []byte) error {
	err := yaml.UnmarshalStrict(data, c)
	if err == nil {
		return nil
	}
	if named := misread("", asWritten(data), func(v any) any { return v }); len(named) > 0 {
		return errors.Join(named...)
	}
	return err // of the text as a whole, such as a key that is there twice
}

// asWritten are the keys and values of a text, numbers as they stand there; none where it has none.
func asWritten(data []byte) (all map[string]any) {
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&all) != nil {
		return nil
	}
	return all
}

// misread names the values that cannot be read: each is tried in a configuration with nothing
// else in it, which alone makes one around it. What is around a value comes first.
func misread(key string, v any, alone func(any) any) (out []error) {
	switch v := v.(type) {
	case map[string]any:
		if !readable(alone(map[string]any{})) {
			return []error{notAs(key, nil, alone)}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			its := strings.TrimPrefix(key+"."+name, ".")
			out = append(out, misread(its, v[name], func(v any) any { return alone(map[string]any{name: v}) })...)
		}
	case []any:
		if !readable(alone([]any{})) {
			return []error{notAs(key, nil, alone)}
		}
		for i, one := range v {
			out = append(out, misread(fmt.Sprintf("%s[%d]", key, i), one, func(v any) any { return alone([]any{v}) })...)
		}
	default:
		if !readable(alone(v)) {
			return []error{notAs(key, v, alone)}
		}
	}
	return out
}

func readable(config any) bool {
	data, err := yaml.Marshal(config)
	return err == nil && yaml.UnmarshalStrict(data, &Config{}) == nil
}

// samples are values of each kind that a key may have, the narrower before the wider: text may be
// anything, and a number of bytes any number.
var samples = []struct {
	value any
	kind  string
}{
	{"x", "text"}, {true, "true or false"}, {"1s", "a duration, such as 30s, 5m or 24h"}, {"1Mi", "a number of bytes, such as 512Mi"},
	{1.5, "a number"}, {1, "a whole number"}, {[]any{}, "a list"}, {map[string]any{}, "keys with their values"},
}

// notAs says what a key takes, as the first sample of it tells. A value without parts is shown.
func notAs(key string, v any, alone func(any) any) error {
	for _, s := range samples {
		if !readable(alone(s.value)) {
			continue
		}
		if text, err := json.Marshal(v); v != nil && err == nil {
			return fmt.Errorf("%s is %s: it has to be %s", key, text, s.kind)
		}
		return fmt.Errorf("%s: it has to be %s", key, s.kind)
	}
	return fmt.Errorf("%s: there is no such key", key)
}
