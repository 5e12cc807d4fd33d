package diagnosis

import "fmt"

// Record is how a kind of fix turned out here before, against the same cause.
type Record struct {
	Worked int `json:"worked"` // the pod came to run
	Of     int `json:"of"`
	// Minutes is how long it took where it worked, the median.
	Minutes int `json:"minutes,omitempty"`
}

// String says it beside a fix.
func (r Record) String() string {
	switch {
	case r.Worked == 0 && r.Of == 1:
		return "did not help here the one time it was tried"
	case r.Worked == 0:
		return fmt.Sprintf("did not help here any of %d times", r.Of)
	}
	text := fmt.Sprintf("worked here %d times of %d", r.Worked, r.Of)
	switch {
	case r.Of == 1:
		text = "worked here the one time it was tried"
	case r.Worked == 1:
		text = fmt.Sprintf("worked here once of %d times", r.Of)
	}
	if r.Minutes > 0 {
		text += fmt.Sprintf(", in about %d min", r.Minutes)
	}
	return text
}
