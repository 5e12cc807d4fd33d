package acceptance

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/remediate/audit"
)

// promiseS15: a line of the audit trail that is edited, removed or reordered is
// detected by `audit verify`, and named; the trail's end cut off, or written again, by the
// head that was posted.
func promiseS15(t *testing.T) {
	records := 200
	if testing.Short() { // each attack reads the whole trail
		records = 50
	}
	lines, head := auditTrail(t, records)
	b := &attack{t: t, head: head}
	if code, out := b.verify(lines, head); code != exitDone || !strings.Contains(out, fmt.Sprintf("intact: %d lines", records)) {
		t.Fatalf("exit %d of a trail that nobody touched: %s", code, out)
	}
	for i, line := range lines {
		posted := ""
		if i+1 == records { // behind the last one there is none to tell
			posted = head
		}
		changes := edits(t, line)
		for _, edited := range changes {
			b.broken("edited", splice(lines, i, 1, edited), "", i+1)
		}
		// Who knows the format gives it a hash that fits: the next line tells.
		b.broken("edited with its hash", splice(lines, i, 1, rehash(changes[i%len(changes)], prevOf(line))), posted, i+1)
		if i+1 < records { // of the last one that is truncation
			b.broken("removed", splice(lines, i, 1), "", i+1)
			b.broken("swapped", splice(lines, i, 2, lines[i+1], line), "", i+1)
		}
		b.broken("repeated", splice(lines, i+1, 0, line), "", i+2)
		b.broken("inserted", splice(lines, i, 0, forge(t, line, lines[(i+7)%records])), "", i+2)
		b.broken("truncated", lines[:i], head, i+1)
		b.broken("truncated in a line", splice(lines[:i+1], i, 1, line[:len(line)/2]), "", i+1)
		b.broken("written again", rewritten(lines, i), head, records+1)
	}
	report(t, b.held, b.of, fmt.Sprintf("%d records: %s", records, strings.Join(b.figures(), ", ")))
}

// attack counts what was tried on a trail, and what was found out.
type attack struct {
	t        *testing.T
	head     string
	of, held int
	kinds    []string
	counts   map[string]int
}

// broken tries a trail; the command is to exit 1 and name the line. Of one that was
// forged and fits where it was inserted, that is the line behind it.
func (a *attack) broken(kind string, lines []string, head string, line int) {
	a.t.Helper()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	if a.counts[kind]++; a.counts[kind] == 1 {
		a.kinds = append(a.kinds, kind)
	}
	a.of++
	code, out := a.verify(lines, head)
	named := strings.Contains(out, fmt.Sprintf("line %d ", line)) || len(lines) == 0 && strings.Contains(out, "it is empty") ||
		head != "" && strings.Contains(out, "no line has the posted hash "+head)
	if code == exitError && named && !strings.Contains(out, "intact") {
		a.held++
		return
	}
	a.t.Errorf("%s at line %d: exit %d, %q", kind, line, code, out)
}

// verify runs the command on a trail; it gives back its exit code and all it said.
func (a *attack) verify(lines []string, head string) (int, string) {
	var said bytes.Buffer
	args := []string{"unpend", "audit", "verify"}
	if head != "" {
		args = append(args, "--head", head)
	}
	code := program.Run(a.t.Context(), args, program.Stdio{In: strings.NewReader(strings.Join(lines, "")), Out: &said, Err: &said})
	return code, said.String()
}

func (a *attack) figures() []string {
	var out []string
	for _, kind := range a.kinds {
		out = append(out, fmt.Sprintf("%d %s", a.counts[kind], kind))
	}
	return out
}

// auditTrail is a trail as fixes leave it, written by the writer itself.
func auditTrail(t *testing.T, records int) (lines []string, head string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	trail, err := audit.Open(path, func() time.Time { at = at.Add(1700 * time.Millisecond); return at })
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if head, err = trail.Append(auditRecord(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(data))), head
}

