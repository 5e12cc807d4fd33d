package view

// OneProfile is how many instances a layout makes of which profile; 0 unless all are of
// one and no GPU is left without.
func (l *NamedLayouts) OneProfile() (profile string, count int64) {
	if l.Gives == nil {
		return "", 0
	}
	for _, layout := range l.Layouts {
		of := 0
		for name, k := range layout {
			if profile != "" && name != profile {
				return "", 0
			}
			profile, of = name, of+k
		}
		if of == 0 {
			return "", 0
		}
		count += int64(of)
	}
	return profile, count
}
