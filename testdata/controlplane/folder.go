package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folders is the pattern of the folders that control planes live in.
const folders = "unpend-cp-*"

// newFolder makes a folder and holds a lock on it as long as its process lives.
func newFolder() (string, *os.File, error) {
	dir, err := os.MkdirTemp("", folders)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder: %w", err)
	}
	hold, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("hold the folder: %w", err)
	}
	if err := syscall.Flock(int(hold.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, errors.Join(fmt.Errorf("hold the folder: %w", err), hold.Close())
	}
	return dir, hold, nil
}

// sweep removes the folders of tests that were killed: nobody holds them. A
// folder younger than age may belong to a process that is about to hold it.
func sweep(age time.Duration) error {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), folders))
	if err != nil {
		return fmt.Errorf("list old folders: %w", err)
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < age {
			continue // gone, or too young
		}
		if err := removeUnheld(dir); err != nil {
			return fmt.Errorf("remove old folder: %w", err)
		}
	}
	return nil
}

func removeUnheld(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil // gone, or another user's
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil // held
	}
	return os.RemoveAll(dir)
}