// auditRecord is record i of repartitions, of which some are refused or undone.
func auditRecord(i int) audit.Record {
	story := []audit.Record{
		{Step: "approve", Text: "approve the plan", Result: audit.Approved, Why: "the queue is long"},
		{Step: "0/lock", Text: "take the lease of gpu-7", Result: audit.Done},
		{Step: "0/cordon", Text: "cordon gpu-7", Result: audit.Begun},
		{Step: "0/cordon", Text: "cordon gpu-7", Result: audit.Done},
		{Step: "0/evict/ml/web-1", Text: "evict ml/web-1", Result: audit.Begun},
		{Step: "0/evict/ml/web-1", Text: "evict ml/web-1", Result: audit.Done},
		{Step: "0/relabel", Text: `set nvidia.com/mig.config to "all-2g.10gb"`, Result: audit.Begun},
		{Step: "0/relabel", Text: `set nvidia.com/mig.config to "all-2g.10gb"`, Result: audit.Failed, Why: "MIG manager says <failed> & stays"},
		{Step: "undo/0/release", Text: "uncordon gpu-7", Result: audit.Undone},
		{Step: "approve", Text: "approve the plan", Result: audit.Refused, Why: "müller@example.com may not create approvals"},
		{Step: "approve", Text: "approve the plan", Result: audit.Rejected, Why: "not now"},
		{Step: "undo/0/release", Text: "leave gpu-7 cordoned", Result: audit.Parked},
	}
	r := story[i%len(story)]
	r.Plan = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i / len(story))}))
	r.Incident, r.Node, r.Actor = "gpu-7f3a01c9be", "gpu-7", "system:serviceaccount:unpend:executor"
	r.Approvers, r.Leader, r.Generation = []string{"anna@example.com"}, "unpend-executor-0", int64(i/50)
	return r
}

// edits are a line with each of its fields changed or taken out, and a byte less.
func edits(t *testing.T, line string) []string {
	t.Helper()
	out := []string{strings.Replace(line, ":", ": ", 1), strings.Replace(line, "s", "", 1)}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		if name == "prev" || name == "hash" || name == "seq" {
			continue // they are what holds the chain: with them it is removal, repetition and the like
		}
		field := fmt.Sprintf("%q:%s", name, value)
		out = append(out, strings.Replace(line, field+",", "", 1), strings.Replace(line, field, fmt.Sprintf("%q:%s", name, other(value)), 1))
	}
	slices.Sort(out) // a map has no order
	return out
}

// other is another value of the same type.
func other(value json.RawMessage) string {
	switch s := string(value); s[0] {
	case '"':
		if strings.HasPrefix(s, `"20`) {
			return strings.Replace(s, "2026", "2027", 1)
		}
		return `"x` + s[1:]
	case '[':
		return `["mallory"]`
	default:
		return s + "1"
	}
}

// splice is lines with so many from i on replaced by others.
func splice(lines []string, i, removed int, others ...string) []string {
	return slices.Concat(lines[:i], others, lines[i+removed:])
}

// The last bytes of a line are the hash of the one before and its own.
const (
	prevField = `,"prev":"`
	tail      = len(prevField) + 64 + len(`","hash":"`) + 64 + len("\"}\n")
)

func prevOf(line string) string { return line[len(line)-tail+len(prevField):][:64] }

// rehash makes a line follow on another one, its own hash true.
func rehash(line, prev string) string {
	body := line[:len(line)-tail]
	return fmt.Sprintf(`%s%s%s","hash":"%x"}`+"\n", body, prevField, prev, sha256.Sum256([]byte(prev+body+"}")))
}

// forge is another record in the place of a line, true in all but what was written.
func forge(t *testing.T, line, another string) string {
	t.Helper()
	_, rest, ok := strings.Cut(another, ",")
	seq, _, ok2 := strings.Cut(line, ",")
	if !ok || !ok2 || !strings.HasPrefix(seq, `{"seq":`) {
		t.Fatalf("not lines of a trail: %q, %q", line, another)
	}
	return rehash(seq+","+rest, prevOf(line))
}

// rewritten is a trail of which everything from line i on was written again.
func rewritten(lines []string, i int) []string {
	out := slices.Clone(lines)
	prev := prevOf(lines[i])
	for n := i; n < len(out); n++ {
		out[n] = rehash(strings.Replace(out[n], "gpu-7", "gpu-8", 1), prev)
		prev = out[n][len(out[n])-len("\"}\n")-64:][:64]
	}
	return out
}
