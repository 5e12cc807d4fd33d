package view

// Held begins a sentence about who holds what is asked.
func (a Ask) Held() string {
	if a.Profile != "" {
		return "its " + a.Profile + " instances are"
	}
	return "GPUs are"
}
