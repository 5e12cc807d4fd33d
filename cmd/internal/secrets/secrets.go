// Package secrets reads the files that hold tokens and keys, as a Secret is mounted: one may
// not be there yet.
package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Read is what a file holds, without the space around it. The configuration's key is for its
// error.
func Read(key, path string) (string, error) {
	token, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return strings.TrimSpace(string(token)), nil
}

// Missing names the first of some files that is not there; nil when all are, and of what is not
// named.
func Missing(files ...string) error {
	for _, f := range files {
		if f == "" {
			continue
		}
		if _, err := os.Stat(f); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is not there: make the Secret that holds it, or name another key of it", f)
		}
	}
	return nil
}
