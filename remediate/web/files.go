package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed static/*.css static/*.js static/*.svg
var static embed.FS

//go:embed templates/*.html
var pages embed.FS

// files are what a page is made of: its templates, and the files that the browser loads, each
// under the hash of its content, so that it may keep them for ever.
type files struct {
	templates map[string]*template.Template
	all       map[string]file // by name
}

type file struct {
	digest, kind  string
	plain, zipped []byte
}

func newFiles() (*files, error) {
	f := &files{templates: map[string]*template.Template{}, all: map[string]file{}}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		return nil, fmt.Errorf("read the page's files: %w", err)
	}
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the page's files: %w", err)
		}
		sum := sha256.Sum256(body)
		f.all[e.Name()] = file{hex.EncodeToString(sum[:8]), mime.TypeByExtension(path.Ext(e.Name())), body, zip(body, gzip.BestCompression)}
	}
	for _, name := range []string{"sign-in", "list", "incident", "consent", "cluster", "message"} {
		t, err := template.New("layout.html").Funcs(f.functions()).ParseFS(pages, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("read the page's templates: %w", err)
		}
		f.templates[name] = t
	}
	return f, nil
}

func zip(body []byte, level int) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, level) // it is one of gzip's own
	w.Write(body)                            //nolint:errcheck // to memory
	w.Close()                                //nolint:errcheck // to memory
	return out.Bytes()
}

// path is where a file is loaded from.
func (f *files) path(name string) (string, error) {
	found, ok := f.all[name]
	if !ok {
		return "", fmt.Errorf("no file %s", name)
	}
	return "/static/" + found.digest + "/" + name, nil
}

// serve gives a file; under another hash than its own there is none.
func (f *files) serve(w http.ResponseWriter, r *http.Request) {
	found, ok := f.all[r.PathValue("name")]
	if !ok || found.digest != r.PathValue("digest") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	send(w, r, http.StatusOK, found.plain, found.zipped)
}

// send gives a body, or what it is packed, to those who take that.
func send(w http.ResponseWriter, r *http.Request, status int, plain, zipped []byte) {
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		plain = zipped
	}
	w.WriteHeader(status)
	w.Write(plain) //nolint:errcheck // the reader may have gone
}

// head is of every page.
type head struct {
	Title   string
	User    string // who is signed in
	At      string // which of the main pages it is
	Refresh int    // seconds, for those without JavaScript; 0: never
	Cluster string
}

// message is one sentence, and where to go from there.
type message struct{ Title, Text, Back, BackSays string }

// say shows one message.
func (p *Page) say(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	p.render(w, r, status, "message", head{Title: title}, message{title, text, "/", "All incidents"})
}

// render shows a page; what it is given has gone through a veil.
func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, name string, h head, body any) {
	h.Cluster = p.opts.Cluster
	var out bytes.Buffer
	if err := p.files.templates[name].Execute(&out, struct {
		Head head
		Body any
	}{h, body}); err != nil {
		p.opts.Logger.ErrorContext(r.Context(), "a page could not be made", "page", name, "error", err)
		http.Error(w, "This page could not be made; the log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, status, out.Bytes(), zip(out.Bytes(), gzip.BestSpeed))
}
