package remediate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

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

// noticeOf is what there is to tell of a plan that has ended.
func noticeOf(rem *v1alpha1.Remediation) Notice {
	n := Notice{What: outcome(rem.Status.Phase), Incident: rem.Spec.Incident, Plan: rem.Name, Workload: rem.Spec.Workload, Title: rem.Spec.Title,
		Reason: rem.Status.Message, Approvers: rem.Status.ApprovedBy, AuditHead: rem.Status.AuditHead}
	if rem.Status.Ended != nil {
		n.Since = rem.Status.Ended.UTC()
	}
	if len(rem.Spec.Nodes) > 0 {
		n.Node = rem.Spec.Nodes[0]
	}
	actions := inOrder(rem.Spec.Actions)
	if i, ok := actionOf(rem.Status.Parking); ok && i < len(actions) {
		n.Node = actions[i].Target.Name
	}
	return n
}

func outcome(p v1alpha1.Phase) string { return strings.ToLower(string(p)) }

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
// be recorded anew once it has come to nothing.
func (n Notice) Older(message []byte) bool {
	var other Notice
	return json.Unmarshal(message, &other) == nil && other.Since.After(n.Since)
}
