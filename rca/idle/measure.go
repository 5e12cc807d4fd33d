package idle

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
)

// NewMeasure asks a Prometheus as New does; it is nil where none is named. The error says
// which option cannot be used.
func NewMeasure(o Options) (diagnosis.Measure, error) {
	if o.Address == "" {
		if o.TokenFile != "" {
			return nil, fmt.Errorf("a token for Prometheus is given, but not its address")
		}
		return nil, nil
	}
	client, err := New(o)
	if err != nil {
		return nil, err
	}
	return client.Measure, nil
}
