package placement

import "slices"

import "math/bits"

// bitset is a set of small numbers that knows its least at once: each word of a
// level has a bit in the next, 64 times smaller, set while it is not zero.
type bitset struct{ levels [][]uint64 }

// grow makes room for numbers below n.
func (b *bitset) grow(n int) {
	for level := 0; ; level++ {
		n = (n + 63) / 64
		if level == len(b.levels) {
			b.levels = append(b.levels, nil)
			if level > 0 && len(b.levels[level-1]) > 0 && b.levels[level-1][0] != 0 {
				b.levels[level] = append(b.levels[level], 1)
			}
		}
		for len(b.levels[level]) < n {
			b.levels[level] = append(b.levels[level], 0)
		}
		if n <= 1 {
			return
		}
	}
}

func (b *bitset) add(i int32) {
	for _, words := range b.levels {
		word := &words[i>>6]
		before := *word
		*word |= 1 << (i & 63)
		if before != 0 {
			return
		}
		i >>= 6
	}
}

func (b *bitset) remove(i int32) {
	for _, words := range b.levels {
		word := &words[i>>6]
		*word &^= 1 << (i & 63)
		if *word != 0 {
			return
		}
		i >>= 6
	}
}

func (b *bitset) empty() bool {
	return len(b.levels) == 0 || b.levels[len(b.levels)-1][0] == 0
}

// least must not be asked of an empty set.
func (b *bitset) least() int32 {
	at := 0
	for _, v := range slices.Backward(b.levels) {
		at = at<<6 + bits.TrailingZeros64(v[at])
	}
	return int32(at)
}
