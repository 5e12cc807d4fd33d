package acceptance

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/testdata/chromium"
	"github.com/unpend/unpend/testdata/controlplane"
)

// Somebody with nothing but the program opens the page on the demo's cluster, signs in, reads
// why the pod waits with its drawings, approves in the browser, and sees without loading the page
// again that it is done; ctrl-C ends it. A token that was guessed shows nothing.
func TestDemoOnThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("needs Chromium")
	}
	ctx, ctrlC := context.WithCancel(t.Context())
	defer ctrlC()
	out, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		defer w.Close()
		ended <- program.Run(ctx, []string{"unpend", "demo", "--web", "-o", "json"}, program.Stdio{In: strings.NewReader(""), Out: w, Err: io.Discard})
	}()
	at, token := pageOf(t, out)
	if !strings.HasPrefix(at, "http://127.0.0.1:") {
		t.Errorf("it is served at %s", at)
	}
	address := strings.TrimPrefix(at, "http://")
	if got := asReader(t, address, "/", "guessed"); !strings.HasPrefix(got, "401 ") || strings.Contains(got, "llama") {
		t.Errorf("with a token that was guessed: %s", got)
	}

	b := chromium.Open(t, at)
	b.Run(t, chromedp.Navigate(at+"/"), chromium.Shows("#token"), chromedp.KeyEvent(token+kb.Enter), chromium.Click("#incidents li a"), chromium.Shows("article.best"))
	if n, title := chromium.Ask[int](t, b, `document.querySelectorAll("svg.gpu").length`), chromium.Ask[string](t, b, `document.querySelector("h1").innerText`); n != 2 || !strings.HasPrefix(title, "ml/llama-70b waits") {
		t.Errorf("%d drawings of %q", n, title)
	}
	b.Run(t, chromium.Click("article.best .button"), chromium.Click("button.danger"), chromium.Shows("#plans .plan"))
	chromium.Ask[bool](t, b, `window.same = true`)
	if _, err := chromedp.Run(b, chromedp.Poll[bool](`/approved by you/.test(document.querySelector("#plans")?.innerText) && /done/.test(document.querySelector("#plans").innerText) && !document.querySelector("progress")`)); err != nil || !chromium.Ask[bool](t, b, `window.same === true`) {
		t.Errorf("%v; it says %q", err, chromium.Ask[string](t, b, `document.querySelector("main").innerText`))
	}
	b.Run(t, chromedp.Navigate(at+"/cluster"), chromium.Shows(".gpus svg"))
	b.Quiet(t)

	ctrlC()
	if code := <-ended; code != 0 {
		t.Errorf("after ctrl-C: exit %d", code)
	}
}

// pageOf reads events up to the one that says where the page is; those that come then are left.
func pageOf(t *testing.T, out io.Reader) (at, token string) {
	t.Helper()
	var e struct{ Event, URL, Token string }
	read := json.NewDecoder(out)
	for e.Event != "page" {
		must(t, read.Decode(&e))
	}
	go io.Copy(io.Discard, out) // until the program closes it
	return e.URL, e.Token
}

// With --auto nobody has to approve: the best fix is carried out while the page is there, which
// shows that it is done and goes on, and each thing that happens is an event, the end the last.
func TestDemoOnThePageByItself(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the whole story")
	}
	ctx, ctrlC := context.WithCancel(t.Context())
	defer ctrlC()
	out, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		defer w.Close()
		ended <- program.Run(ctx, []string{"unpend", "demo", "--web", "--auto", "-o", "json"}, program.Stdio{In: strings.NewReader(""), Out: w, Err: io.Discard})
	}()
	var e struct {
		Event, URL, Token string
		PodRunning        bool
	}
	var story, at, token string
	for read := json.NewDecoder(out); e.Event != "done"; {
		before := e.Event
		must(t, read.Decode(&e))
		if e.Event != before {
			story += e.Event + " "
		}
		if e.Event == "page" {
			at, token = strings.TrimPrefix(e.URL, "http://"), e.Token
		}
	}
	if story != "finding page approved step running done " || !e.PodRunning {
		t.Errorf("it tells %q, and that the pod runs: %v", story, e.PodRunning)
	}
	controlplane.Eventually(t, time.Minute, "the page shows the end", func() (bool, string) {
		got := asReader(t, at, "/", token)
		return strings.HasPrefix(got, "200 ") && strings.Contains(got, "llama-70b") && strings.Contains(got, "Plan: done"), got
	})
	ctrlC()
	if code := <-ended; code != 0 {
		t.Errorf("after ctrl-C: exit %d", code)
	}
}
