// Package notice is what people are told who were not looking: a Notice, and the Notifier
// that tells it. It links nothing that decides anything, so that what speaks to Slack or
// Jira links nothing of the scheduler either.
//
// The executor tells of every plan that has ended; it is given one Notifier, which in the
// service is the bus. What tells people takes the notices from the bus.
//
// # To add a notifier
//
//  1. Write remediate/x: New(Options) and Notify(ctx, Notice) error, within the vendor's
//     limits, as constants with their addresses.
//  2. Add its field to the service's configuration, in cmd/internal/service.
//  3. Bind it there to the bus's Outcomes, a line beside the others.
//  4. Add its room to README's table, which the import test holds it to.
//
// # What not to do
//
// Do not read the cluster to say more than the notice does: what is missing there is
// missing for every other notifier too, and is added to Notice. Do not tell twice: see
// Notifier.
package notice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/unpend/unpend/watcher/incident"
)

// Notifier tells people of plans that have ended.
type Notifier interface {
	// Notify tells a notice. It is called until it has returned nil, and may be called again
	// with the same notice after that, also from another process: the same Key and the same
	// content is told once, the same Key with other content updates what was told and repeats
	// nothing. An error says that nobody knows whether people were told, and that it has to
	// be tried again, with the same notice, soon; it is for an operator to read. Notify
	// returns when the context ends.
	Notify(context.Context, Notice) error
}

// Notice tells those who were not looking what a plan came to. All of it is read from
// the Remediation, which is the journal: told again it is the same, byte for byte.
type Notice struct {
	// What it came to, its phase in lower case: succeeded, failed, stopped, parked, stale,
	// expired, refused, rejected or superseded. Parked wants somebody to come.
	What     string       `json:"what"`
	Incident string       `json:"incident"`
	Plan     string       `json:"plan"` // the Remediation's name
	Workload incident.Ref `json:"workload"`
	Title    string       `json:"title"` // of the fix
	// Node that is parked, or else the first that the plan changes; empty when it changes none.
	Node   string    `json:"node,omitempty"`
	Reason string    `json:"reason"` // one sentence for a person
	Since  time.Time `json:"since"`  // when it ended
	// Approvers, and the head of the audit trail about it.
	Approvers []string `json:"approvers,omitempty"`
	AuditHead string   `json:"auditHead,omitempty"`
}

// Key is under which the newest notice of a plan is kept.
func (n Notice) Key() string { return n.Incident + "." + n.Plan }

// Message is the notice as it travels, under an id that is the same for the same news.
func (n Notice) Message() (id string, body []byte, err error) {
	body, err = json.Marshal(n)
	if err != nil {
		return "", nil, fmt.Errorf("encode the notice of plan %s: %w", n.Plan, err)
	}
	sum := sha256.Sum256(body)
	return n.Incident + "-" + hex.EncodeToString(sum[:8]), body, nil
}

// Older says whether another message of the same plan tells of a later end: a plan can
// be recorded again once it has come to nothing.
func (n Notice) Older(message []byte) bool {
	var other Notice
	return json.Unmarshal(message, &other) == nil && other.Since.After(n.Since)
}
