package bus

import (
	"context"
	"testing"
)

// What is published of an incident carries its trace, and what is published of none carries none.
func TestTracedMessagesCarryTheTrace(t *testing.T) {
	b, err := Open(t.Context(), Options{Cluster: "here", Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	in := Traced(t.Context(), parent)
	never := func([]byte) bool { return false }
	for key, publish := range map[string]func() error{
		"newer": func() error { return b.PublishNewer(in, Diagnoses, "newer", "1", []byte("x"), never) },
		"plain": func() error { return b.Publish(in, Diagnoses, "plain", "2", []byte("x")) },
		"nobody": func() error {
			return b.Publish(context.WithoutCancel(t.Context()), Diagnoses, "nobody", "3", []byte("x"))
		},
	} {
		if err := publish(); err != nil {
			t.Fatal(err)
		}
		m, err := b.last(t.Context(), Diagnoses, b.subject(Diagnoses, key))
		if err != nil {
			t.Fatal(err)
		}
		want := parent
		if key == "nobody" {
			want = ""
		}
		if got := m.Header.Get(traceParent); got != want {
			t.Errorf("%s carries %q, want %q", key, got, want)
		}
	}
}
