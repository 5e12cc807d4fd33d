package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// In a pipe a screen comes again once it says something else, and not because pods are older.
func TestAgainShowsWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := []string{"a  Pending 58s    x\n", "a  Pending 1m0s   x\n", "a  Pending 1m2s   y\n", "a  Pending 1h1m   y\n", ""}
		ctx, cancel := context.WithTimeout(t.Context(), watchEvery*time.Duration(len(looks))+time.Second)
		defer cancel()
		n := 0
		var out bytes.Buffer
		err := Again(ctx, Stdio{Out: &out, Err: io.Discard}, func(_ context.Context, std Stdio) error {
			fmt.Fprint(std.Out, looks[min(n, len(looks)-1)])
			n++
			return nil
		})
		if want := looks[0] + "\n" + looks[2] + "\n"; err != nil || out.String() != want || n < len(looks) {
			t.Errorf("%d looks, %v, %q, want %q", n, err, out.String(), want)
		}
	})
}
