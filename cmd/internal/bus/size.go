package bus

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Size is a number of bytes; it is read as Kubernetes reads quantities, too (512Mi).
type Size int64

// UnmarshalJSON implements json.Unmarshaler.
func (b *Size) UnmarshalJSON(data []byte) error {
	var q resource.Quantity
	if err := json.Unmarshal(data, &q); err != nil {
		return fmt.Errorf("read a number of bytes: %w", err)
	}
	*b = Size(q.Value())
	return nil
}
