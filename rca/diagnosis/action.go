package diagnosis

// Evicts are the pods that an action evicts.
func (a *Action) Evicts() []Target {
	var out []Target
	if a.Verb == VerbEvict {
		out = append(out, a.Target)
	}
	if a.Relayout != nil {
		out = append(out, a.Relayout.Victims...)
	}
	return out
}

// Targets are all that an action writes to, pods first: people know them.
func (a *Action) Targets() []Target {
	if a.Relayout == nil {
		return []Target{a.Target}
	}
	out := append(append([]Target{}, a.Relayout.Victims...), a.Target)
	if a.Relayout.ConfigMap != nil {
		out = append(out, *a.Relayout.ConfigMap)
	}
	return out
}

// Closes says whether an action takes a node out of use, while it works or for good.
func (a *Action) Closes() bool { return a.Verb == VerbRelayout || a.Verb == VerbCordon }
