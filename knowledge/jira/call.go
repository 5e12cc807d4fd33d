package jira

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/unpend/unpend/knowledge"
)

const (
	// maxAnswer bounds what is read of an answer: a page of tickets with all their texts.
	maxAnswer = 64 << 20
	// maxSays bounds what is told of an error.
	maxSays = 300
)

// address says whether a text is an address that may be asked; it may hold a password, and is
// not shown.
func address(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("url is no address: it has to be that of the site, https://example.atlassian.net")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("url has a user, a ? or a #: it has to be the address of the site alone")
	}
	return nil
}

// answer is one that is no success.
type answer struct {
	code         int
	doing, words string
}

func (e *answer) Error() string {
	text := fmt.Sprintf("%s: Jira answers %d %s", e.doing, e.code, http.StatusText(e.code))
	if e.words != "" {
		text += ": " + e.words
	}
	if remedy := remedies[e.code]; remedy != "" {
		text += ": " + remedy
	}
	return text
}

// remedies say where to mend what an operator can mend.
var remedies = map[int]string{
	http.StatusUnauthorized: "the token is not taken: it is wrong, revoked or expired (one of Cloud lasts a year at most), or it has scopes, and the address is not https://api.atlassian.com/ex/jira/<cloud id>",
	http.StatusForbidden:    "the account may not do that: ask Jira's administrators, and look whether Jira wants a captcha of it",
	http.StatusNotFound:     "the address or the deployment is another one, or the account does not see it",
	http.StatusGone:         "the deployment is another one",
}

// is whether an error is an answer of one of these codes.
func is(err error, codes ...int) bool {
	e, ok := errors.AsType[*answer](err)
	for _, c := range codes {
		if ok && e.code == c {
			return true
		}
	}
	return false
}

// call asks Jira until it has answered, waiting as it asks.
func (a *API) call(ctx context.Context, doing, method, path string, body, into any) error {
	return a.opts.Clock.Patiently(ctx, func() error { return a.once(ctx, doing, method, path, body, into) })
}

// once asks Jira. What passes by itself is a knowledge.Passing.
func (a *API) once(ctx context.Context, doing, method, path string, body, into any) error {
	r, err := a.request(ctx, method, path, body)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	resp, err := a.opts.HTTP.Do(r)
	if err != nil {
		return a.unanswered(ctx, doing, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return a.judge(resp, doing, text)
	case err != nil:
		return a.unanswered(ctx, doing, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("%s: the answer is larger than %d MiB", doing, maxAnswer>>20)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: Jira answers %d with what is not its JSON: a login page or a proxy may stand before it", doing, resp.StatusCode)
	}
	return nil
}

func (a *API) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.opts.URL, "/")+"/rest/api/"+a.speak.version+"/"+path, sent)
	if err != nil {
		return nil, errors.New("the address of Jira is none")
	}
	// https://developer.atlassian.com/cloud/jira/platform/basic-auth-for-rest-apis/ and
	// https://confluence.atlassian.com/enterprise/using-personal-access-tokens-1026032365.html
	if a.opts.Deployment == Cloud {
		r.SetBasicAuth(a.opts.User, a.opts.Token)
	} else {
		r.Header.Set("Authorization", "Bearer "+a.opts.Token)
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// unanswered is the error of a request that got no answer: that passes, unless the other side
// is not who it should be, or may not be spoken to.
func (a *API) unanswered(ctx context.Context, doing string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	says := errors.New(doing + ": " + a.scrub(err.Error()))
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, large := errors.AsType[*http.MaxBytesError](err)
	if untrusted || large || a.opts.Forbidden != nil && errors.Is(err, a.opts.Forbidden) {
		return says
	}
	return &knowledge.Passing{Err: says}
}

// judge is what an answer that is no success means.
func (a *API) judge(resp *http.Response, doing string, text []byte) error {
	e := &answer{code: resp.StatusCode, doing: doing}
	var said struct {
		Messages []string `json:"errorMessages"`
	}
	if json.Unmarshal(text, &said) == nil {
		e.words = a.scrub(strings.Join(strings.Fields(strings.Join(said.Messages, "; ")), " "))
		e.words = strings.ToValidUTF8(e.words[:min(len(e.words), maxSays)], "")
	}
	if reason := resp.Header.Get("RateLimit-Reason"); reason != "" { // https://developer.atlassian.com/cloud/jira/platform/rate-limiting/
		e.words = strings.TrimPrefix(e.words+"; "+reason[:min(len(reason), maxSays)], "; ")
	}
	switch {
	case e.code >= http.StatusInternalServerError, e.code == http.StatusTooManyRequests, e.code == http.StatusRequestTimeout:
		return &knowledge.Passing{Err: e, After: knowledge.RetryAfter(resp.Header, a.opts.Clock.Now())}
	case e.code < http.StatusBadRequest:
		e.words = "it leads elsewhere, where nobody follows: the address has to be that of its API"
	}
	return e
}

// scrub takes the token out of a text, also as it is sent.
func (a *API) scrub(text string) string {
	sent := base64.StdEncoding.EncodeToString([]byte(a.opts.User + ":" + a.opts.Token))
	return strings.NewReplacer(sent, "(token)", a.opts.Token, "(token)").Replace(text)
}
