package library

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What a process that was killed has left is removed by the next; what one has that runs is not,
// nor what is being made, nor anything else.
func TestTemporaryFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	runs, err := newTemporary()
	must(t, err)
	killed, err := newTemporary()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(killed.dir, "index"), []byte("half"), 0o600))
	must(t, killed.lock.Close()) // as the kernel does
	made, other := filepath.Join(os.TempDir(), temporaryName+"made"), filepath.Join(os.TempDir(), "unpend-other")
	must(t, errors.Join(os.Mkdir(made, 0o700), os.Mkdir(other, 0o700)))
	must(t, sweep())
	next, err := newTemporary()
	must(t, err)
	for dir, want := range map[string]bool{runs.dir: true, killed.dir: false, made: true, other: true, next.dir: true} {
		if there(dir) != want {
			t.Errorf("%s is there: %v", dir, !want)
		}
	}
	must(t, errors.Join(next.remove(), runs.remove(), (*temporary)(nil).remove()))
	if there(next.dir) || there(runs.dir) {
		t.Error("a folder outlives its process")
	}
}
