package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// looksAgain is how often it is looked whether a file that was missing is there: a Secret that
// was made later is mounted within a minute.
const looksAgain = 2 * time.Second

// missing names the first of some files that is not there; nil when all are, and of what is not
// named.
func missing(files ...string) error {
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

// whenThere runs a part of the service once the files are there that it reads. Until then the
// part is off, which the log says once, and /readyz: what else there is to do is done.
func (s *Service) whenThere(ctx context.Context, off string, run func(context.Context) error, files ...string) error {
	for said := false; ; said = true {
		why := missing(files...)
		if why == nil {
			s.ready.on(off)
			return run(ctx)
		}
		if !said {
			s.logger.ErrorContext(ctx, "a part is off until its file is there", "part", off, "error", why)
			s.ready.off(off, why)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(looksAgain):
		}
	}
}
