package jira

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/outbound"
	"github.com/unpend/unpend/remediate/wording"
)

// authorized says who we are:
// https://developer.atlassian.com/cloud/jira/platform/basic-auth-for-rest-apis/ and
// https://confluence.atlassian.com/enterprise/using-personal-access-tokens-1026032365.html
type authorized struct{ Options }

// Do sends a request as go-jira's client does.
func (a authorized) Do(r *http.Request) (*http.Response, error) {
	if a.Deployment == Cloud {
		r.SetBasicAuth(a.User, a.Token)
	} else {
		r.Header.Set("Authorization", "Bearer "+a.Token)
	}
	r.Header.Set("Accept", "application/json")
	return a.HTTP.Do(r)
}

// answer is one that is no success.
type answer struct {
	code   int
	after  time.Duration
	says   string
	fields map[string]string // what is wrong with which field
	doing  string
}

func (e *answer) Error() string {
	text := fmt.Sprintf("%s: Jira answers %d %s", e.doing, e.code, http.StatusText(e.code))
	if e.says != "" {
		text += ": " + e.says
	}
	if remedy := remedies[e.code]; remedy != "" {
		text += ": " + remedy
	}
	return text
}

// remedies say where to mend what an operator can mend.
var remedies = map[int]string{
	http.StatusUnauthorized: "the token in jira.tokenFile is not taken: it is wrong, revoked or expired (one of Cloud lasts a year at most), or it has scopes, and jira.url is not https://api.atlassian.com/ex/jira/<cloud id>",
	http.StatusForbidden:    "the account may not do that in jira.project: ask the project's administrators, and look whether Jira wants a captcha of it",
	http.StatusNotFound:     "jira.url, jira.deployment or jira.project is another one, or the account does not see the project",
	http.StatusGone:         "jira.deployment is another one",
}

// isGone says whether the ticket, or the comment, is there no more.
func isGone(err error) bool {
	e, ok := errors.AsType[*answer](err)
	return ok && e.code == http.StatusNotFound && strings.HasPrefix(e.doing, ofTicket)
}

// ofTicket begins what is done with a ticket that is there.
const ofTicket = "ticket "

// call asks Jira once. What passes by itself is a notice.Passing.
func (j *Jira) call(ctx context.Context, doing, method, path string, body, into any) error {
	r, err := j.api.NewRequestWithContext(ctx, method, "rest/api/"+j.speak.version+"/"+path, body)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	resp, err := j.api.Do(r, nil)
	if resp == nil {
		return j.unanswered(ctx, doing, err)
	}
	defer resp.Body.Close()
	text, broken := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return j.judge(resp.Response, doing, text)
	}
	if broken != nil {
		return j.unanswered(ctx, doing, broken)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &notice.Passing{Err: fmt.Errorf("%s: Jira answers %d with what is not its JSON: a login page or a proxy may stand before jira.url", doing, resp.StatusCode)}
	}
	return nil
}

// unanswered is the error of a request of which nobody knows whether Jira has heard it, but
// for one that found nobody to hear it.
func (j *Jira) unanswered(ctx context.Context, doing string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	says := errors.New(doing + ": " + j.scrub(err.Error()))
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted || errors.Is(err, outbound.ErrForbidden) {
		return says // it does not pass by itself
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return &notice.Passing{Err: &unheard{says}}
	}
	return &notice.Passing{Err: says}
}

// unheard is of a request that Jira has certainly not heard.
type unheard struct{ error }

// mayBeDone says of an error whether Jira may have done what was asked.
func mayBeDone(err error) bool {
	passing, ok := errors.AsType[*notice.Passing](err)
	if !ok {
		return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	}
	if _, not := errors.AsType[*unheard](err); not {
		return false
	}
	e, ok := errors.AsType[*answer](passing.Err)
	return !ok || e.code != http.StatusTooManyRequests
}

// judge is what an answer that is no success means.
func (j *Jira) judge(a *http.Response, doing string, text []byte) error {
	e := &answer{code: a.StatusCode, doing: doing, after: hint(a.Header.Get("Retry-After"), j.clock.Now())}
	var said struct {
		Messages []string          `json:"errorMessages"`
		Errors   map[string]string `json:"errors"`
	}
	if json.Unmarshal(text, &said) == nil {
		e.fields = said.Errors
		for _, field := range slices.Sorted(maps.Keys(said.Errors)) {
			said.Messages = append(said.Messages, field+": "+said.Errors[field])
		}
		e.says = wording.Fit(j.scrub(wording.Clean(strings.Join(said.Messages, "; "))), maxSays)
	}
	if reason := a.Header.Get("RateLimit-Reason"); reason != "" { // https://developer.atlassian.com/cloud/jira/platform/rate-limiting/
		e.says = strings.TrimPrefix(e.says+"; "+wording.Fit(wording.Clean(reason), maxLabel), "; ")
	}
	switch {
	case e.code >= http.StatusInternalServerError, e.code == http.StatusTooManyRequests, e.code == http.StatusRequestTimeout:
		return &notice.Passing{Err: e, After: e.after}
	case e.code < http.StatusBadRequest:
		e.says = "it leads elsewhere, where nobody follows: jira.url has to be the address of its API"
	}
	return e
}

// content is an error of what a ticket was to say: refused, unless a field is at fault that
// the configuration has, or lacks.
func content(err error) error {
	e, ok := errors.AsType[*answer](err)
	if !ok || e.code != http.StatusBadRequest && e.code != http.StatusRequestEntityTooLarge {
		return err
	}
	for field := range e.fields {
		if field != "summary" && field != "description" && field != "comment" {
			return err
		}
	}
	return fmt.Errorf("%w: %w", notice.ErrRefused, err)
}

// hint reads Retry-After, seconds or a time: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func hint(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// scrub takes the token out of a text, also as it is sent.
func (j *Jira) scrub(text string) string {
	sent := base64.StdEncoding.EncodeToString([]byte(j.opts.User + ":" + j.opts.Token))
	return strings.NewReplacer(sent, "(token)", j.opts.Token, "(token)").Replace(text)
}

// steadily calls until Jira has answered, waiting as it asks.
func (j *Jira) steadily(ctx context.Context, doing, method, path string, body, into any) error {
	return notice.Retry(ctx, j.clock, func(ctx context.Context) error { return j.call(ctx, doing, method, path, body, into) })
}
