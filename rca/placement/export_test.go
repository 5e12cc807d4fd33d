package placement

// Narrow makes the planner branch wherever anything couples places.
func (p *Planner) Narrow() { p.limits = limits{shared: 1, uses: 1} }
