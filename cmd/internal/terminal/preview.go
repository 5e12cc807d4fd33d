package terminal

import (
	"fmt"
	"io"
	"strings"
)

// Preview writes a message as people see it in another place, behind a bar.
func Preview(w io.Writer, lines []string, o Options) error {
	var b strings.Builder
	bar := "  " + o.glyph("│", "|") + " "
	for i, l := range lines {
		folded := []string{bar + o.clean(l)}
		if width(folded[0]) > o.columns() {
			folded = o.paragraph(bar, l)
			for n := range folded[1:] {
				folded[n+1] = bar + strings.TrimLeft(folded[n+1], " ")
			}
		}
		for _, l := range folded {
			l = strings.TrimRight(l, " ")
			if i == 0 {
				l = o.bold(l)
			}
			b.WriteString(l + "\n")
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the preview: %w", err)
	}
	return nil
}
