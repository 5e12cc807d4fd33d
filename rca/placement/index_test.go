package placement_test

import (
	"math/rand/v2"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// stock is a cluster in an index and beside it.
type stock struct {
	index   *placement.Index
	gpus    map[int]placement.GPU
	classes map[int]int
}

// Whatever comes and goes, the index says what looking at every GPU would.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	kinds := []boards{boardsOf(model(t, "A100-40GB")), boardsOf(model(t, "A30-24GB")), boardsOf(model(t, "RTX-PRO-6000-Blackwell-96GB")), boardsOf(tight)}
	s := stock{placement.NewIndex(), map[int]placement.GPU{}, map[int]int{}}
	held, best := 0, 0
	for step := range 4000 {
		id := r.IntN(30)
		gpu, there := s.gpus[id]
		switch x := r.IntN(10); {
		case !there || x == 0:
			kind := kinds[r.IntN(len(kinds))]
			set := kind.sets[r.IntN(len(kind.sets))]
			cut := r.IntN(len(set) + 1)
			s.gpus[id], s.classes[id] = gpuOf(t, kind.model, set[:cut], set[cut:]), r.IntN(3)
			s.index.Set(id, s.classes[id], s.gpus[id])
		case x == 1:
			s.index.Remove(id)
			delete(s.gpus, id)
		case len(gpu.Slots) > 0:
			slot := &gpu.Slots[r.IntN(len(gpu.Slots))]
			slot.Held = !slot.Held
			if held++; !s.index.Hold(id, slot.Start, slot.Held) {
				t.Fatalf("step %d: no instance at %d of %+v", step, slot.Start, gpu)
			}
		}
		m := kinds[r.IntN(len(kinds))].model
		profile := m.Profiles[r.IntN(len(m.Profiles))].Name
		allowed := []bool{r.IntN(4) > 0, r.IntN(4) > 0, r.IntN(4) > 0}
		if s.check(t, profile, allowed) {
			best++
		}
	}
	if s.index.Hold(99, 0, true) || s.index.Hold(0, 99, true) {
		t.Error("what is not there was held")
	}
	t.Logf("%d holds, %d best places", held, best)
}

func (s *stock) check(t *testing.T, profile string, allowed []bool) bool {
	t.Helper()
	var want placement.Totals
	idle := false
	for id, gpu := range s.gpus {
		if !allowed[s.classes[id]] {
			continue
		}
		fit := gpu.Fit(profile)
		if !fit.Supported {
			continue
		}
		want.Now += fit.Idle
		want.Room += fit.Room
		idle = idle || fit.Idle > 0
		if gpu.Held() {
			want.Remade += fit.Idle
		} else {
			want.Remade += max(fit.Idle, fit.Room)
		}
	}
	ask := s.index.Ask(profile)
	if got := s.index.Totals(ask, allowed); got != want || got.Now > got.Remade || got.Remade > got.Room {
		t.Fatalf("%s: %+v, want %+v", profile, got, want)
	}
	place, ok := s.index.Best(ask, allowed)
	if ok != (want.Room > 0) || ok && place.Idle != idle {
		t.Fatalf("%s: %+v %v, want %+v", profile, place, ok, want)
	}
	if !ok {
		return false
	}
	s.checkPlace(t, profile, allowed, place)
	return true
}

// checkPlace: the place is there, legal and allowed.
func (s *stock) checkPlace(t *testing.T, profile string, allowed []bool, place placement.Place) {
	t.Helper()
	gpu := s.gpus[place.GPU]
	if !allowed[s.classes[place.GPU]] {
		t.Fatalf("%+v is in a class that is not allowed", place)
	}
	if place.Idle {
		for _, slot := range gpu.Slots {
			if p, _ := gpu.Grid.Profile(profile); slot.Start == place.Start && slot.Profile == p.Name && !slot.Held {
				return
			}
		}
		t.Fatalf("no idle %s at %+v of %+v", profile, place, gpu.Slots)
	}
	if got := gpu.Fit(profile).Start; got != place.Start {
		t.Fatalf("start %d, want %d", place.Start, got)
	}
}

// A handle and a state say what Fit says, for every state of every board.
func TestHandles(t *testing.T) {
	for _, m := range append([]nodeprobe.Model{tight}, nodeprobe.Models()...) {
		for _, set := range append(newJudge(m.Profiles).sets(), nil) {
			gpu := gpuOf(t, m, set, nil)
			state := gpu.State()
			for _, p := range m.Profiles {
				h, ok := gpu.Grid.Handle(p.Name)
				start, room := h.Fit(state)
				if fit := gpu.Fit(p.Name); !ok || start != fit.Start || room != fit.Room {
					t.Fatalf("%s, %v, %s: %d at %d, want %+v", m.ID, gpu.Slots, p.Name, room, start, fit)
				}
			}
		}
	}
	gpu := a100(t)
	if _, ok := gpu.Grid.Handle("9g.90gb"); ok {
		t.Error("a handle for a profile that the model does not have")
	}
}

// An empty board is broken for a 1g only when every other board is too.
func TestBestPlaceTakesLeast(t *testing.T) {
	x := placement.NewIndex()
	x.Set(0, 0, a100(t))
	x.Set(1, 0, a100(t, on("4g.20gb", 0), on("1g.5gb", 6)))
	x.Set(2, 0, a100(t, on("3g.20gb", 0)))
	x.Set(3, 1, a100(t, idle("1g.5gb", 2)))
	ask := x.Ask("1g.5gb")
	for _, c := range []struct {
		allowed []bool
		want    placement.Place
	}{
		{nil, placement.Place{GPU: 3, Start: 2, Idle: true}},
		{[]bool{true, false}, placement.Place{GPU: 1, Start: 4}},
	} {
		if got, ok := x.Best(ask, c.allowed); !ok || got != c.want {
			t.Errorf("allowed %v: %+v %v, want %+v", c.allowed, got, ok, c.want)
		}
	}
	x.Remove(1)
	if got, ok := x.Best(ask, []bool{true, false}); !ok || got.GPU != 2 {
		t.Errorf("%+v %v, want the board that holds a 3g", got, ok)
	}
}
