// Package terminal shows diagnoses to a person at a terminal: at most 25 lines
// as wide as it is, in colour or without, in Unicode or in plain ASCII.
//
// Rules of this package:
//   - Every string that comes from an object of the cluster goes through clean.
//   - Widths are columns of the screen, not bytes or runes.
//   - Colour never carries a meaning alone.
//   - Commands to be copied are never wrapped or shortened.
package terminal

import (
	"image/color"
	"os"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

const (
	maxLines   = 25
	maxColumns = 80
	minColumns = 40
)

// Options say what the terminal can show.
type Options struct {
	style
	Again Again     // of the next command
	Now   time.Time // what ages are counted from; zero: no ages
	// NoLegend leaves out what the marks of a drawing mean: it was said before.
	NoLegend bool
	// Wide has tables with all their columns, and none of them cut.
	Wide bool
}

// style sets texts for one terminal: its width, its colours, its characters.
type style struct {
	Width int // columns; 0: not a terminal, findings wrap at 80 and tables are not cut
	Color bool
	ASCII bool
}

// Sized are the options of a terminal of so many columns, in Unicode and without colour.
func Sized(columns int) Options { return Options{style: style{Width: columns}} }

// Detect reads from f and the environment what the terminal can show: NO_COLOR
// and TERM=dumb turn colour off, TERM=dumb and a locale that is not UTF-8 turn
// everything but ASCII off. Now is left to the caller.
func Detect(f *os.File, env func(string) string) Options {
	dumb := env("TERM") == "dumb"
	o := Options{style: style{ASCII: dumb || !utf8Locale(env)}}
	if f == nil || !term.IsTerminal(f.Fd()) {
		return o
	}
	o.Color = !dumb && env("TERM") != "" && env("NO_COLOR") == ""
	o.Width = maxColumns
	if w, _, err := term.GetSize(f.Fd()); err == nil && w > 0 {
		o.Width = w
	}
	return o
}

// utf8Locale reads the locale of characters as POSIX orders it; none is "C".
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// columns is the width that texts wrap at: that of the terminal, and 80 where there is none.
func (o style) columns() int {
	if o.Width == 0 {
		return maxColumns
	}
	return max(minColumns, o.Width)
}

// glyph picks the plain twin of a character in ASCII mode.
func (o style) glyph(unicode, ascii string) string {
	if o.ASCII {
		return ascii
	}
	return unicode
}

func (o style) clean(s string) string { return clean(s, o.ASCII) }

func (o style) bold(s string) string {
	if !o.Color {
		return s
	}
	return lipgloss.NewStyle().Bold(true).Render(s)
}

func (o style) tint(c color.Color, s string) string {
	if !o.Color || c == nil {
		return s
	}
	return lipgloss.NewStyle().Foreground(c).Render(s)
}

func (o style) faint(s string) string {
	if !o.Color {
		return s
	}
	return lipgloss.NewStyle().Faint(true).Render(s)
}

func width(s string) int { return ansi.StringWidth(s) }

// cut shortens s to n columns, marking that it did.
func (o style) cut(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return ansi.Truncate(s, n, o.glyph("…", "~"))
}

// pad fills s up to n columns; a longer s is left as it is.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-width(s))) }

// ends puts left and right at the two ends of a line of n columns; left gives way.
func (o style) ends(left, right string, n int) string {
	left = o.cut(left, n-width(right)-1)
	return pad(left, n-width(right)) + right
}

// fold breaks s into lines of n columns and cuts nothing but a word that is longer.
func (o style) fold(s string, n int) []string { return o.wrap(s, n, maxFolded) }

// between stands where the middle of somebody's words was left out: their end was kept, for it tells most.
const between = " … "

// ofBothEnds leaves more of the middle out of a text that lacks some already, until it fits into the lines beside what
// stands at the end of the last.
func (o style) ofBothEnds(s string, beside, n, lines int) string {
	head, tail, both := strings.Cut(s, between)
	for both && len(o.wrap(s+strings.Repeat("x", beside), n, 2*lines+9)) > lines {
		h, t := strings.LastIndex(head, " "), strings.Index(tail, " ")
		switch {
		case h > 0 && 3*width(head) > n*lines:
			head = head[:h]
		case t >= 0:
			tail = tail[t+1:]
		default:
			both = false
		}
		s = head + between + tail
	}
	return s
}

// wrap breaks s into at most lines lines of n columns; what does not fit is cut.
func (o style) wrap(s string, n, lines int) []string {
	// Names are not broken at their hyphens.
	const bound = "\u2011"
	s = ansi.Wrap(strings.ReplaceAll(s, "-", bound), n, "")
	parts := strings.Split(strings.ReplaceAll(s, bound, "-"), "\n")
	if len(parts) > lines {
		rest := strings.Join(parts[lines-1:], " ")
		parts = append(parts[:lines-1], o.cut(rest, n))
	}
	for i, p := range parts {
		// A character wider than the line is left whole by Wrap.
		parts[i] = o.cut(strings.TrimRight(p, " "), n)
	}
	return parts
}
