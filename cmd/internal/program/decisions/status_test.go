package decisions

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/testdata/controlplane"
)

// That nothing is dead is said only where the bus was asked; of many letters it is said that
// there are more.
func TestStatusOfDeadLetters(t *testing.T) {
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		w    withLetters
		want []terminal.Line
	}{
		{"nobody was asked", withLetters{}, nil},
		{"none", withLetters{DeadLetterCount: new(0)}, []terminal.Line{{Key: "dead letters", Text: "0 messages could not be dealt with"}}},
		{"more than are shown", withLetters{DeadLetterCount: new(3), DeadLetters: []bus.Letter{{Topic: "incident", Key: "a", Why: "cannot be read", Since: since}}}, []terminal.Line{
			{Alarm: true, Key: "dead letters", Text: "3 messages could not be dealt with"},
			{Alarm: true, Key: "dead letters", Text: "incident a since 2026-11-21T12:00:00Z: cannot be read"},
			{Alarm: true, Key: "dead letters", Text: "and 2 more"}}},
	} {
		if diff := cmp.Diff(c.want, c.w.lines()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A NATS that is not there makes dead letters unknown, not none.
func TestStatusOfANATSThatIsAway(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "here"}})
	var w withLetters
	err := w.read(t.Context(), client, "nats://"+controlplane.FreeAddress(t))
	if want := "what could not be dealt with is unknown: connect to NATS: nats: no servers available for connection"; fmt.Sprint(err) != want {
		t.Errorf("%v", err)
	}
	var said map[string]any
	text, err := json.Marshal(w)
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if _, counted := said["deadLetterCount"]; err != nil || counted || len(w.lines()) > 0 {
		t.Errorf("%v: %s, %v", err, text, w.lines())
	}
}
