package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
)

// HasProfile says whether the profile is among them, by either spelling.
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

// GPUSize is what one device has: memory and compute, each in slices of the board,
// or, of a profile of another board, in the numbers of its name.
type GPUSize struct{ Memory, Compute int }

// Order ranks sizes, memory before compute.
func (s GPUSize) Order() int { return s.Memory*10 + s.Compute }

// Lost says what a request has no more once the other is asked for instead. Names of
// profiles round: 7g.79gb and 7g.80gb are one device to two drivers.
func (s GPUSize) Lost(other GPUSize) string {
	lessMemory := other.Memory*50 < s.Memory*49
	switch {
	case lessMemory && other.Compute < s.Compute:
		return " (less memory and compute)"
	case lessMemory:
		return " (less memory)"
	case other.Compute < s.Compute:
		return " (less compute)"
	}
	return ""
}

// Abs is n without its sign.
func Abs(n int) int { return max(n, -n) }

// OneProfile is how many instances a layout makes of which profile; 0 unless all are of
// one and no GPU is left without.
func (l *NamedLayouts) OneProfile() (profile string, count int64) {
	if l.Gives == nil {
		return "", 0
	}
	for _, layout := range l.Layouts {
		of := 0
		for name, k := range layout {
			if profile != "" && name != profile {
				return "", 0
			}
			profile, of = name, of+k
		}
		if of == 0 {
			return "", 0
		}
		count += int64(of)
	}
	return profile, count
}
