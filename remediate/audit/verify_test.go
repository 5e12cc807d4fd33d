package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	plan = strings.Repeat("ab12", 16)
)

func sample(n int) Record {
	return Record{
		Time: noon.Add(time.Duration(n) * time.Second), Plan: plan, Incident: "gpu-0123456789", Node: "gpu-1",
		Step: fmt.Sprintf("0/evict/ml/web-%d", n), Text: `evict ml/web <&> "é…", of 2`, Result: Done, Why: "its owner replaced it",
		Actor: "system:serviceaccount:unpend:executor", Approvers: []string{"anna@example.com", "ben@example.com"},
		Leader: "unpend-0", Generation: 3,
	}
}

// trailOf is the text of a trail, line by line with their ends, made without a file.
func trailOf(t testing.TB, records ...Record) (lines []string, heads []string) {
	t.Helper()
	prev := origin
	for i, r := range records {
		r.Seq = int64(i + 1)
		line, hash, err := seal(r, prev)
		if err != nil {
			t.Fatal(err)
		}
		lines, heads, prev = append(lines, string(line)+"\n"), append(heads, hash), hash
	}
	return lines, heads
}

func samples(n int) []Record {
	var out []Record
	for i := range n {
		out = append(out, sample(i+1))
	}
	return out
}

func verify(lines []string, head string) (Report, error) {
	return Verify(strings.NewReader(strings.Join(lines, "")), head)
}

// The format is for ever: other programs, and later versions, read it.
func TestTheFormat(t *testing.T) {
	lines, _ := trailOf(t, sample(1))
	want := `{"seq":1,"time":"2026-11-20T12:00:01Z","plan":"` + plan + `","incident":"gpu-0123456789","node":"gpu-1","step":"0/evict/ml/web-1",` +
		`"text":"evict ml/web <&> \"é…\", of 2","result":"done","why":"its owner replaced it","actor":"system:serviceaccount:unpend:executor",` +
		`"approvers":["anna@example.com","ben@example.com"],"leader":"unpend-0","generation":3,` +
		`"prev":"0000000000000000000000000000000000000000000000000000000000000000",` +
		// printf '%s%s' "$prev" '{"seq":1,...,"generation":3}' | sha256sum
		`"hash":"e4de4940901875003e7db0d42f158178d9de445d89543b492835182370eba86f"}` + "\n"
	if lines[0] != want {
		t.Errorf("got %s", lines[0])
	}
}

