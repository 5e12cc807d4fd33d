// Package service is what `unpend run` runs: it binds watcher, rca and remediate to each
// other over the bus, tells people, and serves metrics and readiness. What it is told to do is
// settings, who explains is analyst, which process does its work is lead, how it comes to the
// API server is clients, and who decides from Slack and the page comes to desks. The flags are
// read in cmd/internal/program.
package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/service/clients"
	"github.com/unpend/unpend/cmd/internal/service/lead"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/cmd/internal/traces"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/web"
	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// Roles are what one process can do of the whole; remediate only in mode approve.
var Roles = []string{"watch", "diagnose", "notify", "remediate"}

// Options say what a service is to do, and for which cluster.
type Options struct {
	Config settings.Config
	// Measure says what pods do with their GPUs; nil: nobody is asked.
	Measure diagnosis.Measure
	REST    *rest.Config // how the API server is spoken to
	// Agents answers callers with a token: where web.mcp says, and, where somebody else checks
	// by which name they came (guarded), on the page.
	Agents func(s *Service, guarded bool) http.Handler
	// Roles are those of this process. Together watch and diagnose may have a NATS in this
	// process; one alone, or notify without them, needs Config.Bus.URL.
	Roles []string
	Mode  string // as a person chose it, for the log
	// Version and Commit of this binary, for the log and for metrics.
	Version, Commit string
	Out             io.Writer // a diagnosis a line
	Log             io.Writer // the log, as JSON
}

// New makes a service, says in its log what starts, and asks nothing of the cluster yet.
func New(ctx context.Context, o Options) (*Service, error) {
	config := rest.CopyConfig(o.REST)
	config.Wrap(clients.Hurried)
	held := clients.Gently(config)
	client, custom, err := live.Clients(held)
	if err != nil {
		return nil, err
	}
	named, err := owners.Names(o.Config.RCA.OwnerKinds)
	if err != nil {
		return nil, fmt.Errorf("rca.ownerKinds: %w", err)
	}
	owned, err := owners.New(held, named)
	if err != nil {
		return nil, err
	}
	asked, err := owners.New(config, named)
	if err != nil {
		return nil, err
	}
	s := &Service{owners: owned, asked: asked, config: o.Config, agents: o.Agents, measure: o.Measure, client: client, custom: custom, rest: config, door: clients.DoorOf(config), now: time.Now, roles: o.Roles, out: o.Out, logger: slog.New(slog.NewJSONHandler(o.Log, nil)), registry: prometheus.NewRegistry()}
	if err := s.announce(ctx, o); err != nil {
		return nil, err
	}
	if s.traces, err = s.newTraces(ctx, o.Version); err != nil {
		return nil, err
	}
	return s, nil
}

// Service binds the rooms together, a line per topic.
type Service struct {
	config   settings.Config
	measure  diagnosis.Measure
	client   kubernetes.Interface // for watching and diagnosing, held back together
	custom   dynamic.Interface
	owners   owners.Reader // kinds of owners that are read beside Kubernetes' own; held back, too
	asked    owners.Reader // the same, for the executor and for people
	rest     *rest.Config  // of the executor, which a storm of diagnoses must not hold up
	now      func() time.Time
	agents   func(s *Service, guarded bool) http.Handler
	finder   atomic.Pointer[placeFinder] // nil: nothing is read that could be searched
	roles    []string
	out      io.Writer // diagnoses, one a line
	logger   *slog.Logger
	registry *prometheus.Registry
	bus      *bus.Bus
	late     *lateBus
	library  *library.Library // nil: there is no knowledge
	lead     *lead.Lead       // nil: there is no other process beside this one
	ready    readiness
	page     *web.Page // nil: there is none
	door     clients.Door
	traces   *traces.Teller // nil: nobody is told
	listener net.Listener   // of the page; nil: it listens where the configuration says
	slackURL string         // of Slack's API, in tests
}

// Run does what the service is there for until ctx ends, which is no error, or a part of it
// fails.
func (s *Service) Run(ctx context.Context) error {
	err := s.run(ctx)
	s.logger.InfoContext(ctx, "unpend ends", "because", cmp.Or(err, context.Cause(ctx)))
	return err
}

