package bus

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bytes is a number of bytes; a configuration may have it as Kubernetes has quantities, too (512Mi).
type Bytes int64

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var q resource.Quantity
	if err := json.Unmarshal(data, &q); err != nil {
		return fmt.Errorf("read a number of bytes: %w", err)
	}
	*b = Bytes(q.Value())
	return nil
}
