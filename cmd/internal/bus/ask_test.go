package bus

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A question is answered by one process of those that do, and by nobody once they have ended;
// nothing of it is kept.
func TestAsk(t *testing.T) {
	b := open(t, Options{Cluster: "here", StoreDir: t.TempDir()})
	if _, err := b.Ask(t.Context(), Search, []byte("x")); !errors.Is(err, ErrNobody) {
		t.Fatalf("nobody is there: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended, answers := make(chan error), make(chan string, 10)
	for _, name := range []string{"a", "b"} {
		go func() {
			ended <- b.Answer(ctx, Search, func(_ context.Context, body []byte) []byte {
				answers <- name
				return append([]byte("found "), body...)
			})
		}()
	}
	becomes(t, 10*time.Second, "somebody answers", func() bool {
		_, err := b.Ask(t.Context(), Search, []byte("x"))
		return err == nil
	})
	for len(answers) > 0 {
		<-answers
	}
	got, err := b.Ask(t.Context(), Search, []byte("2g"))
	if err != nil || string(got) != "found 2g" || len(answers) != 1 {
		t.Errorf("%q %v, %d answered", got, err, len(answers))
	}
	end()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	becomes(t, 10*time.Second, "nobody answers", func() bool {
		_, err := b.Ask(t.Context(), Search, []byte("x"))
		return errors.Is(err, ErrNobody)
	})
	for topic, stream := range b.streams {
		info, err := stream.Info(t.Context())
		if err != nil || info.State.Msgs != 0 {
			t.Errorf("%v holds %d messages, %v", topic, info.State.Msgs, err)
		}
	}
}
