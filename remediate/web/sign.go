package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// signed is a page for somebody who has signed in.
type signed func(http.ResponseWriter, *http.Request, *reader)

// signedIn lets readers through, by the cookie of their session or by a token that comes
// with the request; a browser of anybody else is shown where to sign in.
func (p *Page) signedIn(page signed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := p.who(r)
		switch {
		case err == nil && who != nil:
			page(w, r, who)
		case err != nil && !errors.Is(err, errNobody):
			p.trouble(w, r, err)
		case r.Header.Get("Authorization") != "":
			w.Header().Set("WWW-Authenticate", `Bearer realm="unpend"`)
			p.say(w, r, http.StatusUnauthorized, "Not signed in", "The API server does not take this token.")
		default:
			p.toSignIn(w, r)
		}
	}
}

// who reads whose request it is; nil: nobody's.
func (p *Page) who(r *http.Request) (*reader, error) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return p.know(r.Context(), strings.TrimSpace(token))
	}
	cookie, err := r.Cookie(p.cookieName(r))
	if err != nil {
		return nil, nil //nolint:nilerr // without one it is nobody's
	}
	return p.sessions.of(cookie.Value), nil
}

// toSignIn shows where to sign in, and comes back from there.
func (p *Page) toSignIn(w http.ResponseWriter, r *http.Request) {
	to := "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != "/" && r.URL.Path != "/events" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	switch {
	case r.URL.Path == "/events":
		http.Error(w, "not signed in", http.StatusUnauthorized)
	case r.Header.Get("HX-Request") != "": // a part of a page: the whole page goes
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// cookieName tells the browser to hold the cookie to https, where that is how we are asked.
func (p *Page) cookieName(r *http.Request) string {
	if p.secure(r) {
		return "__Host-unpend"
	}
	return "unpend"
}

func (p *Page) secure(r *http.Request) bool { return !loopback(hostOf(r.Host)) }

func (p *Page) cookie(r *http.Request, id string, age time.Duration) *http.Cookie {
	return &http.Cookie{Name: p.cookieName(r), Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: p.secure(r), MaxAge: int(age.Seconds())}
}

func (p *Page) signInForm(w http.ResponseWriter, r *http.Request) {
	p.render(w, r, http.StatusOK, head{Title: "Sign in"}, signInPage{Next: within(r.URL.Query().Get("next"))}.node())
}

func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.badForm(w, r, err)
		return
	}
	next := within(r.PostForm.Get("next"))
	who, err := p.know(r.Context(), strings.TrimSpace(r.PostForm.Get("token")))
	switch {
	case errors.Is(err, errNobody):
		p.render(w, r, http.StatusUnauthorized, head{Title: "Sign in"}, signInPage{next, "The API server does not take this token. Make a new one: tokens expire."}.node())
		return
	case err != nil:
		p.trouble(w, r, err)
		return
	}
	http.SetCookie(w, p.cookie(r, p.sessions.begin(who), longest))
	p.opts.Logger.InfoContext(r.Context(), "somebody has signed in on the page", "user", who.user)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(p.cookieName(r)); err == nil {
		p.sessions.end(cookie.Value)
	}
	http.SetCookie(w, p.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// within is a path of ours to go on to; "/" for anything else, such as //elsewhere.
func within(next string) string {
	to, err := url.Parse(next)
	if err != nil || to.Scheme != "" || to.Host != "" || to.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n") {
		return "/"
	}
	return next
}

// trouble is told when the API server did not answer; without an answer nothing is shown.
func (p *Page) trouble(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errNobody) { // it was taken before
		if cookie, err := r.Cookie(p.cookieName(r)); err == nil {
			p.sessions.end(cookie.Value)
		}
		p.toSignIn(w, r)
		return
	}
	if !errors.Is(err, context.Canceled) {
		p.opts.Logger.WarnContext(r.Context(), "a page could not be shown", "path", r.URL.Path, "error", err)
	}
	p.say(w, r, http.StatusServiceUnavailable, "Nothing can be shown now", "The API server did not say what you may read. Try again in a moment.")
}

func (p *Page) badForm(w http.ResponseWriter, r *http.Request, err error) {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		p.say(w, r, http.StatusRequestEntityTooLarge, "Too large", "More was sent than a token or a decision has.")
		return
	}
	p.say(w, r, http.StatusBadRequest, "Not understood", "What was sent is no form of this page.")
}

// missing is of what is not there, and of what the reader may not know of.
func (p *Page) missing(w http.ResponseWriter, r *http.Request) {
	p.say(w, r, http.StatusNotFound, "Not found", "There is no such page, or it is over since more than a day, or about a namespace whose pods you may not read.")
}
