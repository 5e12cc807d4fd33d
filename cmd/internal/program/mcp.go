package program

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/agents"
	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/program/recall"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/service"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

func mcpCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &whyOptions{Source: sources.Source{Kube: kube, All: true}}
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Answer agents over the Model Context Protocol, on stdin and stdout",
		Long: `Answer agents over the Model Context Protocol, on stdin and stdout, with the rights of the
kubeconfig: incidents, why, show, capacity and explain_cause read, search finds what you have
imported ('unpend knowledge import'), and propose records a plan under your name for a person to approve. No tool approves. From dumps (-f) the reading tools
answer, and nothing is proposed.

An agent starts it by itself: give it the command "unpend mcp". The service answers callers
with a token of their own over HTTP: at /mcp of its page, and where web.mcp of its
configuration names an address.`,
		Example: "  unpend mcp\n  unpend mcp --context prod --executor-namespace unpend\n  unpend mcp -f testdata/scenarios/all-1g",
		Args:    console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.usable(); err != nil {
				return err
			}
			caller := &agentsCaller{*o, o.Search}
			s := agents.New(caller, agents.Options{Version: readBuild().Version, Offline: len(o.Files) > 0})
			return agents.Serve(c.Context(), s, std.In, std.Out)
		},
	}
	o.Source.Flags(c)
	o.GPUWork.Flags(c)
	decisions.ExecutorFlag(c, &o.executorNamespace)
	return c
}

// usable says before an agent is answered what would fail with every question.
func (o *whyOptions) usable() error {
	if slices.Contains(o.Files, "-") {
		return console.Usage("-f - reads stdin, on which the agent speaks: name a file or a folder")
	}
	if len(o.Files) > 0 {
		_, err := dump.Read(o.Files, strings.NewReader(""))
		return err
	}
	_, err := o.REST()
	return err
}

// agentsHandlers answer callers of the API server at which the service is, each by the token
// that they bring and none of the service's own rights. They share their limits.
func (o *runOptions) agentsHandlers(config *rest.Config, namespace, version string) func(s *service.Service, guarded bool) http.Handler {
	limits := agents.NewLimits()
	return func(s *service.Service, guarded bool) http.Handler {
		return agents.Handler(func(token string) (agents.Caller, error) {
			its := rest.AnonymousClientConfig(config)
			its.BearerToken = token
			c := &agentsCaller{whyOptions: whyOptions{Source: sources.Source{Kube: o.Kube, All: true, Config: its}, executorNamespace: namespace}}
			c.find = func(ctx context.Context, query string, n int) ([]knowledge.Hit, error) {
				d, err := c.Deps()
				if err != nil {
					return nil, err
				}
				return s.SearchAs(ctx, d.Client, query, n)
			}
			return c, nil
		}, agents.Options{Version: version, Limits: limits, Guarded: guarded})
	}
}

// agentsCaller answers an agent as the commands answer a person.
type agentsCaller struct {
	whyOptions
	// find is what the caller may see of what the team has said before.
	find service.Finder
}

// mostFound answer one search of an agent.
const mostFound = 5

// Search implements agents.Caller.
func (c *agentsCaller) Search(ctx context.Context, in agents.Search) (any, error) {
	hits, err := c.find(ctx, in.Text, mostFound)
	if err != nil {
		return nil, sources.Unreachable(err)
	}
	return recall.List(hits), nil
}

