// Package slack reads the history of a Slack workspace: from the zip that its
// administrators export (Open), or by Slack's API (NewAPI), and by the events that tell what
// is new (Heard, Listen). Either way a thread is one document.
package slack

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/knowledge"
)

// maxFile bounds a file in the zip, unpacked: a day of the busiest channel has some
// megabytes, and a small zip can unpack to anything.
const maxFile = 512 << 20

// Export is a workspace export, open to be read.
type Export struct {
	// Workspace is the first part of its address, as in WORKSPACE.slack.com; without
	// it, documents have no links.
	Workspace string
	// Channels are those to read, by name or id; none: all public ones.
	Channels []string
	// Private are the private channels to read, by name or id. Direct messages never are.
	Private []string
	// Watch sees what is read, as it is read; nil: nobody does.
	Watch func(io.Reader) io.Reader

	zip      *zip.ReadCloser
	top      string // the folder that everything is in, with its slash
	channels []channel
}

// channel is an entry of channels.json or groups.json.
type channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`

	private bool
	days    []*zip.File // of an export
	created time.Time   // where the API says it
	outside bool        // the app is not in it
}

// Open opens the zip at file. The error says that it is no whole zip, or no export.
func Open(file string) (*Export, error) {
	z, err := zip.OpenReader(file)
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it is no zip, or its end is missing: download it again")
	}
	if err != nil {
		return nil, fmt.Errorf("open Slack export %s: %w", file, err)
	}
	e := &Export{zip: z}
	if err := e.list(); err != nil {
		return nil, errors.Join(fmt.Errorf("read Slack export %s: %w", file, err), z.Close())
	}
	return e, nil
}

// Close closes the zip.
func (e *Export) Close() error { return e.zip.Close() }

// list finds the channels and the files of their days.
func (e *Export) list() error {
	files := map[string]*zip.File{}
	index := ""
	for _, f := range e.zip.File {
		files[f.Name] = f
		// Who unpacks and packs it again has a folder around it, and macOS adds its own.
		if path.Base(f.Name) == "channels.json" && !strings.HasPrefix(f.Name, "__MACOSX/") && (index == "" || len(f.Name) < len(index)) {
			index = f.Name
		}
	}
	if index == "" {
		return errors.New("it has no channels.json: is it the export of a Slack workspace?")
	}
	e.top = strings.TrimSuffix(index, "channels.json")
	for _, name := range []string{"channels.json", "groups.json"} {
		f := files[e.top+name]
		if f == nil {
			continue // an export of public channels has no groups.json
		}
		var found []channel
		if err := e.decode(f, func(d *json.Decoder) error { return d.Decode(&found) }); err != nil {
			return err
		}
		for _, c := range found {
			c.private = name == "groups.json"
			e.channels = append(e.channels, c)
		}
	}
	byName := map[string]int{}
	for i, c := range e.channels {
		byName[c.Name] = i
	}
	for _, f := range e.zip.File {
		rest, inside := strings.CutPrefix(f.Name, e.top)
		folder, day, isDay := strings.Cut(rest, "/")
		i, ours := byName[folder]
		if _, ok := dayOf(day); inside && isDay && ok && ours {
			e.channels[i].days = append(e.channels[i].days, f)
		}
	}
	return nil
}

// dayOf is the day of a file YYYY-MM-DD.json.
func dayOf(name string) (time.Time, bool) {
	t, err := time.Parse(time.DateOnly+".json", path.Base(name))
	return t, err == nil
}

// Bytes is how much is to be read, unpacked.
func (e *Export) Bytes() int64 {
	var n int64
	for _, c := range e.channels {
		for _, f := range c.days {
			if e.wants(c) {
				n += int64(f.UncompressedSize64) //nolint:gosec // only for the progress bar
			}
		}
	}
	return n
}

func (e *Export) wants(c channel) bool {
	if c.private {
		return c.among(e.Private)
	}
	return len(e.Channels) == 0 || c.among(e.Channels)
}

func (c channel) kind() string {
	if c.private {
		return "private"
	}
	return "public"
}

// among is whether a list names a channel, by its name or its id.
func (c channel) among(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.TrimPrefix(s, "#") == c.Name || s == c.ID })
}

// Read implements knowledge.Source.
func (e *Export) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	if err := e.named("Slack export"); err != nil {
		return nil, err
	}
	from, until := e.span()
	var whole []knowledge.Whole
	for _, c := range e.channels {
		if !e.wants(c) {
			if c.private {
				to.Skip(c.ID, "a private channel that was not named")
			}
			continue
		}
		h := newHistory(e.site(), c, to)
		complete, err := e.readDays(ctx, h)
		if err != nil {
			return nil, err
		}
		if !complete {
			continue // half of its threads would replace whole ones
		}
		if err := h.give(ctx); err != nil {
			return nil, err
		}
		whole = append(whole, knowledge.Whole{Source: "slack", Part: c.ID, From: from, Until: until})
	}
	return whole, nil
}

// site is the address of the workspace, with its slash; empty where nobody said it.
func (e *Export) site() string {
	if e.Workspace == "" {
		return ""
	}
	return "https://" + e.Workspace + ".slack.com/"
}

// readDays joins the messages of all days of a channel to threads. It is not complete when a
// file could not be read.
func (e *Export) readDays(ctx context.Context, h *history) (complete bool, err error) {
	slices.SortFunc(h.channel.days, func(a, b *zip.File) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range h.channel.days {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var day []message
		err := e.decode(f, func(d *json.Decoder) error {
			day, err = messagesOf(d)
			return err
		})
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			h.to.Skip(f.Name, "a channel of which a day cannot be read: the file is damaged")
			return false, nil
		}
		for _, m := range day {
			h.take(m)
		}
	}
	return true, nil
}

// named says which channel was asked for and is not there.
func (e *Export) named(where string) error {
	for _, list := range []struct {
		names   []string
		private bool
	}{{e.Channels, false}, {e.Private, true}} {
		for _, n := range list.names {
			if !slices.ContainsFunc(e.channels, func(c channel) bool { return c.private == list.private && c.among([]string{n}) }) {
				return fmt.Errorf("the %s has no %s channel %s", where, channel{private: list.private}.kind(), n)
			}
		}
	}
	return nil
}

// span is the time of which the export tells: its first day to the end of its last,
// over all channels, since a quiet day of a channel has no file.
func (e *Export) span() (from, until time.Time) {
	for _, c := range e.channels {
		for _, f := range c.days {
			day, _ := dayOf(f.Name)
			if from.IsZero() || day.Before(from) {
				from = day
			}
			if end := day.AddDate(0, 0, 1); end.After(until) {
				until = end
			}
		}
	}
	return from, until
}

// decode reads one file of the zip.
func (e *Export) decode(f *zip.File, read func(*json.Decoder) error) (err error) {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("open %s: %w", f.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in := io.LimitReader(r, maxFile)
	if e.Watch != nil {
		in = e.Watch(in)
	}
	if err := read(json.NewDecoder(in)); err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	// To its end: that is where the zip's check sum is compared.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	return nil
}
