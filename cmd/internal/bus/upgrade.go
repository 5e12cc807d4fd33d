package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Before names carried the cluster, the streams were INCIDENTS, DIAGNOSES, OUTCOMES and
// DEAD, and who had the name had the stream: two clusters resolved each other's
// incidents, and a stream of somebody else was taken over. What remains of those:
//
// Outcomes are what nobody can tell again, and move to the new names. Incidents and
// diagnoses are left behind: they are made again from the cluster within a minute, and
// those in the old streams may be another cluster's. Dead letters say nothing without
// their incidents.
//
// An old stream is removed once it is ours beyond doubt and no older unpend reads it.

// older is a stream as it was.
func (u *upgrading) older(t Topic) jetstream.StreamConfig {
	c := u.bus.config(t)
	c.Name, c.Subjects, c.Metadata, c.Description = t.stream, []string{olderSubject(t) + ".>"}, nil, ""
	if t == deadLetters {
		c.MaxMsgsPerSubject = -1
	}
	return c
}

func olderSubject(t Topic) string { return "unpend." + t.subject }

// upgrading takes over what is left of them, and knows how far that is.
type upgrading struct {
	bus   *Bus
	done  bool
	again time.Time // when it is tried again
	said  map[string]bool
}

// upgradeEvery is how often it is looked whether an older unpend still works.
const upgradeEvery = 10 * time.Second

// move takes the older streams over, again and again until nothing is left to do. An older
// unpend that still works keeps nobody from working here.
func (u *upgrading) move(ctx context.Context) {
	if u.done || u.bus.now().Before(u.again) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, upgradeEvery)
	defer cancel()
	var err error
	if u.done, err = u.upgrade(ctx); err != nil {
		u.once(ctx, slog.LevelWarn, "what an older unpend left is taken over later", "error", err.Error())
	}
	u.again = u.bus.now().Add(upgradeEvery)
}

// once logs what is found at every try.
func (u *upgrading) once(ctx context.Context, level slog.Level, text string, args ...any) {
	key := fmt.Sprint(append([]any{text}, args...)...)
	if u.said[key] {
		return
	}
	if u.said == nil {
		u.said = map[string]bool{}
	}
	u.said[key] = true
	u.bus.opts.Logger.Log(ctx, level, text, args...)
}

// upgrade takes over what an older unpend left, and removes it, if nobody reads it. It can
// be done again and again: what was taken over is not repeated.
func (u *upgrading) upgrade(ctx context.Context) (done bool, err error) {
	left := map[Topic]jetstream.Stream{}
	for _, t := range []Topic{Incidents, Diagnoses, Outcomes, deadLetters} { // an older one had no others
		at, err := u.left(ctx, t)
		if err != nil {
			return false, err
		}
		if at != nil {
			left[t] = at
		}
	}
	if at := left[Outcomes]; at != nil {
		if err := u.takeOver(ctx, at); err != nil {
			return false, err
		}
	}
	if at := left[Incidents]; at != nil {
		reader, err := isRead(ctx, at)
		if err != nil {
			return false, err
		}
		if reader != "" {
			u.once(ctx, slog.LevelInfo, "an older unpend still reads the streams of the old names: they are removed when it has ended", "stream", Incidents.stream, "reader", reader)
			return false, nil
		}
	}
	for t := range left {
		if err := u.bus.js.DeleteStream(ctx, t.stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, fmt.Errorf("remove the older stream %s: %w", t.stream, err)
		}
		u.bus.opts.Logger.InfoContext(ctx, "a stream of an older unpend is removed", "stream", t.stream)
	}
	return true, nil
}

// left is the stream of an old name when it is ours beyond doubt: configured as we did,
// and without a message of anybody else.
func (u *upgrading) left(ctx context.Context, t Topic) (jetstream.Stream, error) {
	at, err := u.bus.js.Stream(ctx, t.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the older stream %s: %w", t.stream, err)
	}
	if !same(at.CachedInfo().Config, u.older(t)) {
		return nil, nil // it only has the name
	}
	info, err := at.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, fmt.Errorf("look at the older stream %s: %w", t.stream, err)
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if !strings.HasPrefix(subject, olderSubject(t)+".") {
			u.once(ctx, slog.LevelWarn, "an older unpend has taken over a stream of somebody else, who has to give it its subjects back: it is left as it is", "stream", t.stream, "holds", subject)
			return nil, nil
		}
	}
	return at, nil
}

// same compares all that an older unpend set; how many bytes was an operator's choice.
func same(is, was jetstream.StreamConfig) bool {
	return is.Name == was.Name && slices.Equal(is.Subjects, was.Subjects) && is.Storage == was.Storage && is.Retention == was.Retention && is.MaxAge == was.MaxAge &&
		is.Duplicates == was.Duplicates && is.MaxMsgsPerSubject == was.MaxMsgsPerSubject && is.Discard == was.Discard && is.AllowDirect &&
		is.Description == "" && is.Mirror == nil && len(is.Sources) == 0 && unmarked(is.Metadata)
}

// unmarked says that nobody but nats-server itself has put a mark on a stream.
func unmarked(metadata map[string]string) bool {
	for key := range metadata {
		if !strings.HasPrefix(key, "_nats.") {
			return false
		}
	}
	return true
}

// takeOver moves the ends of plans to their new name. What is newer there stays.
func (u *upgrading) takeOver(ctx context.Context, from jetstream.Stream) error {
	info, err := from.Info(ctx, jetstream.WithSubjectFilter(olderSubject(Outcomes)+".>"))
	if err != nil {
		return fmt.Errorf("read the older stream %s: %w", Outcomes.stream, err)
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		was, err := from.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it grew too old in between
		}
		if err != nil {
			return fmt.Errorf("read the older stream %s: %w", Outcomes.stream, err)
		}
		key := strings.TrimPrefix(subject, olderSubject(Outcomes)+".")
		if err := u.takeOverOne(ctx, key, was); err != nil {
			return err
		}
	}
	return nil
}

func (u *upgrading) takeOverOne(ctx context.Context, key string, was *jetstream.RawStreamMsg) error {
	subject := u.bus.subject(Outcomes, key)
	is, err := u.bus.last(ctx, Outcomes, subject)
	if err != nil {
		return err
	}
	if is.Sequence > 0 && !was.Time.After(is.Time) {
		return nil
	}
	id := fmt.Sprintf("older-%s-%s", key, was.Time.Format(time.RFC3339Nano))
	_, err = u.bus.js.Publish(ctx, subject, was.Data, jetstream.WithMsgID(id), jetstream.WithExpectStream(u.bus.name(Outcomes)), jetstream.WithExpectLastSequencePerSubject(is.Sequence))
	if err != nil && !overtaken(err) {
		return fmt.Errorf("take an outcome over from the older stream %s: %w", Outcomes.stream, err)
	}
	return nil
}

// isRead names somebody who waits for messages of a stream at this moment.
func isRead(ctx context.Context, at jetstream.Stream) (string, error) {
	all := at.ListConsumers(ctx)
	for c := range all.Info() {
		if c.NumWaiting > 0 {
			return c.Name, nil
		}
	}
	if err := all.Err(); err != nil {
		return "", fmt.Errorf("read who reads stream %s: %w", at.CachedInfo().Config.Name, err)
	}
	return "", nil
}