// silent is what commands write beside their data, which an agent has no use for.
func silent() console.Stdio {
	return console.Stdio{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
}

// Why implements agents.Caller.
func (c *agentsCaller) Why(ctx context.Context, in agents.Why) (any, error) {
	var args []string
	if in.Target != "" {
		args = []string{in.Target}
	}
	found, err := c.found(ctx, args, in.Namespace, in.Cause)
	if err != nil {
		return nil, err
	}
	return struct {
		diagnosis.List
		Says string `json:"says,omitempty"`
	}{diagnosis.List{APIVersion: diagnosis.APIVersion, Kind: diagnosis.ListKind, Items: found.items}, found.says}, nil
}

// findings are what waits, of all that was asked about.
type findings struct {
	items []diagnosis.Diagnosis
	state *cluster.State
	says  string // that nothing waits, and where that was looked for
}

func (c *agentsCaller) found(ctx context.Context, args []string, ns, cause string) (f findings, err error) {
	if cause != "" && diagnosis.CauseID(cause).Words() == "" {
		return f, fmt.Errorf("%q is no cause of the catalogue: take one that why shows, such as %s", cause, diagnosis.MIGFragmented)
	}
	asked, err := newTarget(args, ns)
	if err != nil {
		return f, err
	}
	if f.state, err = c.State(ctx, ns, silent()); err != nil {
		return f, err
	}
	if err := c.Kube.CheckMark(sources.Ref{ID: asked.name, Mark: asked.mark}, sources.ClusterMark(f.state)); err != nil {
		return f, err
	}
	if f.items, err = c.diagnose(ctx, f.state, asked, silent()); err != nil {
		return f, err
	}
	if len(f.items) == 0 && asked.kind == "" && sources.IncidentID.MatchString(asked.name) {
		return f, c.gone(ctx, f.state, asked.name)
	}
	if len(f.items) == 0 {
		var says strings.Builder
		err = asked.explainNothing(f.state, &says)
		f.says = strings.TrimSpace(says.String())
	}
	f.items = slices.DeleteFunc(f.items, func(d diagnosis.Diagnosis) bool {
		return cause != "" && !slices.ContainsFunc(d.Causes, func(c diagnosis.Cause) bool { return string(c.ID) == cause })
	})
	if f.items == nil {
		f.items = []diagnosis.Diagnosis{}
	}
	return f, err
}

// Incidents implements agents.Caller.
func (c *agentsCaller) Incidents(ctx context.Context, in agents.Incidents) (any, error) {
	found, err := c.found(ctx, nil, in.Namespace, in.Cause)
	if err != nil {
		return nil, err
	}
	items, _, _, err := c.openIncidents(ctx, found.items, found.state)
	if err != nil {
		return nil, err
	}
	return incidentList(items), nil
}

// Show implements agents.Caller.
func (c *agentsCaller) Show(ctx context.Context, in agents.Show) (any, error) {
	ref, err := fixRef(in.Incident, in.Fix)
	if err != nil {
		return nil, err
	}
	st, err := c.State(ctx, "", silent())
	if err != nil {
		return nil, err
	}
	if err := c.Kube.CheckMark(ref, sources.ClusterMark(st)); err != nil {
		return nil, err
	}
	d, err := c.detail(ctx, st, ref, silent())
	if err != nil {
		return nil, err
	}
	return detailList(d), nil
}

// Capacity implements agents.Caller.
func (c *agentsCaller) Capacity(ctx context.Context, in agents.Capacity) (any, error) {
	var args []string
	for resource, n := range in.Resources {
		args = append(args, fmt.Sprintf("%s=%d", resource, n))
	}
	slices.Sort(args)
	if len(args) == 0 {
		return nil, fmt.Errorf("nothing is asked for: name resources and how many, such as nvidia.com/gpu: 2")
	}
	asks, err := capacityAsks(args)
	if err != nil {
		return nil, err
	}
	o := capacityOptions{Source: c.Source, like: in.Like, tolerate: in.Tolerate}
	guest, err := o.guest()
	if err != nil {
		return nil, err
	}
	st, err := o.State(ctx, "", silent())
	if err != nil {
		return nil, err
	}
	if guest.Like, err = o.likeIn(st, in.Namespace); err != nil {
		return nil, err
	}
	return capacity.Capacity(ctx, st, asks, guest)
}

// Name implements agents.Caller.
func (c *agentsCaller) Name(ctx context.Context) (string, error) {
	d, err := c.Deps()
	if err != nil {
		return "", err
	}
	who, _, err := desk.WhoAmI(ctx, d.Client)
	return who, sources.Unreachable(err)
}

// proposal is what is recorded, and what a person does with it.
type proposal struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Plan       string            `json:"plan"`
	Incident   string            `json:"incident"`
	Fix        int               `json:"fix"`
	Title      string            `json:"title"`
	Requester  string            `json:"requester"`
	Expires    time.Time         `json:"expires"`
	Phase      v1alpha1.Phase    `json:"phase"`
	Cost       diagnosis.Cost    `json:"cost"`
	Effect     *diagnosis.Effect `json:"effect"`
	// Approve is the command by which a person who may approves it, and Reject the other.
	Approve string `json:"approve"`
	Reject  string `json:"reject"`
}

// Propose implements agents.Caller. The plan is proved again first, as an approval does.
func (c *agentsCaller) Propose(ctx context.Context, in agents.Propose) (any, error) {
	ref, err := fixRef(in.Incident, in.Fix)
	if err != nil {
		return nil, err
	}
	if ref.Fix == 0 || len(in.Plan) != planLength {
		return nil, fmt.Errorf("which fix, and by which plan? name its number and its plan of %d hex, as why shows them", planLength)
	}
	d, err := c.Deps()
	if err != nil {
		return nil, err
	}
	if err := c.OfThisCluster(ctx, d, ref); err != nil {
		return nil, err
	}
	d.Guard = executor.GuardOf(d, c.executorNamespace, 0)
	leads, err := decisions.ExecutorLeads(ctx, d, c.executorNamespace)
	if err != nil {
		return nil, err
	}
	if !leads {
		return nil, fmt.Errorf("%w: no executor leads in namespace %s, so nobody would carry out a plan that is recorded; a person applies the fix with: unpend approve %s#%d", plan.ErrRefused, c.executorNamespace, ref.ID, ref.Fix)
	}
	found, err := executor.Find(ctx, d, ref.ID, ref.Fix, in.Plan)
	if err != nil {
		return nil, sources.Unreachable(err)
	}
	me, err := decisions.AtDesk(ctx, d, c.executorNamespace)
	if err != nil {
		return nil, err
	}
	rem, err := me.Propose(ctx, found)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s#%d", ref.ID, found.Fix.ID)
	return proposal{APIVersion: diagnosis.APIVersion, Kind: "Proposal", Plan: rem.Name, Incident: ref.ID, Fix: found.Fix.ID, Title: found.Fix.Title, Requester: rem.Spec.Requester, Expires: rem.Spec.Expires.Time,
		Phase: decisions.StandingOf(rem).Phase, Cost: found.Fix.Cost, Effect: found.Fix.Effect, Approve: fmt.Sprintf("unpend approve %s --plan %s", id, rem.Name), Reject: "unpend reject " + id}, nil
}

// planLength of its name, in hex.
const planLength = 64

// fixRef reads an incident and the number of a fix of it, 0 for all.
func fixRef(incident string, fix int) (sources.Ref, error) {
	if fix < 0 {
		return sources.Ref{}, console.Usage("%d is no number of a fix", fix)
	}
	if fix > 0 && !strings.Contains(incident, "#") {
		incident = fmt.Sprintf("%s#%d", incident, fix)
	}
	return sources.ParseIncident(incident)
}
