package rca

// draUnread: the scheduler's code sees only what was read, so what it says of
// devices then proves nothing.
var draUnread = Rule{ID: Unknown, Tell: func(c *Case, _ *nodeView, b *blocker) *finding {
	if b.Plugin != draPlugin || c.claims == nil {
		return nil
	}
	kind, why := c.claims.unreadable()
	if kind == "" {
		return nil
	}
	return &finding{Possible, kind + " objects could not be read, so its devices are not judged", []Evidence{{c.ref(), kind + ": " + why}}}
}}
