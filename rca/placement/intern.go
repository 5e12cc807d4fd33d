package placement

import (
	"runtime"
	"strconv"
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
	b := make([]byte, 0, 64*len(profiles))
	for _, p := range profiles {
		b = strconv.AppendQuote(b, p.Name)
		for _, n := range [...]int64{int64(p.ID), int64(p.ComputeSlices), int64(p.MemorySlices), p.MemoryMiB, int64(p.Max)} {
			b = append(strconv.AppendInt(b, n, 10), ',')
		}
		for _, s := range p.Starts {
			b = append(strconv.AppendInt(b, int64(s), 10), ' ')
		}
		b = append(b, ';')
	}
	return string(b)
}
