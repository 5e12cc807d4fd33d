package web_test

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/web"
)

// chromium is a real browser, and what it complained of and asked for.
type chromium struct {
	context.Context
	site *site

	mu     sync.Mutex
	wrong  []string // what its policy forbade, and errors of scripts
	others []string // requests to anybody else
}

func newChromium(t *testing.T, s *site) *chromium {
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
	c := &chromium{Context: ctx, site: s}
	must(t, chromedp.Listen(ctx, c.note))
	call(t, c, network.Enable, network.EnableParams{})
	call(t, c, log.Enable, cdp.Empty{})
	call(t, c, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `addEventListener("securitypolicyviolation", e => console.error("forbidden: " + e.violatedDirective + " " + e.blockedURI))`})
	return c
}

// call is a command of the browser's own protocol.
func call[P, R any](t *testing.T, c *chromium, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(c, command, params); err != nil {
		t.Fatal(err)
	}
}

func (c *chromium) note(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if to, err := url.Parse(e.Request.URL); err != nil || "http://"+to.Host != c.site.URL {
			c.others = append(c.others, e.Request.URL)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || strings.Contains(e.Entry.Text, "Content Security Policy") {
			c.wrong = append(c.wrong, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

func (c *chromium) run(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	within, cancel := context.WithTimeout(c, time.Minute)
	defer cancel()
	if err := chromedp.Do(within, steps...); err != nil {
		shown, _ := chromedp.Run(c, chromedp.OuterHTML(chromedp.CSS("html")))
		c.mu.Lock()
		defer c.mu.Unlock()
		t.Fatalf("%v; the browser complained: %q; it shows\n%.6000s", err, c.wrong, shown)
	}
}

// ask has the page say something.
func ask[T any](t *testing.T, c *chromium, expression string) T {
	t.Helper()
	is, err := chromedp.Run(c, chromedp.Evaluate[T](expression))
	must(t, err)
	return is
}

// shows waits until there is such an element.
func shows(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitReady(chromedp.CSS(selector))
}

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

// quiet fails where the policy forbade something, or anybody else was asked.
func (c *chromium) quiet(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong)+len(c.others) > 0 {
		t.Errorf("the browser complained: %q; asked others: %q", c.wrong, c.others)
	}
}

// carried is a desk whose executor is the test.
type carried struct {
	desk
	begun chan notice.Notice
	first notice.Notice
}

func (d *carried) Approve(ctx context.Context, token, incident, plan string) (string, error) {
	if d.first.Plan != plan || token != adas {
		return "", fmt.Errorf("approved %s", plan)
	}
	d.begun <- d.first
	return d.desk.Approve(ctx, token, incident, plan)
}

// story is a page with an incident that can be approved; what is begun is carried out as far as
// its first step.
func story(t *testing.T) (*site, notice.Proposal, *carried) {
	d := &carried{desk: desk{trial: web.Trial{Steps: []string{"cordon gpu-1", "evict a pod", "uncordon gpu-1"}}}, begun: make(chan notice.Notice, 1)}
	s := newSite(t, func(o *web.Options) { o.Desk = d })
	p := scenario(t, "all-1g")
	d.first = underWay(p)
	d.first.Progress = "1/3"
	s.tell(t, p)
	geometries(t, s)
	return s, p, d
}

// S17: somebody opens the page, signs in, reads, approves and sees how far it is, with the
// keyboard where that matters; nothing that the policy forbids is tried, and nobody else is
// asked.
func TestS17InABrowser(t *testing.T) {
	s, p, d := story(t)
	c := newChromium(t, s)
	incident := "/incidents/" + p.Incident
	c.run(t, chromedp.Navigate(s.URL+incident), shows("#token"), chromedp.KeyEvent(adas+kb.Enter), shows("svg.gpu"))
	at, drawings := ask[string](t, c, `location.href`), ask[int](t, c, `document.querySelectorAll("svg.gpu").length`)
	c.run(t, chromedp.KeyEvent(kb.Tab))
	focus := ask[string](t, c, `document.activeElement.className`)
	if at != s.URL+incident || drawings != 2 || focus != "skip" {
		t.Errorf("after signing in: at %s, %d drawings, the first Tab goes to %q", at, drawings, focus)
	}
	c.run(t, click(`nav a[href="/"]`), shows("#incidents li"), click(`a[href="`+incident+`"]`), shows("article.best"), click("article.best .button"), shows("button.danger"), chromedp.Focus(chromedp.CSS("button.danger")), chromedp.KeyEvent(kb.Enter), shows("#plans"))
	p.Plans = []notice.Notice{<-d.begun}
	ask[bool](t, c, `window.same = true`)
	s.tell(t, p)
	c.run(t, shows(`progress[value="1"]`))
	p.Plans[0].Progress = "3/3"
	s.tell(t, p)
	c.run(t, shows(`progress[value="3"]`))
	p.Plans[0].What, p.Plans[0].Progress, p.Plans[0].Since = notice.Succeeded, "", noon
	s.tell(t, p)
	c.run(t, chromedp.WaitNotPresent(chromedp.CSS("progress")))
	said, same := ask[string](t, c, `document.querySelector("#plans").innerText`), ask[bool](t, c, `window.same === true`)
	if !strings.Contains(said, "done in 1m0s, approved by ada@example.com") || !same {
		t.Errorf("at its end it says %q; still the same page: %v", said, same)
	}
	changed := *p.Finding
	changed.Headline = "it waits for something else"
	p.Finding = &changed
	s.tell(t, p)
	if _, err := chromedp.Run(c, chromedp.Poll[bool](`document.querySelector("h1").textContent === "it waits for something else"`)); err != nil {
		t.Fatal(err)
	}
	c.run(t, click(".out button"), shows("#token"))
	c.quiet(t)
	if want := []string{"try " + adas + " " + p.Incident + " " + p.Finding.Fixes[0].Plan, "approve " + adas + " " + p.Incident + " " + p.Finding.Fixes[0].Plan}; !slices.Equal(d.asked, want) {
		t.Errorf("the desk was asked %q", d.asked)
	}
}

// S17: all of it without JavaScript.
func TestS17WithoutJavaScript(t *testing.T) {
	s, p, d := story(t)
	c := newChromium(t, s)
	call(t, c, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	c.run(t, chromedp.Navigate(s.URL+"/"), shows("#token"), chromedp.SendKeys(chromedp.CSS("#token"), adas+kb.Enter), shows("#incidents li"))
	c.run(t, click(`a[href="/cluster"]`), shows(".gpus svg"), click(`nav a[href="/"]`), shows("#incidents li"), click(`a[href="/incidents/`+p.Incident+`"]`), shows("article.best"), click("article.best summary"), click("article.best .button"), shows("button.danger"), click("button.danger"), shows("#plans"))
	p.Plans = []notice.Notice{<-d.begun}
	s.tell(t, p)
	c.run(t, chromedp.Navigate(s.URL+"/incidents/"+p.Incident), shows(`progress[value="1"]`))
	p.Plans[0].Progress = "2/3"
	s.tell(t, p)
	c.run(t, shows(`progress[value="2"]`), click(".out button"), shows("#token")) // the page loads itself again
	c.quiet(t)
}

// contrast lists texts that are hard to read: what the least contrast is, and where.
const contrast = `(() => {
  const of = c => { const m = c.match(/[\d.]+/g).map(Number); return {rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1} };
  const light = rgb => { const [r, g, b] = rgb.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
  const out = [];
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg, noscript, .skip") || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    let b = e, back;
    for (; b && !(back = of(getComputedStyle(b).backgroundColor)).a; b = b.parentElement);
    if (!b) back = of(getComputedStyle(document.body).backgroundColor);
    const [hi, lo] = [light(of(getComputedStyle(e).color).rgb), light(back.rgb)].sort((x, y) => y - x);
    const ratio = (hi + .05) / (lo + .05);
    if (ratio < 4.5) out.push(e.tagName + "." + e.className + " " + ratio.toFixed(2) + " " + e.textContent.slice(0, 40));
  }
  return out;
})()`

// Every page can be read: in light and in dark with a contrast of 4.5, and on a telephone of
// 380 pixels without moving it sideways; what can be focused has a name.
func TestPagesCanBeRead(t *testing.T) {
	s, p, _ := story(t)
	long := waiting("gpu-bbbbbbbbbb", "team-"+strings.Repeat("b", 57), strings.Repeat("a", 63))
	s.tell(t, long)
	c := newChromium(t, s)
	c.run(t, chromedp.Navigate(s.URL+"/"), shows("#token"), chromedp.KeyEvent(adas+kb.Enter), shows("#incidents li"))
	for _, scheme := range []string{"light", "dark"} {
		for _, path := range []string{"/", "/incidents/" + p.Incident, "/incidents/gpu-bbbbbbbbbb", "/incidents/" + p.Incident + "/fixes/1?plan=" + p.Finding.Fixes[0].Plan, "/cluster", "/sign-in", "/nothing"} {
			call(t, c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			c.run(t, chromedp.EmulateViewport(380, 800, chromedp.EmulateMobile), chromedp.Navigate(s.URL+path), shows("main"))
			faint, wide := ask[[]string](t, c, contrast), ask[int](t, c, `document.documentElement.scrollWidth`)
			unnamed := ask[[]string](t, c, `[...document.querySelectorAll("a, button, input:not([type=hidden]), select")].filter(e => !(e.textContent.trim() || e.labels?.length || e.ariaLabel)).map(e => e.outerHTML)`)
			if len(faint)+len(unnamed) > 0 || wide > 380 {
				t.Errorf("%s, %s: %d wide; hard to read: %q; without a name: %q", path, scheme, wide, faint, unnamed)
			}
		}
	}
	for _, wrong := range c.wrong {
		if !strings.Contains(wrong, "404") { // the page that is missing
			t.Errorf("the browser complained: %s", wrong)
		}
	}
}
