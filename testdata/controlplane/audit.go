package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// AuditEvent is one request the API server answered (audit.k8s.io/v1, level Metadata).
type AuditEvent struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	// Received and Answered are when the request came and when its answer was done.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	User     struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	// ImpersonatedUser is the user it acted as; empty: as itself.
	ImpersonatedUser struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// audited is what was read of the audit log so far.
type audited struct {
	mu     sync.Mutex
	offset int64
	events []AuditEvent
}

// AuditEvents reads the API server's audit log. A request may be answered a
// moment before it is in the log: wait for it with Eventually.
func (c *ControlPlane) AuditEvents(tb testing.TB) []AuditEvent {
	tb.Helper()
	events, err := c.audit.read(c.path("audit.log"))
	if err != nil {
		tb.Fatal(err)
	}
	return events
}

// read parses what was appended to the log since the last time.
func (a *audited) read(path string) ([]AuditEvent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, a.offset, math.MaxInt64-a.offset))
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // the last line may still be written
	for line := range bytes.Lines(data) {
		var e AuditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log: %w: %s", err, line)
		}
		a.events = append(a.events, e)
	}
	a.offset += int64(len(data))
	return slices.Clone(a.events), nil
}
