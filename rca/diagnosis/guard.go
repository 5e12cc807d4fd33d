package diagnosis

import "github.com/unpend/unpend/watcher/incident"

// Guard says what would hold a fix for an incident back if it were approved now. It is
// asked of hundreds of fixes in one diagnosis, of some before their actions are written
// out.
type Guard func(incident.Incident, Fix) Held

// Held is why a fix would not be begun now; the zero value: nothing is known against it.
type Held struct {
	Why string // one sentence, with what to do
	// Refused: to wait for it would be in vain. Else it waits once it is approved.
	Refused bool
}
