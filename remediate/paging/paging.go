// Package paging has people come: it tells services that wake somebody, or that route to
// those who do. Of one incident there is one page, that goes on while there is a reason for
// it, is acknowledged once somebody has approved a fix, and ends by itself.
//
// Begin at Pager, the life of a page for every vendor; what is worth one is in when.go, what
// it says in page.go. A vendor has one file, with its limits.
//
// To add a vendor: a file with the limits and their addresses, a type with send and lasts,
// and a maker that ends in newPager; then its lines in paging_test.go, where it passes
// remediate/notifytest.
package paging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/outbound"
)

// Options of a pager.
type Options struct {
	// Cluster is what people call the cluster.
	Cluster string
	// ID tells incidents of this cluster from another's, at the same vendor: the beginning
	// of its uid. Without it keys are the incidents' alone.
	ID string
	// When says what is worth a page.
	When When
	// Client that speaks to the vendor; required.
	Client *outbound.Client
	// Load and Save keep what was told, by a key of letters, digits, "." and "-". Load gives
	// nil for a key that was never saved.
	Load func(ctx context.Context, key string) ([]byte, error)
	Save func(ctx context.Context, key string, value []byte) error
	// Now is the time; the machine's without it.
	Now func() time.Time
}

// vendor tells of pages in one place.
type vendor interface {
	// send has the vendor know a page as it is now, where it knew it as it was, or may have.
	// Sending the same again changes nothing for people.
	send(ctx context.Context, was, now page) error
	// lasts is how long it holds a page to be true without hearing of it; 0: for good.
	lasts() time.Duration
}

// Pager is a notice.Notifier of one vendor.
type Pager struct {
	Options
	vendor
	turn chan struct{} // one page after the other
	sent atomic.Int64

	mu  sync.Mutex
	due map[string]time.Time // when to tell of an incident again, though nothing is news
}

func newPager(o Options, v vendor) (*Pager, error) {
	if o.Client == nil || o.Load == nil || o.Save == nil {
		return nil, errors.New("paging: there is no client, or nowhere to keep what was told")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Pager{Options: o, vendor: v, turn: make(chan struct{}, 1), due: map[string]time.Time{}}, nil
}

// Check looks whether the vendor knows us, where it can be asked without paging anybody. The
// error says what is wrong and where to mend it; it is for an operator.
func (p *Pager) Check(ctx context.Context) error {
	if v, ok := p.vendor.(interface{ check(context.Context) error }); ok {
		return v.check(ctx)
	}
	return nil
}

// record is what a vendor was told of an incident; it is kept before it is told, and after.
type record struct {
	Page page      `json:"page"`
	Open bool      `json:"open"` // it may be there, and has not been ended
	Sent time.Time `json:"sent,omitzero"`
}

// Notify implements notice.Notifier.
func (p *Pager) Notify(ctx context.Context, of notice.Proposal) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.turn <- struct{}{}:
	}
	defer func() { <-p.turn }()
	if err := ctx.Err(); err != nil {
		return err
	}
	wanted, from := p.When.wants(of, p.Now())
	p.expect(of.Incident, from)
	r, err := p.load(ctx, of.Incident)
	if err != nil || !wanted && !r.Open {
		return err
	}
	now := p.page(of, wanted)
	if !r.Open || r.Sent.IsZero() || now.sum() != r.Page.sum() || p.lasts() > 0 && !p.Now().Before(r.Sent.Add(p.lasts()/renewals)) {
		if err := p.tell(ctx, of.Incident, r, now); err != nil {
			return err
		}
	}
	if now.State != over && p.lasts() > 0 {
		p.expect(of.Incident, r.Sent.Add(p.lasts()/renewals))
	}
	return nil
}

// renewals are how often a page is told of in the time that it lasts: one may get lost.
const renewals = 5

// lasting is how long what is being sent may go on after the process was told to stop: what
// the vendor has taken and we have not kept, the next process would send again.
const lasting = 2 * time.Second

// toEnd is ctx, but lasts that much longer.
func toEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(lasting):
			cancel()
		}
	})
	return longer, func() { stop(); cancel() }
}

func (p *Pager) tell(asked context.Context, incident string, r *record, now page) (err error) {
	ctx, done := toEnd(asked)
	defer done()
	defer func() {
		if err != nil && asked.Err() != nil {
			err = asked.Err()
		}
	}()
	if !r.Open {
		*r = record{Page: now, Open: true} // it may be there from now on
		if err := p.save(ctx, incident, r); err != nil {
			return err
		}
	}
	was := r.Page
	if r.Sent.IsZero() {
		was = page{} // nobody has said that it is there
	}
	if err := p.send(ctx, was, now); err != nil {
		return err
	}
	p.sent.Add(1)
	r.Page, r.Sent, r.Open = now, p.Now().UTC(), now.State != over
	return p.save(ctx, incident, r)
}

func (p *Pager) load(ctx context.Context, incident string) (*record, error) {
	body, err := p.Load(ctx, incident)
	if err != nil {
		return nil, fmt.Errorf("read what was told of %s: %w", incident, err)
	}
	r := &record{}
	if body != nil && json.Unmarshal(body, r) != nil {
		r = &record{Open: true} // unreadable is unknown: it may be there
	}
	return r, nil
}

func (p *Pager) save(ctx context.Context, incident string, r *record) error {
	body, err := json.Marshal(r)
	if err == nil {
		err = p.Save(ctx, incident, body)
	}
	if err != nil {
		return fmt.Errorf("keep what was told of %s: %w", incident, err)
	}
	return nil
}

// expect notes when to tell of an incident again; at the zero time never.
func (p *Pager) expect(incident string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.due, incident); !at.IsZero() {
		p.due[incident] = at
	}
}

// Due are the incidents to tell of again by now, though nothing is news: they wait long
// enough by then, or the vendor would forget. It knows of those that it was told of since it
// was made.
func (p *Pager) Due() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for incident, at := range p.due {
		if !at.After(p.Now()) {
			out = append(out, incident)
		}
	}
	return out
}

// Sent counts what the vendor took since it was made: most of what a pager is told of is
// worth no page, and says nothing of whether the vendor is there.
func (p *Pager) Sent() int { return int(p.sent.Load()) }
