package nodeprobe

import (
	"cmp"
	"slices"
)

// Join says who holds what. Every GPU comes back with the holders of its
// instances, or its own if it is whole. unread is why the kubelet would not tell
// its allocations, or nil.
//
// What cannot be told is held by an unknown holder, never by nobody: everything
// when unread is set; everything that nobody is known to hold when an allocation
// has a name that could mean any device; an instance that pods share, since
// none of them leaving would free it. Allocations that belong to no GPU here
// come back as stray, in the order given.
func Join(gpus []Seen, held []Allocation, unread error) (joined []GPU, stray []Allocation) {
	seats := make([]seats, len(gpus))
	for i, g := range gpus {
		joined = append(joined, g.GPU)
		joined[i].Instances = slices.Clone(g.Instances)
		seats[i].instances = make([][]Holder, len(g.Instances))
	}
	puzzle := unread != nil
	for _, a := range held {
		d, err := a.device()
		if err != nil {
			puzzle, stray = true, append(stray, a)
			continue
		}
		if !seat(gpus, seats, d, a.Holder) {
			stray = append(stray, a)
		}
	}
	for i := range joined {
		seats[i].settle(&joined[i], gpus[i], puzzle)
	}
	return joined, stray
}

// maxHolders of one GPU is what the CRD takes.
const maxHolders = 64

// seats are the holders found for one GPU.
type seats struct {
	whole     []Holder
	instances [][]Holder
	// confused: a holder's place exists no more as it is named.
	confused bool
}

// seat puts the holder where its device is. False: no such device here.
func seat(gpus []Seen, all []seats, d Device, h Holder) bool {
	for i, g := range gpus {
		s := &all[i]
		if d.UUID == "" && g.Minor == d.Minor {
			return s.place(g, d.Place, h)
		}
		if d.UUID == "" {
			continue
		}
		if d.UUID == g.UUID {
			s.whole = append(s.whole, h)
			return true
		}
		for k, in := range g.Instances {
			if slices.Contains(in.UUIDs, d.UUID) || d.Parent != "" && d.Parent == g.UUID && d.InstanceID == in.ID {
				s.instances[k] = append(s.instances[k], h)
				return true
			}
		}
	}
	return false
}

// place finds what DRA names by its position. The instance that is at that start
// now may be another one: then nobody can say who holds what on this GPU.
func (s *seats) place(g Seen, p *Place, h Holder) bool {
	if p == nil {
		s.whole = append(s.whole, h)
		return true
	}
	for k, in := range g.Instances {
		if in.Start != p.Start {
			continue
		}
		if id, known := profileID(g.GPU, in.Profile); known && id != p.ProfileID || p.Size > 0 && p.Size != in.Size {
			break
		}
		s.instances[k] = append(s.instances[k], h)
		return true
	}
	s.confused = true
	return false
}

// profileID is the driver's number of a profile, from the report or else from
// the table of boards.
func profileID(g GPU, name string) (id int, known bool) {
	profiles := g.Profiles
	if m, ok := ModelOf(g.Product); ok && len(profiles) == 0 {
		profiles = m.Profiles
	}
	for _, p := range profiles {
		if p.Name == name {
			return p.ID, p.ID >= 0
		}
	}
	return 0, false
}

// settle writes the holders found into g. puzzle: some allocation could be any.
func (s *seats) settle(g *GPU, seen Seen, puzzle bool) {
	unsure := puzzle || s.confused || partitioned(*g) && len(s.whole) > 0 // a pod that was given the GPU before it was partitioned
	for k := range g.Instances {
		in := &g.Instances[k]
		switch {
		case len(s.instances[k]) > 0:
			in.Holder = only(s.instances[k])
		case unsure: // what was unknown to the driver stays so
			in.Holder = &Holder{Unknown: true}
		}
	}
	g.Holders = distinct(s.whole)
	if len(g.Holders) > maxHolders {
		g.Holders = append(g.Holders[:maxHolders-1], Holder{Unknown: true})
	}
	if len(g.Holders) == 0 && (seen.Unlisted != nil || unsure && !partitioned(*g)) {
		g.Holders = []Holder{{Unknown: true}}
	}
}

// only is the holder, if all containers are of one pod.
func only(holders []Holder) *Holder {
	holders = distinct(holders)
	for _, h := range holders[1:] {
		if h.Namespace != holders[0].Namespace || h.Pod != holders[0].Pod {
			return &Holder{Unknown: true}
		}
	}
	return &holders[0]
}

func distinct(holders []Holder) []Holder {
	holders = slices.SortedFunc(slices.Values(holders), compareHolders)
	return slices.Compact(holders)
}

func compareHolders(a, b Holder) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
}
