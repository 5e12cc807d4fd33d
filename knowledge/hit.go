package knowledge

import (
	"strings"
	"time"
)

// From says where a hit is from: the source, what people call the channel or project, who
// began it, as the source names them, and when.
func (h Hit) From() string {
	from := []string{h.Source}
	for _, s := range []string{h.Where, h.Who} {
		if s != "" {
			from = append(from, s)
		}
	}
	if !h.At.IsZero() {
		from = append(from, h.At.UTC().Format(time.DateOnly))
	}
	return strings.Join(from, " · ")
}
