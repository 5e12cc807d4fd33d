package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/knowledge"
)

// Options say what a page shows, and how it asks what a reader may see.
type Options struct {
	// As makes a client that has a reader's token and nothing of ours. Required.
	As func(token string) (kubernetes.Interface, error)
	// Namespaces are all that exist, to know their names in texts. Required.
	Namespaces func(context.Context) ([]string, error)
	// Cluster is what people call this one.
	Cluster string
	// Hosts are the names that the page is asked by, besides those of loopback: behind a
	// proxy that ends TLS, on the same machine. Cookies then travel by https alone.
	Hosts []string
	// ReportsFor is how old a GPU report may be before nothing in it is believed (5m).
	ReportsFor time.Duration
	Logger     *slog.Logger     // nothing is logged without it
	Now        func() time.Time // time.Now
	// Agents answers programs that bring a token, at /mcp, behind the same guard as the page;
	// nil: nobody does.
	Agents http.Handler
	// Desk takes what a reader decides; nil: nobody can decide here.
	Desk Desk
	// Search finds what the team has said that is like a query, at most n; nil: there is
	// nothing to search. An error that is plan.ErrRefused is told to who asks.
	Search func(ctx context.Context, query string, n int) ([]knowledge.Hit, error)
}

// Page serves people with a browser. It is a notice.Notifier: what it was told last of each
// incident is what it shows.
type Page struct {
	opts     Options
	board    *board
	gpus     *inventory
	sessions *sessions
	names    *names
	files    files
	asking   chan struct{} // has room for the questions to the API server that are no session's yet
	trials   chan struct{} // for those that read the whole cluster
	streams  chan struct{} // and for the event streams
	programs chan struct{} // and for what agents ask
}

// mostAsking sign-ins are looked at together: a guessed token costs the API server a
// question.
const mostAsking = 8

// New makes a page that shows nothing yet.
func New(o Options) (*Page, error) {
	if o.As == nil || o.Namespaces == nil {
		return nil, errors.New("the page needs a way to ask the API server as its reader")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.ReportsFor = cmp.Or(o.ReportsFor, 5*time.Minute)
	f, err := newFiles()
	if err != nil {
		return nil, err
	}
	return &Page{opts: o, board: newBoard(), gpus: newInventory(), sessions: newSessions(o.Now), names: &names{list: o.Namespaces, now: o.Now}, files: f,
		asking: make(chan struct{}, mostAsking), trials: make(chan struct{}, mostTrials), streams: make(chan struct{}, mostStreams), programs: make(chan struct{}, mostPrograms)}, nil
}

// Handler serves the page.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /static/{digest}/{name}", p.files.serve)
	mux.HandleFunc("GET /sign-in", p.signInForm)
	mux.HandleFunc("POST /sign-in", p.signIn)
	mux.HandleFunc("POST /sign-out", p.signOut)
	mux.HandleFunc("GET /{$}", p.signedIn(p.list))
	mux.HandleFunc("GET /incidents/{id}", p.signedIn(p.incident))
	mux.HandleFunc("GET /incidents/{id}/fixes/{fix}", p.signedIn(p.consent))
	mux.HandleFunc("POST /incidents/{id}/fixes/{fix}", p.signedIn(p.decide))
	mux.HandleFunc("GET /cluster", p.signedIn(p.cluster))
	mux.HandleFunc("GET /events", p.signedIn(p.events))
	if p.opts.Search != nil {
		mux.HandleFunc("GET /search", p.signedIn(p.search))
	}
	if p.opts.Agents != nil {
		mux.HandleFunc("/mcp", p.program)
	}
	mux.HandleFunc("/", p.signedIn(func(w http.ResponseWriter, r *http.Request, _ *reader) { p.missing(w, r) }))
	return p.guarded(mux)
}

// Sizes and times that bound what a stranger can have the server hold.
const (
	maxBody   = 64 << 10 // a token, or a decision
	maxHeader = 64 << 10 // a token in Authorization has some kB
)

// Server is an http.Server with the page's limits, for a listener of the caller's.
func (p *Page) Server() *http.Server {
	return &http.Server{Handler: p.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(p.opts.Logger.Handler(), slog.LevelDebug)}
}
