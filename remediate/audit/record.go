// Package audit keeps the trail of what the executor did: lines of JSON of which
// each carries the hash of the one before, so that Verify finds a line that was edited,
// removed or reordered. Somebody who may write the file can cut off its end, or write it
// again from some line on: a hash of it that was posted elsewhere tells that.
//
// Rules of the format:
//   - A line is a JSON object whose last two fields are prev and hash.
//   - hash is the sha256, in hex, of prev followed by the object without these two.
//   - It is taken over the bytes as they stand in the line, so that no change of a
//     byte goes unseen, and no other JSON encoder's habits matter.
//   - The first line's prev is 64 zeros, its seq is 1, and so on.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Record is one line of the trail.
type Record struct {
	Seq  int64     `json:"seq"`  // from 1; Append fills it in
	Time time.Time `json:"time"` // Append fills it in when it is zero
	// Plan is the Remediation's name: 64 hex.
	Plan     string `json:"plan,omitempty"`
	Incident string `json:"incident,omitempty"`
	Node     string `json:"node,omitempty"`
	// Step is its stable name, as in the Remediation's journal: "0/evict/ml/web-1".
	Step string `json:"step"`
	// Text is the step for a person, Why is what it ended with or who said no and why;
	// both are cut at 4096 bytes.
	Text   string `json:"text,omitempty"`
	Result Result `json:"result"`
	Why    string `json:"why,omitempty"`
	// Actor is who writes this: the executor's identity.
	Actor     string   `json:"actor"`
	Approvers []string `json:"approvers,omitempty"`
	// Leader, and the generation of its lease.
	Leader     string `json:"leader,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	Prev       string `json:"prev"` // hash of the line before; Append fills it in
	Hash       string `json:"hash"` // Append fills it in
}

// Result is what became of a step.
type Result string

// The results.
const (
	Begun    Result = "begun"
	Done     Result = "done"
	Failed   Result = "failed"
	Approved Result = "approved"
	Rejected Result = "rejected"
	Refused  Result = "refused"
	Parked   Result = "parked"
	Undone   Result = "undone"
	Stopped  Result = "stopped" // by a person, and undone
	Torn     Result = "torn"    // Open writes it: a line was not written to its end
)

var results = []Result{Begun, Done, Failed, Approved, Rejected, Refused, Parked, Undone, Stopped, Torn}

const (
	maxLine = 64 << 10 // bytes of a line without its end
	maxText = 4 << 10  // bytes of a text; escaped it is six times that at most
)

// origin is what the first line follows on.
var origin = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// The last bytes of a line are of fixed length: what a text holds cannot be taken
// for them.
const (
	beforePrev = `,"prev":"`
	beforeHash = `","hash":"`
	afterHash  = `"}`
)

var (
	hexLen  = len(origin)
	tailLen = len(beforePrev) + hexLen + len(beforeHash) + hexLen + len(afterHash)
)

// seal is the line of a record that follows on prev, without its end, and its hash.
func seal(r Record, prev string) (line []byte, hash string, err error) {
	r.Prev, r.Hash = "", ""
	r.Text, r.Why = cut(r.Text, maxText), cut(r.Why, maxText)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(r); err != nil {
		return nil, "", fmt.Errorf("encode the record: %w", err)
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte(beforePrev+beforeHash+afterHash+"\n"))
	hash = hashOf(prev, body)
	line = fmt.Appendf(body, beforePrev+"%s"+beforeHash+"%s"+afterHash, prev, hash)
	if len(line) > maxLine {
		return nil, "", fmt.Errorf("the record is too long: %d bytes, at most %d are taken", len(line), maxLine)
	}
	return line, hash, nil
}

// check says what is missing for a record to be worth keeping.
func (r Record) check() error {
	switch {
	case !slices.Contains(results, r.Result):
		return fmt.Errorf("result %q is not known", r.Result)
	case r.Step == "":
		return errors.New("the record names no step")
	case r.Actor == "":
		return errors.New("the record does not say who writes it")
	case !IsHash(r.Plan) && r.Result != Torn:
		return fmt.Errorf("plan %q is not 64 hex", r.Plan)
	}
	return nil
}

// split parts a line in what is hashed (but for its last brace) and the two hashes.
func split(line []byte) (body []byte, prev, hash string, ok bool) {
	at := len(line) - tailLen
	if at < 1 {
		return nil, "", "", false
	}
	rest, ok1 := strings.CutPrefix(string(line[at:]), beforePrev)
	prev, rest = rest[:min(hexLen, len(rest))], rest[min(hexLen, len(rest)):]
	rest, ok2 := strings.CutPrefix(rest, beforeHash)
	hash, ok3 := strings.CutSuffix(rest, afterHash)
	return line[:at], prev, hash, ok1 && ok2 && ok3 && IsHash(prev) && IsHash(hash)
}

func hashOf(prev string, body []byte) string {
	h := sha256.New()
	io.WriteString(h, prev) //nolint:errcheck // a hash takes everything
	h.Write(body)
	h.Write([]byte("}"))
	return hex.EncodeToString(h.Sum(nil))
}

// IsHash says whether s is the hash of a line, or of a plan: 64 lower-case hex.
func IsHash(s string) bool {
	return len(s) == hexLen && strings.Trim(s, "0123456789abcdef") == ""
}

// cut shortens s to n bytes between two runes, marking that it did.
func cut(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
