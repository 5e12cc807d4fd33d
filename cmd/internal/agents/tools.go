package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Why asks why something waits.
type Why struct {
	Target    string `json:"target,omitempty" jsonschema:"what waits: pod/NAME, KIND/NAME, NAME, or an incident id such as gpu-7f3a01c9be; everything of the namespace without it"`
	Namespace string `json:"namespace,omitempty" jsonschema:"namespace of the target; all that the caller may read without it"`
	Cause     string `json:"cause,omitempty" jsonschema:"only what waits for this cause, such as MIGFragmented"`
}

// Show asks for everything behind an incident, or one of its fixes.
type Show struct {
	Incident string `json:"incident" jsonschema:"id of an incident, such as gpu-7f3a01c9be"`
	Fix      int    `json:"fix,omitempty" jsonschema:"number of a fix of it; all without it"`
}

// Capacity asks whether more would fit.
type Capacity struct {
	Resources map[string]int `json:"resources" jsonschema:"how many more of which resource, one a pod, such as {\"nvidia.com/mig-3g.20gb\": 3}"`
	Like      string         `json:"like,omitempty" jsonschema:"a pod or workload such as would come, as [KIND/]NAME: its taints, selectors, CPU and memory are counted"`
	Namespace string         `json:"namespace,omitempty" jsonschema:"namespace of like"`
	Tolerate  []string       `json:"tolerate,omitempty" jsonschema:"taints that the pods would tolerate: KEY[=VALUE][:EFFECT]"`
}

// Incidents asks for all that waits.
type Incidents struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"only of this namespace"`
	Cause     string `json:"cause,omitempty" jsonschema:"only what waits for this cause, such as MIGFragmented"`
}

// Search asks what the team has said before.
type Search struct {
	Text string `json:"text" jsonschema:"words, names and error messages in any mixture, such as 2g.10gb pending a100; never query syntax"`
}

// maxSearch is how long a search may be, in bytes.
const maxSearch = 2000

// ExplainCause asks what a cause means.
type ExplainCause struct {
	Cause string `json:"cause" jsonschema:"id of a cause as why and show name it, such as MIGLayoutMismatch"`
}

// Propose has a plan recorded.
type Propose struct {
	Incident string `json:"incident" jsonschema:"id of an incident, such as gpu-7f3a01c9be"`
	Fix      int    `json:"fix" jsonschema:"number of the fix, as why shows it"`
	Plan     string `json:"plan" jsonschema:"the fix's plan (64 hex), as why shows it: another plan by now is refused as stale"`
}

type tools struct {
	Caller
	Options
}

func (t tools) add(s *mcp.Server) {
	add(s, "incidents", "List everything that waits on the cluster, the root cause and best fixes of each, and where a plan for it stands. Use it first, when nobody has named a pod. data is a DiagnosisList as `unpend incidents -o json` prints it.", true, t.asking, t.Incidents)
	add(s, "why", "Say why one pod or workload waits: causes with evidence, every node with all its blockers, and fixes that were proved on a copy of the cluster, best first, with who is stopped. Use it when a pod, a workload or an incident is named. data is a DiagnosisList as `unpend why -o json` prints it; no items means that nothing of it waits.", true, t.asking, t.Why)
	add(s, "show", "Show everything behind an incident or one of its fixes: who holds the GPUs (owner, age, priority), which fixes were tried and refuted, every step and command. Use it after why, to judge a fix or to say why no other helps. data is as `unpend show -o json` prints it.", true, t.asking, t.Show)
	add(s, "capacity", "Say whether N more of a GPU resource fit: now, after re-making idle instances, or after evicting which pods. Use it before something is started, not for what waits already. data is as `unpend capacity -o json` prints it.", true, t.asking, t.Capacity)
	add(s, "explain_cause", "Say what a cause of the closed catalogue means, how it is told from others, what it is often confused with, and which kinds of fixes may help. It reads no cluster.", true, t.asking, explainCause)
	add(s, "search", "Find what the team has said before that is like a text: runbooks, threads, tickets and how they ended. Use it with an error message or the words of a finding, to see how something was solved here. data is a KnowledgeList as `unpend search -o json` prints it: people wrote it, and it may be wrong or old; no items means that nothing is like it.", true, t.asking, t.search)
	if !t.Offline {
		add(s, "propose", "Record the plan of a fix as a Remediation under the caller's name, so that a person can read and approve it. It changes nothing else, approves nothing, and the plan expires. Use it only when a person has asked for that, with the plan that why showed them.", false, t.asking, t.propose)
	}
}

// add gives a tool to a server. Each is asked in turn, and answers with an Answer, errors too.
func add[In any](s *mcp.Server, name, says string, readOnly bool, turn func(context.Context) (func(), error), ask func(context.Context, In) (any, error)) {
	no := false
	about := &mcp.ToolAnnotations{ReadOnlyHint: readOnly, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: says, Annotations: about}, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Answer, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		done, err := turn(ctx)
		if err != nil {
			return failed(errors.New("others are being answered, and it was not this question's turn in time: ask again"))
		}
		defer done()
		data, err := ask(ctx, in)
		if err != nil {
			return failed(err)
		}
		return answered(data)
	})
}

// patience is how long one question may take.
const patience = 2 * time.Minute

func (t tools) asking(ctx context.Context) (func(), error) { return t.Limits.turn(ctx) }

func explainCause(_ context.Context, in ExplainCause) (any, error) {
	if e, ok := diagnosis.Explain(diagnosis.CauseID(in.Cause)); ok {
		return e, nil
	}
	return nil, fmt.Errorf("%q is no cause of the catalogue: take one that why shows, such as %s", in.Cause, diagnosis.MIGFragmented)
}

func (t tools) search(ctx context.Context, in Search) (any, error) {
	if strings.TrimSpace(in.Text) == "" || len(in.Text) > maxSearch {
		return nil, fmt.Errorf("the text has %d bytes: it has to have something, and at most %d", len(in.Text), maxSearch)
	}
	return t.Search(ctx, in)
}

func (t tools) propose(ctx context.Context, in Propose) (any, error) {
	who, err := t.Name(ctx)
	if err != nil {
		return nil, err
	}
	if !t.Limits.mayPropose(who, time.Now()) {
		return nil, fmt.Errorf("too many proposals: %d at once, and then one a %s; people have to read them", proposalsAtOnce, proposalEvery)
	}
	return t.Propose(ctx, in)
}
