package diagnosis

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// PlanHash names a plan: sha256 over the canonical JSON of the incident it is for, since
// when that waits (in seconds, UTC), and its actions, which hold the uid of every object to
// be written and the fields relied on. The same actions for another wait are another plan.
// There is no resourceVersion in it: the kubelet posts status every few minutes and would
// make every plan stale. Canonical is JSON with sorted keys, also in patches: an API
// server that stored the actions gives them back so.
//
// Where nothing tells since when it waits, the actions alone are the plan: so the plans were
// named before the wait was part of them, and one that was begun then is finished.
func PlanHash(incident string, since time.Time, actions []Action) string {
	var plan any = actions
	if !since.IsZero() {
		plan = map[string]any{"incident": incident, "since": since.UTC().Format(time.RFC3339), "actions": actions}
	}
	return hash(plan)
}

// Named is the name of what a fix does: its plan's, or, of what a person does, one that its commands tell from others of the incident.
func (f Fix) Named(incident string, since time.Time) string {
	if len(f.Actions) > 0 {
		return PlanHash(incident, since, f.Actions)
	}
	plan := map[string]any{"incident": incident, "since": since.UTC().Format(time.RFC3339), "kinds": f.Kinds, "commands": f.Commands}
	if len(f.Commands) == 0 {
		plan["title"] = f.Title
	}
	return hash(plan)
}

// hash is the sha256 of a value's canonical JSON.
func hash(plan any) string {
	var plain any
	numbers := json.NewDecoder(bytes.NewReader(canonical(plan)))
	numbers.UseNumber()
	if err := numbers.Decode(&plain); err != nil {
		panic(err) // it was encoded a line ago
	}
	sum := sha256.Sum256(canonical(plain)) // encoding/json sorts map keys
	return hex.EncodeToString(sum[:])
}

// canonical writes values built from strings, numbers and API types, which always marshal.
func canonical(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// UnknownHolder stands, in the facts about a node, for a holder that could not be
// told.
const UnknownHolder = "?"

// HolderPrefix begins the keys, in the facts about a node, of who holds something
// of a GPU; the start of the instance follows. Where nobody does there is none.
func HolderPrefix(gpu int) string { return fmt.Sprintf("gpu%d@", gpu) }

// MustJSON writes values built here from strings, numbers and API types, which
// always marshal.
func MustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}
