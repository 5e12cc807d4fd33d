package service

import (
	"context"
	"time"

	"github.com/unpend/unpend/cmd/internal/secrets"
)

// looksAgain is how often it is looked whether a file that was missing is there: a Secret that
// was made later is mounted within a minute.
const looksAgain = 2 * time.Second

// whenThere runs a part of the service once the files are there that it reads. Until then the
// part is off, which the log says once, and /readyz: what else there is to do is done.
func (s *Service) whenThere(ctx context.Context, off string, run func(context.Context) error, files ...string) error {
	for said := false; ; said = true {
		why := secrets.Missing(files...)
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
