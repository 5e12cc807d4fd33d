package controlplane

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// Impersonated is one request that somebody made as somebody else: both names are
// in the audit log.
type Impersonated struct {
	AuditEvent
	As struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"impersonatedUser"`
	// By is the verb that allowed it; a constraint is empty for legacy impersonation.
	By struct {
		Constraint string `json:"impersonationConstraint"`
	} `json:"authenticationMetadata"`
}

// Impersonations reads them from the API server's audit log, as AuditEvents does.
func (c *ControlPlane) Impersonations(tb testing.TB) []Impersonated {
	tb.Helper()
	data, err := os.ReadFile(c.path("audit.log"))
	if err != nil {
		tb.Fatal(err)
	}
	var out []Impersonated
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) {
		var e Impersonated
		if err := json.Unmarshal(line, &e); err != nil {
			tb.Fatalf("audit log: %v: %s", err, line)
		}
		if e.As.Username != "" {
			out = append(out, e)
		}
	}
	return out
}