func TestIntact(t *testing.T) {
	lines, heads := trailOf(t, samples(5)...)
	want := Report{Lines: 5, From: noon.Add(time.Second), To: noon.Add(5 * time.Second), Head: heads[4]}
	if got, err := verify(lines, ""); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for i, head := range heads { // the trail went on after it was posted
		want.Posted = i + 1
		if got, err := verify(lines, head); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// What a text of the cluster holds does not make its record unreadable, or look edited.
func TestEveryTextIsTaken(t *testing.T) {
	for _, text := range []string{"\xff\xfe", "a\x00b", "\u2028\u2029", "\ufffd", `","prev":"` + origin + `","hash":"` + origin + `"}`, "\n\r\n", strings.Repeat("\x01", 1<<20), strings.Repeat("漢", 1<<20), "\xed\xa0\x80"} {
		r := sample(1)
		r.Text, r.Why, r.Step, r.Approvers = text, text, cut(text, 300), []string{cut(text, 300)}
		lines, heads := trailOf(t, r, sample(2))
		if got, err := verify(lines, heads[1]); err != nil || got.Lines != 2 {
			t.Errorf("%.20q: %+v, %v", text, got, err)
		}
	}
}

func TestBrokenTrails(t *testing.T) {
	lines, heads := trailOf(t, samples(6)...)
	other, otherHeads := trailOf(t, sample(9), sample(8), sample(7), sample(6), sample(5), sample(4))
	forged, _, err := seal(Record{Seq: 3, Time: noon, Plan: plan, Step: "x", Result: Done, Actor: "mallory"}, heads[1])
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"seq":1,"time":"2026-11-20T12:00:01Z","step":"x","result":"done","actor":"a","colour":"red"`)
	newer := fmt.Sprintf(`%s,"prev":"%s","hash":"%s"}`+"\n", body, origin, hashOf(origin, body))
	body = []byte(`{"seq":"one"`)
	wrong := fmt.Sprintf(`%s,"prev":"%s","hash":"%s"}`+"\n", body, origin, hashOf(origin, body))
	with := func(at int, line string) []string {
		out := slices.Clone(lines)
		out[at-1] = line
		return out
	}
	cases := map[string]struct {
		lines []string
		head  string
		line  int
		says  string
	}{
		"edited":             {with(3, strings.Replace(lines[2], "evict", "amuse", 1)), "", 3, "line 3 was edited: its hash is not that of what it says"},
		"edited with hash":   {with(3, string(forged)+"\n"), "", 3, "line 3 was replaced or edited, its own hash made to fit: line 4 follows on another one"},
		"last edited":        {with(6, strings.Replace(lines[5], "evict", "amuse", 1)), "", 6, "line 6 was edited"},
		"removed":            {slices.Delete(slices.Clone(lines), 2, 3), "", 3, "line 3 was removed: record 3 is missing, its place has record 4"},
		"removed many":       {slices.Delete(slices.Clone(lines), 1, 4), "", 2, "line 2 was removed: records 2 to 4 are missing, its place has record 5"},
		"first removed":      {lines[1:], "", 1, "line 1 was removed: record 1 is missing"},
		"swapped":            {[]string{lines[0], lines[2], lines[1], lines[3]}, "", 2, "line 2 was moved: record 2 stands in line 3 now"},
		"moved far":          {[]string{lines[0], lines[2], lines[3], lines[4], lines[1], lines[5]}, "", 2, "line 2 was moved: record 2 stands in line 5 now"},
		"repeated":           {slices.Insert(slices.Clone(lines), 3, lines[2]), "", 4, "line 4 is record 3, where record 4 was to be: a line was inserted or repeated"},
		"inserted":           {slices.Insert(slices.Clone(lines), 2, string(forged)+"\n"), "", 4, "line 4 is record 3, where record 4 was to be"},
		"of another trail":   {append(slices.Clone(lines[:3]), other[3:]...), "", 3, "line 3 was replaced or edited"},
		"cut":                {lines[:4], heads[5], 5, "no line has the posted hash " + heads[5] + ": lines behind line 4 were removed, or the trail was made again"},
		"made again":         {other, heads[5], 7, "no line has the posted hash"},
		"another's head":     {lines, otherHeads[0], 7, "no line has the posted hash"},
		"cut in a line":      {append(slices.Clone(lines[:2]), lines[2][:40]), "", 3, "line 3 has no end: it was cut, or its writer was stopped in mid-write"},
		"last end":           {with(6, strings.TrimSuffix(lines[5], "\n")), "", 6, "line 6 has no end"},
		"empty":              {nil, "", 0, "it is empty: nothing was recorded yet, or all of it was removed"},
		"empty with a head":  {nil, heads[0], 0, "it is empty"},
		"empty line":         {slices.Insert(slices.Clone(lines), 1, "\n"), "", 2, "line 2 is empty: it was edited or inserted"},
		"not JSON":           {with(2, "hello\n"), "", 2, "line 2 is not JSON: it was edited, or the file is no audit trail"},
		"another JSON":       {[]string{`{"event":"done"}` + "\n"}, "", 1, "line 1 does not end with prev and hash"},
		"spaces":             {with(2, strings.Replace(lines[1], ":", ": ", 1)), "", 2, "line 2 was edited"},
		"space at the end":   {with(2, strings.Replace(lines[1], "}\n", "} \n", 1)), "", 2, "line 2 does not end with prev and hash"},
		"byte order mark":    {with(1, "\ufeff"+lines[0]), "", 1, "line 1 begins with a byte order mark: an editor has saved the file"},
		"CR LF":              {with(2, strings.Replace(lines[1], "\n", "\r\n", 1)), "", 2, "line 2 ends with CR LF: an editor, or a transfer as text, has changed the file"},
		"too long":           {with(2, strings.Repeat("x", 1<<20)+"\n"), "", 2, "line 2 is longer than 65536 bytes: no record is"},
		"upper-case hash":    {with(6, strings.Replace(lines[5], heads[5], strings.ToUpper(heads[5]), 1)), "", 6, "line 6 does not end with prev and hash"},
		"a newer version's":  {[]string{newer}, "", 1, `line 1 has a field that this version does not know, "colour": a newer unpend wrote it, verify with that one`},
		"nobody's":           {[]string{wrong}, "", 1, "line 1 is not a record, though its hash is right: no unpend wrote it"},
		"begins in mid-file": {[]string{late(t)}, "", 1, "line 1 says it follows on another line, though it is record 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := verify(c.lines, c.head)
			var b *BrokenError
			if !errors.As(err, &b) || b.Line != c.line || !strings.HasPrefix(b.Says, c.says) {
				t.Errorf("got %v, want line %d, %q", err, c.line, c.says)
			}
		})
	}
}

func late(t *testing.T) string {
	line, _, err := seal(Record{Seq: 1, Time: noon, Plan: plan, Step: "x", Result: Done, Actor: "a"}, strings.Repeat("a", 64))
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

// No byte can be changed, whichever it is and whatever it becomes.
func TestEveryByteCounts(t *testing.T) {
	lines, _ := trailOf(t, samples(3)...)
	whole := []byte(strings.Join(lines, ""))
	for at, was := range whole {
		for _, now := range []byte{was ^ 1, was ^ 0x20, was ^ 0x80, '\n', '\r', ' ', '"', 0} {
			if now == was {
				continue
			}
			whole[at] = now
			_, err := Verify(bytes.NewReader(whole), "")
			var b *BrokenError
			if line := bytes.Count(whole[:at], []byte("\n")) + 1; !errors.As(err, &b) || b.Line != line {
				t.Fatalf("byte %d, %q for %q, in line %d: %v", at, now, was, line, err)
			}
		}
		whole[at] = was
	}
}

func TestReadingFails(t *testing.T) {
	lines, _ := trailOf(t, samples(2)...)
	_, err := Verify(io.MultiReader(strings.NewReader(lines[0]), iotest.ErrReader(io.ErrClosedPipe)), "")
	var b *BrokenError
	if !errors.Is(err, io.ErrClosedPipe) || errors.As(err, &b) || !strings.Contains(err.Error(), "read line 2") {
		t.Errorf("got %v", err)
	}
}

// FuzzVerify: no change of a byte, and nothing put behind a trail, goes unseen.
func FuzzVerify(f *testing.F) {
	lines, heads := trailOf(f, samples(4)...)
	whole := strings.Join(lines, "")
	f.Add(0, byte(' '), "")
	f.Add(len(whole)-1, byte(' '), "\n")
	f.Add(700, byte('"'), lines[0])
	f.Add(40, whole[40], lines[3])
	f.Add(40, whole[40], strings.TrimSuffix(lines[3], "\n"))
	f.Fuzz(func(t *testing.T, at int, to byte, tail string) {
		at = int(uint(at) % uint(len(whole)))
		data := []byte(whole)
		data[at] = to
		_, err := Verify(strings.NewReader(string(data)), "")
		if changed := string(data) != whole; changed != (err != nil) {
			t.Errorf("byte %d made %q: %v", at, to, err)
		}
		_, err = Verify(strings.NewReader(whole+tail), heads[3])
		if (tail != "") != (err != nil) {
			t.Errorf("with %q behind it: %v", tail, err)
		}
		if _, err := Verify(strings.NewReader(tail), plan); err == nil {
			t.Errorf("%q is taken for a trail with the head %s", tail, plan)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	lines, heads := trailOf(b, samples(1000)...)
	whole := strings.Join(lines, "")
	b.SetBytes(int64(len(whole)))
	for b.Loop() {
		if _, err := Verify(strings.NewReader(whole), heads[999]); err != nil {
			b.Fatal(err)
		}
	}
}
