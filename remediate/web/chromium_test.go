package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/web"
	"github.com/unpend/unpend/testdata/chromium"
)

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

// inABrowser: somebody opens the page, signs in, reads, approves and sees how far it is, with the
// keyboard where that matters; nothing that the policy forbids is tried, and nobody else is
// asked.
func inABrowser(t *testing.T) {
	s, p, d := story(t)
	c := chromium.Open(t, s.URL)
	incident := "/incidents/" + p.Incident
	c.Run(t, chromedp.Navigate(s.URL+incident), chromium.Shows("#token"), chromedp.KeyEvent(adas+kb.Enter), chromium.Shows("svg.gpu"))
	at, drawings := chromium.Ask[string](t, c, `location.href`), chromium.Ask[int](t, c, `document.querySelectorAll("svg.gpu").length`)
	c.Run(t, chromedp.KeyEvent(kb.Tab))
	focus := chromium.Ask[string](t, c, `document.activeElement.className`)
	if at != s.URL+incident || drawings != 2 || focus != "skip" {
		t.Errorf("after signing in: at %s, %d drawings, the first Tab goes to %q", at, drawings, focus)
	}
	c.Run(t, chromium.Click(`nav a[href="/"]`), chromium.Shows("#incidents li"), chromium.Click(`a[href="`+incident+`"]`), chromium.Shows("article.best"), chromium.Click("article.best .button"), chromium.Shows("button.danger"), chromedp.Focus(chromedp.CSS("button.danger")), chromedp.KeyEvent(kb.Enter), chromium.Shows("#plans"))
	p.Plans = []notice.Notice{<-d.begun}
	chromium.Ask[bool](t, c, `window.same = true`)
	s.tell(t, p)
	c.Run(t, chromium.Shows(`progress[value="1"]`))
	p.Plans[0].Progress = "3/3"
	s.tell(t, p)
	c.Run(t, chromium.Shows(`progress[value="3"]`))
	p.Plans[0].What, p.Plans[0].Progress, p.Plans[0].Since = notice.Succeeded, "", noon
	s.tell(t, p)
	c.Run(t, chromedp.WaitNotPresent(chromedp.CSS("progress")))
	said, same := chromium.Ask[string](t, c, `document.querySelector("#plans").innerText`), chromium.Ask[bool](t, c, `window.same === true`)
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
	c.Run(t, chromium.Click(".out button"), chromium.Shows("#token"))
	c.Quiet(t)
	if want := []string{"try " + adas + " " + p.Incident + " " + p.Finding.Fixes[0].Plan, "approve " + adas + " " + p.Incident + " " + p.Finding.Fixes[0].Plan}; !slices.Equal(d.asked, want) {
		t.Errorf("the desk was asked %q", d.asked)
	}
}

// withoutJavaScript is all of it without.
func withoutJavaScript(t *testing.T) {
	s, p, d := story(t)
	c := chromium.Open(t, s.URL)
	chromium.Call(t, c, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	c.Run(t, chromedp.Navigate(s.URL+"/"), chromium.Shows("#token"), chromedp.SendKeys(chromedp.CSS("#token"), adas+kb.Enter), chromium.Shows("#incidents li"))
	c.Run(t, chromium.Click(`a[href="/cluster"]`), chromium.Shows(".gpus svg"), chromium.Click(`nav a[href="/"]`), chromium.Shows("#incidents li"), chromium.Click(`a[href="/incidents/`+p.Incident+`"]`), chromium.Shows("article.best"), chromium.Click("article.best summary"), chromium.Click("article.best .button"), chromium.Shows("button.danger"), chromium.Click("button.danger"), chromium.Shows("#plans"))
	p.Plans = []notice.Notice{<-d.begun}
	s.tell(t, p)
	c.Run(t, chromedp.Navigate(s.URL+"/incidents/"+p.Incident), chromium.Shows(`progress[value="1"]`))
	p.Plans[0].Progress = "2/3"
	s.tell(t, p)
	c.Run(t, chromium.Shows(`progress[value="2"]`), chromium.Click(".out button"), chromium.Shows("#token")) // the page loads itself again
	c.Quiet(t)
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
	c := chromium.Open(t, s.URL)
	c.Run(t, chromedp.Navigate(s.URL+"/"), chromium.Shows("#token"), chromedp.KeyEvent(adas+kb.Enter), chromium.Shows("#incidents li"))
	for _, scheme := range []string{"light", "dark"} {
		for _, path := range []string{"/", "/incidents/" + p.Incident, "/incidents/gpu-bbbbbbbbbb", "/incidents/" + p.Incident + "/fixes/1?plan=" + p.Finding.Fixes[0].Plan, "/cluster", "/sign-in", "/nothing"} {
			chromium.Call(t, c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			c.Run(t, chromedp.EmulateViewport(380, 800, chromedp.EmulateMobile), chromedp.Navigate(s.URL+path), chromium.Shows("main"))
			faint, wide := chromium.Ask[[]string](t, c, contrast), chromium.Ask[int](t, c, `document.documentElement.scrollWidth`)
			unnamed := chromium.Ask[[]string](t, c, `[...document.querySelectorAll("a, button, input:not([type=hidden]), select")].filter(e => !(e.textContent.trim() || e.labels?.length || e.ariaLabel)).map(e => e.outerHTML)`)
			if len(faint)+len(unnamed) > 0 || wide > 380 {
				t.Errorf("%s, %s: %d wide; hard to read: %q; without a name: %q", path, scheme, wide, faint, unnamed)
			}
		}
	}
	for _, wrong := range c.Wrong() {
		if !strings.Contains(wrong, "404") { // the page that is missing
			t.Errorf("the browser complained: %s", wrong)
		}
	}
}
