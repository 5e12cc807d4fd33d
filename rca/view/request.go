package view

// GPUSize is what one device has: memory and compute, each in slices of the board,
// or, of a profile of another board, in the numbers of its name.
type GPUSize struct{ Memory, Compute int }

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

func Abs(n int) int { return max(n, -n) }
