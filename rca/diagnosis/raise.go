package diagnosis

func (v NodeBlockers) Short() CauseID {
	for _, b := range v.Blockers {
		if b.Plugin == "NodeResourcesFit" {
			return b.Cause
		}
	}
	return ""
}
