package placement

// heap holds the units that can give a number of instances more, the cheapest on
// top, and knows where each is.
type heap struct {
	items []int32
	pos   []int32 // unit → index in items, or nowhere
	work  int
}

func (h *heap) reset(units int) {
	h.items = h.items[:0]
	h.pos = h.pos[:0]
	for range units {
		h.pos = append(h.pos, nowhere)
	}
}

// add puts a unit at the end, for order to sort out.
func (h *heap) add(u int32) {
	h.pos[u] = int32(len(h.items))
	h.items = append(h.items, u)
}

func (h *heap) order(units []unit, level int) {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(units, level, i)
	}
}

// update puts a unit whose price changed in its place, in or out.
func (h *heap) update(units []unit, level int, u int32, in bool) {
	at := h.pos[u]
	switch {
	case in && at == nowhere:
		h.add(u)
		h.up(units, level, len(h.items)-1)
	case in:
		h.up(units, level, int(at))
		h.down(units, level, int(h.pos[u]))
	case at != nowhere:
		last := h.items[len(h.items)-1]
		h.items, h.pos[u] = h.items[:len(h.items)-1], nowhere
		if last != u {
			h.items[at], h.pos[last] = last, at
			h.up(units, level, int(at))
			h.down(units, level, int(h.pos[last]))
		}
	}
}

func (h *heap) less(units []unit, level, i, j int) bool {
	h.work++
	a, b := h.items[i], h.items[j]
	x, y := units[a].levels[level], units[b].levels[level]
	return x.less(y) || x == y && a < b
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.pos[h.items[i]], h.pos[h.items[j]] = int32(i), int32(j)
}

func (h *heap) up(units []unit, level, i int) {
	for i > 0 && h.less(units, level, i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *heap) down(units []unit, level, i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.less(units, level, child, first) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

// cheapest appends the n cheapest units that skip does not mark, walking down
// from the top without taking anything out. frontier is scratch space.
func (h *heap) cheapest(units []unit, level, n int, skip []bool, frontier, out []int32) ([]int32, []int32) {
	frontier = frontier[:0]
	if len(h.items) > 0 {
		frontier = append(frontier, 0)
	}
	for len(frontier) > 0 && n > 0 {
		at := frontier[0]
		last := len(frontier) - 1
		frontier[0], frontier = frontier[last], frontier[:last]
		for i := 0; ; { // down
			first := i
			for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
				if h.less(units, level, int(frontier[child]), int(frontier[first])) {
					first = child
				}
			}
			if first == i {
				break
			}
			frontier[i], frontier[first] = frontier[first], frontier[i]
			i = first
		}
		if !skip[h.items[at]] {
			out = append(out, h.items[at])
			n--
		}
		for child := 2*at + 1; child <= 2*at+2 && int(child) < len(h.items); child++ {
			frontier = append(frontier, child)
			for i := len(frontier) - 1; i > 0 && h.less(units, level, int(frontier[i]), int(frontier[(i-1)/2])); i = (i - 1) / 2 {
				frontier[i], frontier[(i-1)/2] = frontier[(i-1)/2], frontier[i]
			}
		}
	}
	return out, frontier
}
