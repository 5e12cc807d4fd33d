package terminal

import "github.com/unpend/unpend/rca/drawing"

// Clean makes a text with names from the cluster safe to print on one line of a
// terminal: no control characters, none that turn the direction of text, and no
// invisible ones.
func Clean(s string) string { return clean(s, false) }

func clean(s string, ascii bool) string { return drawing.Clean(s, ascii) }
