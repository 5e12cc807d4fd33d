package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unpend/unpend/cmd/internal/program/console"
)

// call runs the program on nothing but its arguments.
func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), append([]string{"unpend"}, args...), console.Stdio{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
