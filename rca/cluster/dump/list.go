package dump

import (
	"io"
	"runtime"
	"sync"

	"github.com/unpend/unpend/rca/cluster/shelf"
)

// share is how many items of a list one core decodes at a time.
const share = 64

// batch is items to be decoded, one behind the other.
type batch struct {
	text []byte
	ends []int
}

func (b *batch) decode(s *shelf.Shelf) []decoded {
	out, from := make([]decoded, 0, len(b.ends)), 0
	for _, end := range b.ends {
		out, from = append(out, decodeItem(s, "", "", b.text[from:end])), end
	}
	return out
}

// list reads a file that is one list in JSON, as kubectl and this program write it, item
// by item, on every core. false: it is not, or something is wrong with it, and nothing was
// taken in.
func (r *fileReader) list(in io.Reader) bool {
	var got []*[]decoded // in order
	work := make(chan func())
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for do := range work {
				do()
			}
		})
	}
	used := sync.Pool{New: func() any { return new(batch) }}
	filling := new(batch)
	hand := func() {
		full, into := filling, new([]decoded)
		got = append(got, into)
		work <- func() {
			*into = full.decode(r.shelf)
			full.text, full.ends = full.text[:0], full.ends[:0]
			used.Put(full)
		}
		filling = used.Get().(*batch)
	}
	h, err := split(in, func(item []byte) {
		filling.text = append(filling.text, item...)
		if filling.ends = append(filling.ends, len(filling.text)); len(filling.ends) == share {
			hand()
		}
	})
	hand()
	close(work)
	wg.Wait()
	if err != nil || h.APIVersion == "" {
		return false
	}
	for _, batch := range got {
		for _, d := range *batch {
			if d.err != nil || d.list || d.name == "" || d.as == "" {
				return false // as what the list says, or with its place
			}
		}
	}
	if _, isList := r.listed(h); !isList || r.noteTaken(h) != nil {
		return false
	}
	for _, batch := range got {
		for _, d := range *batch {
			r.keep(d)
		}
	}
	return true
}
