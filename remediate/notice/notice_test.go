package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/watcher/incident"
)

var parked = Notice{What: "parked", Incident: "gpu-0123456789", Plan: "24ac8de5", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Title: "repartition gpu-1",
	Node: "gpu-1", Reason: "MIG manager says failed", Since: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Approvers: []string{"ada"}, AuditHead: "f00d"}

// The same news has one id and one key, byte for byte; other news of the same plan has the
// same key.
func TestTheSameNewsIsTheSameMessage(t *testing.T) {
	id, body, err := parked.Message()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"what":"parked","incident":"gpu-0123456789","plan":"24ac8de5","workload":{"kind":"Job","namespace":"ml","name":"training"},"title":"repartition gpu-1","node":"gpu-1",` +
		`"reason":"MIG manager says failed","since":"2026-11-21T12:00:00Z","approvers":["ada"],"auditHead":"f00d"}`
	if string(body) != want {
		t.Errorf("%s, want\n%s", body, want)
	}
	if prefix, rest, _ := strings.Cut(id, "gpu-0123456789-"); prefix != "" || len(rest) != 16 {
		t.Errorf("its id is %s", id)
	}
	if again, _, _ := parked.Message(); again != id {
		t.Errorf("its id is %s, and was %s", again, id)
	}
	other := parked
	other.Reason = "it will not go back"
	if is, _, _ := other.Message(); is == id {
		t.Error("other news has the same id")
	}
	if other.Key() != "gpu-0123456789.24ac8de5" || parked.Key() != other.Key() {
		t.Errorf("keys %s and %s", parked.Key(), other.Key())
	}
}

// Of two ends of one plan the later counts; what is no notice tells nothing.
func TestOlder(t *testing.T) {
	at := func(after time.Duration) []byte {
		n := parked
		n.Since = parked.Since.Add(after)
		_, body, err := n.Message()
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for name, tc := range map[string]struct {
		other []byte
		older bool
	}{
		"a later end":    {at(time.Second), true},
		"the same end":   {at(0), false},
		"an earlier end": {at(-time.Second), false},
		"no notice":      {[]byte("x"), false},
		"nothing":        {nil, false},
	} {
		if got := parked.Older(tc.other); got != tc.older {
			t.Errorf("%s: %v", name, got)
		}
	}
}
