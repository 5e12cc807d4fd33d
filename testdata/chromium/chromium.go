// Package chromium drives a real browser for tests of the page, and notes what it complained
// of and whom it asked.
package chromium

import (
	"context"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Browser is one with nothing in it. It is the context that chromedp's actions want.
type Browser struct {
	context.Context
	site string

	mu     sync.Mutex
	wrong  []string // what its policy forbade, and errors of scripts
	others []string // requests to anybody else
}

// Open starts a browser for a site, as http://127.0.0.1:8080; it ends with the test. Short
// tests do without.
func Open(t *testing.T, site string) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Chromium")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("no Chromium: apt-get install -y --no-install-recommends chromium")
	}
	all, ended := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(program), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true))
	t.Cleanup(ended)
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	b := &Browser{Context: ctx, site: site}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	Call(t, b, network.Enable, network.EnableParams{})
	Call(t, b, log.Enable, cdp.Empty{})
	Call(t, b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `addEventListener("securitypolicyviolation", e => console.error("forbidden: " + e.violatedDirective + " " + e.blockedURI))`})
	return b
}

// Call is a command of the browser's own protocol.
func Call[P, R any](t *testing.T, b *Browser, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(b, command, params); err != nil {
		t.Fatal(err)
	}
}

func (b *Browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if to, err := url.Parse(e.Request.URL); err != nil || "http://"+to.Host != b.site {
			b.others = append(b.others, e.Request.URL)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || strings.Contains(e.Entry.Text, "Content Security Policy") {
			b.wrong = append(b.wrong, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// within is how long steps may take: somebody's machine is busy.
const within = 2 * time.Minute

// Run takes steps, and fails the test where one cannot be taken.
func (b *Browser) Run(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, within)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		shown, _ := chromedp.Run(b, chromedp.OuterHTML(chromedp.CSS("html")))
		t.Fatalf("%v; the browser complained: %q; it shows\n%.6000s", err, b.Wrong(), shown)
	}
}

// Ask has the page say something.
func Ask[T any](t *testing.T, b *Browser, expression string) T {
	t.Helper()
	is, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// Shows waits until there is such an element.
func Shows(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitReady(chromedp.CSS(selector))
}

// Click waits for an element, and clicks it. A page that brings itself up to date may put another in its
// place between the two: nothing was clicked then, and the other is.
func Click(selector string) chromedp.Action[chromedp.Void] {
	click := chromedp.Click(chromedp.CSS(selector))
	return func(ctx context.Context, at *chromedp.Target) (chromedp.Void, error) {
		for {
			done, err := click(ctx, at)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "Could not find node with given id") {
				return done, err
			}
		}
	}
}

// Wrong is what the browser complained of.
func (b *Browser) Wrong() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.wrong...)
}

// Quiet fails where the policy forbade something, or anybody else was asked.
func (b *Browser) Quiet(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.wrong)+len(b.others) > 0 {
		t.Errorf("the browser complained: %q; asked others: %q", b.wrong, b.others)
	}
}
