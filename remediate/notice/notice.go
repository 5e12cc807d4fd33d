// Package notice is what people are told who were not looking. A Notice is the news of one
// plan, as the executor tells it over the bus; a Proposal is everything about one incident,
// and a Notifier has people see it. It links nothing that decides anything, so that what
// speaks to Slack or Jira links nothing of the scheduler either.
//
// # To add a notifier
//
//  1. Write remediate/x: New(Options) and Notify(ctx, Proposal) error, within the vendor's
//     limits, as constants with their addresses.
//  2. Pass remediate/notifytest, the suite that every notifier passes.
//  3. Add its field and its place to cmd/internal/service/settings, and what makes it to
//     cmd/internal/service.
//  4. Add its room to README's table, which the import test holds it to.
//
// # What not to do
//
// Do not read the cluster to say more than the proposal does: what is missing there is
// missing for every other notifier too, and is added to Proposal. Do not tell twice: see
// Notifier.
package notice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/unpend/unpend/watcher/incident"
)

// What has become of a plan, its phase in lower case. Parked wants somebody to come.
const (
	Pending    = "pending" // recorded, and nobody has decided
	Queued     = "queued"  // approved, and a guard-rail says wait
	Running    = "running"
	Undoing    = "undoing" // what was begun is taken back
	Succeeded  = "succeeded"
	Failed     = "failed"
	Stopped    = "stopped"
	Parked     = "parked"
	Stale      = "stale"
	Expired    = "expired"
	Refused    = "refused"
	Rejected   = "rejected"
	Superseded = "superseded"
)

// Notice tells where a plan stands, or what it came to. All of it is read from the
// Remediation, which is the journal: told again it is the same, byte for byte.
type Notice struct {
	What     string       `json:"what"`
	Incident string       `json:"incident"`
	Plan     string       `json:"plan"` // the Remediation's name
	Workload incident.Ref `json:"workload"`
	Title    string       `json:"title"` // of the fix
	// Node that is parked, or else the first that the plan changes; empty when it changes none.
	Node   string    `json:"node,omitempty"`
	Reason string    `json:"reason"` // one sentence for a person
	Since  time.Time `json:"since"`  // when it ended; until then, when the step under way began
	// Began is when it was begun; zero before that.
	Began time.Time `json:"began,omitzero"`
	// Progress is "3/9", the step under way of how many, and Step says what that does; both
	// only while it runs.
	Progress string `json:"progress,omitempty"`
	Step     string `json:"step,omitempty"`
	// Released says of a parked plan that somebody has given its node back since; who tells
	// looks it up, it does not travel.
	Released bool `json:"-"`
	// Approvers, and the head of the audit trail about it.
	Approvers []string `json:"approvers,omitempty"`
	AuditHead string   `json:"auditHead,omitempty"`
}

// Ended says whether nothing more will happen by this plan.
func (n Notice) Ended() bool {
	switch n.What {
	case Pending, Queued, Running, Undoing:
		return false
	}
	return true
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
