package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// temporary is a folder that is there for as long as this process.
type temporary struct {
	dir  string
	lock *os.File
}

// temporaryName begins the names of such folders.
const temporaryName = "unpend-knowledge-"

func newTemporary() (*temporary, error) {
	dir, err := os.MkdirTemp("", temporaryName)
	if err != nil {
		return nil, fmt.Errorf("make a folder for what the team has said: %w", err)
	}
	t := &temporary{dir: dir}
	unlocked := filepath.Join(dir, "unlocked")
	if t.lock, err = os.OpenFile(unlocked, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = errors.Join(syscall.Flock(int(t.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), os.Rename(unlocked, lockOf(dir))) // who sees it sees it locked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), t.remove())
	}
	return t, nil
}

func lockOf(dir string) string { return filepath.Join(dir, "lock") }

// remove takes the folder away.
func (t *temporary) remove() error {
	if t == nil {
		return nil
	}
	err := os.RemoveAll(t.dir)
	if t.lock != nil {
		err = errors.Join(err, t.lock.Close())
	}
	return err
}

// sweep removes the folders of processes that were killed: nobody holds their locks. A container
// that starts again finds them where it has its temporary files, and they would fill it.
func sweep() error {
	all, err := filepath.Glob(filepath.Join(os.TempDir(), temporaryName+"*"))
	for _, dir := range all {
		f, opened := os.OpenFile(lockOf(dir), os.O_RDWR, 0)
		if opened != nil {
			if !errors.Is(opened, fs.ErrNotExist) && !errors.Is(opened, fs.ErrPermission) { // being made, or of somebody else
				err = errors.Join(err, opened)
			}
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		err = errors.Join(err, f.Close())
	}
	return err
}
