package placement

import (
	"encoding/binary"
	"runtime"
	"sync"
	"weak"

	"github.com/unpend/unpend/nodeprobe"
)

// grids lets GPUs with the same profiles share one table: a cluster has
// thousands of GPUs and a handful of models. It is a memo of a pure function,
// seen by nobody, and holds its grids weakly, so that reports that come and go
// do not pile up.
var grids sync.Map // content key → weak.Pointer[Grid]

func interned(key string) *Grid {
	if p, ok := grids.Load(key); ok {
		return p.(weak.Pointer[Grid]).Value()
	}
	return nil
}

// intern keeps the first grid of its content and returns it.
func intern(key string, g *Grid) *Grid {
	mine := weak.Make(g)
	for {
		p, loaded := grids.LoadOrStore(key, mine)
		if !loaded {
			break
		}
		if other := p.(weak.Pointer[Grid]).Value(); other != nil {
			return other
		}
		grids.CompareAndDelete(key, p)
	}
	runtime.AddCleanup(g, func(key string) { grids.CompareAndDelete(key, mine) }, key)
	return g
}

// contentKey holds everything that the profiles say.
func contentKey(profiles []nodeprobe.Profile) string {
	b := make([]byte, 0, 48*len(profiles))
	for i := range profiles {
		p := &profiles[i]
		b = append(binary.AppendVarint(b, int64(len(p.Name))), p.Name...)
		for _, n := range [...]int64{int64(p.ID), int64(p.ComputeSlices), int64(p.MemorySlices), p.MemoryMiB, int64(p.Max), int64(len(p.Starts))} {
			b = binary.AppendVarint(b, n)
		}
		for _, s := range p.Starts {
			b = binary.AppendVarint(b, int64(s))
		}
	}
	return string(b)
}