func (s *Service) run(ctx context.Context) (err error) {
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		if terr := s.traces.Close(last); terr != nil {
			s.logger.WarnContext(ctx, "the last traces are lost", "error", terr)
		}
	}()
	if s.does("watch") || s.does("diagnose") || s.does("notify") {
		b, err := s.openBus(ctx)
		if err != nil {
			return err
		}
		defer b.Close()
		s.bus, s.ready.check = b, b.Healthy
		if s.lead, err = s.elected(); err != nil {
			return err
		}
		s.ready.leads = s.lead.Standing
		if s.does("diagnose") || s.does("notify") {
			if s.library, err = s.openLibrary(ctx); err != nil {
				return err
			}
			defer s.library.Close() //nolint:errcheck // the process ends, and what was written is written
			if s.library != nil {
				s.bindSearch(s.library.Find)
			}
		}
		if s.does("diagnose") {
			if s.page, err = s.newPage(ctx); err != nil {
				return err
			}
		}
	}
	s.late = &lateBus{Service: s}
	defer s.late.close()
	p, ctx := parts.New(ctx)
	if s.lead != nil {
		p.Begin("lead", func() error { return s.lead.Run(ctx) })
	}
	p.Begin("http", func() error { return serveHTTP(ctx, s.config.Web.Metrics, s.registry, &s.ready) })
	if s.config.Web.MCP != "" && s.agents != nil {
		p.Begin("agents", func() error {
			return serve(ctx, "agents", s.config.Web.MCP, &http.Server{Handler: s.answering(false), ReadHeaderTimeout: 5 * time.Second})
		})
	}
	s.begin(ctx, p)
	if err := p.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// begin begins what each role does.
func (s *Service) begin(ctx context.Context, p parts.Group) {
	if s.does("remediate") {
		p.Begin("remediate", func() error { return s.carryOut(ctx) })
	}
	if c := s.config.Slack; c.Heard() && s.does(c.Hearer()) {
		p.Begin("hear", func() error {
			return s.whenThere(ctx, "what people click in Slack is not heard", s.hearSlack, c.TokenFile, c.AppTokenFile, c.SigningSecretFile)
		})
	}
	if s.does("watch") {
		p.Begin("watch", func() error { return s.watch(ctx) })
	}
	if s.library != nil && s.config.Knowledge.Keeps() {
		p.Begin("knowledge", func() error { return s.library.Run(ctx) })
		if s.config.Knowledge.Hears() && s.does("notify") {
			p.Begin("hear knowledge", func() error {
				return s.whenThere(ctx, "what is new in Slack is not heard", s.library.Hear, s.config.Knowledge.Slack.AppTokenFile)
			})
		}
	}
	if s.does("diagnose") {
		if s.page != nil {
			p.Begin("page", func() error { return s.servePage(ctx) })
		}
		p.Begin("diagnose", func() error { return s.diagnose(ctx) })
	}
	if s.does("diagnose") || s.does("notify") {
		p.Begin("tell people", func() error { return s.tellPeople(ctx) })
	}
	if s.does("notify") {
		p.Begin("word findings", func() error {
			return s.whenThere(ctx, "findings are told without a model's words", s.wordFindings, s.config.Narrate.KeyFile)
		})
	}
}

// does says whether a role is this process's. One that was given none has all.
func (s *Service) does(role string) bool { return len(s.roles) == 0 || slices.Contains(s.roles, role) }

// shares says whether other processes hear what this one says.
func (s *Service) shares() bool { return s.config.Bus.URL != "" || s.config.Bus.Listen != "" }

func (s *Service) watch(ctx context.Context) error {
	var elected func(context.Context) (context.Context, error)
	if s.lead != nil {
		elected = s.lead.Wait
	}
	w, err := watcher.New(watcher.Options{Client: s.client, Dynamic: s.custom, Owners: s.owners, Sweep: s.config.Watcher.Sweep.Duration, Debounce: s.config.Watcher.Debounce.Duration,
		Logger: s.logger, Registerer: s.registry, Publish: publishIncident(s.bus), Published: publishedIncidents(s.bus), Again: s.bus.Recovered(), Lead: elected})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// publishIncident binds the watcher's type to its topic.
func publishIncident(b *bus.Bus) func(context.Context, incident.Incident) error {
	return func(ctx context.Context, i incident.Incident) error {
		id, body, err := i.Message()
		if err != nil {
			return err
		}
		return b.PublishNewer(bus.Traced(ctx, traces.Wait{Incident: i.ID, Since: i.Since}.Parent()), bus.Incidents, i.ID, id, body, i.Older)
	}
}

// publishedIncidents reads what is known of each incident. A message that nobody
// can read tells nothing: the next one replaces it.
func publishedIncidents(b *bus.Bus) func(context.Context) ([]incident.Incident, error) {
	return func(ctx context.Context) ([]incident.Incident, error) {
		var out []incident.Incident
		err := b.Kept(ctx, bus.Incidents, func(body []byte) error {
			var i incident.Incident
			if json.Unmarshal(body, &i) == nil {
				out = append(out, i)
			}
			return nil
		})
		return out, err
	}
}
