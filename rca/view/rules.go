package view

import (
	"strings"

	"github.com/unpend/unpend/rca/whatif"
)

// Insufficient names the resource of a NodeResourcesFit blocker ("Insufficient
// nvidia.com/gpu", "Too many pods"; noderesources/fit.go, unchanged from 1.30 to
// 1.37).
func Insufficient(b whatif.Blocker) (resource string, ok bool) {
	if b.Reason == "Too many pods" {
		return "pods", true
	}
	return strings.CutPrefix(b.Reason, "Insufficient ")
}
