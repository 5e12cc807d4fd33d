package diagnosis

import (
	"encoding/json"
)

// MustJSON writes values built here from strings, numbers and API types, which
// always marshal.
func MustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}
