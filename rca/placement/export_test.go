package placement

// Narrow makes the planner branch wherever anything couples places.
func (p *Planner) Narrow() { p.limits = limits{shared: 1, uses: 1} }

// Looked is how many shelves the questions have looked at.
func (x *Index) Looked() int { return x.looked }
