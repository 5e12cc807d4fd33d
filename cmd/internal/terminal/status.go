package terminal

import (
	"fmt"
	"io"
	"strings"
)

// Line is a fact under a key; an alarm stands out.
type Line struct {
	Alarm     bool
	Key, Text string
}

// Status writes lines under their keys; the same key is written once.
func Status(w io.Writer, lines []Line, o Options) error {
	var b strings.Builder
	last := ""
	for _, l := range lines {
		key := l.Key
		if key == last {
			key = ""
		}
		last = l.Key
		text := fmt.Sprintf("%-12s %s", key, o.clean(l.Text))
		if l.Alarm {
			text = o.bold(text)
		}
		b.WriteString(text + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}
