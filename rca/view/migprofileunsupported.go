package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
)

func HasProfile(profiles []nodeprobe.Profile, name string) bool {
	name = strings.TrimSuffix(name, SharedSuffix)
	return slices.ContainsFunc(profiles, func(p nodeprobe.Profile) bool { return Spelled(p.Name) == Spelled(name) })
}

// ReadProfile reads a name such as 1g.10gb.me.
func ReadProfile(name string) (compute, memory int, attributes string, ok bool) {
	slices, rest, ok := strings.Cut(name, "g.")
	size, attributes, sized := strings.Cut(rest, "gb")
	compute, err := strconv.Atoi(slices)
	memory, wrong := strconv.Atoi(size)
	return compute, memory, attributes, ok && sized && err == nil && wrong == nil && compute > 0 && memory > 0
}
