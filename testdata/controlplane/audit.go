package controlplane

import (
	"bytes"
	"encoding/json"
	"os"
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

// AuditEvents reads the API server's audit log. A request may be answered a
// moment before it is in the log: wait for it with Eventually.
func (c *ControlPlane) AuditEvents(tb testing.TB) []AuditEvent {
	tb.Helper()
	data, err := os.ReadFile(c.path("audit.log"))
	if err != nil {
		tb.Fatal(err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // the last line may still be written
	var out []AuditEvent
	for line := range bytes.Lines(data) {
		var e AuditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			tb.Fatalf("audit log: %v: %s", err, line)
		}
		out = append(out, e)
	}
	return out
}
