// Package slack reads the history of a Slack workspace from the zip that its
// administrators export: a document per thread.
package slack

import (
	"archive/zip"
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
	days    []*zip.File
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
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.TrimPrefix(s, "#") == c.Name || s == c.ID })
	}
	if c.private {
		return named(e.Private)
	}
	return len(e.Channels) == 0 || named(e.Channels)
}

// Read implements knowledge.Source.
func (e *Export) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	if err := e.named(); err != nil {
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
		h := &history{export: e, channel: c, to: to, byThread: map[string]*thread{}}
		complete, err := h.readDays(ctx)
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

// named says which channel was asked for and is not there.
func (e *Export) named() error {
	for _, list := range []struct {
		names   []string
		private bool
	}{{e.Channels, false}, {e.Private, true}} {
		for _, n := range list.names {
			one := &Export{Channels: []string{n}, Private: []string{n}}
			if !slices.ContainsFunc(e.channels, func(c channel) bool { return c.private == list.private && one.wants(c) }) {
				kind := "public"
				if list.private {
					kind = "private"
				}
				return fmt.Errorf("the Slack export has no %s channel %s", kind, n)
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
