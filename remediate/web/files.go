package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed static/*.css static/*.js static/*.svg
var static embed.FS

// files are those that the browser loads, by name, each under the hash of its content, so that
// it may keep them for ever.
type files map[string]file

type file struct {
	digest, kind  string
	plain, zipped []byte
}

func newFiles() (files, error) {
	f := files{}
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
		f[e.Name()] = file{hex.EncodeToString(sum[:8]), mime.TypeByExtension(path.Ext(e.Name())), body, zip(body, gzip.BestCompression)}
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

// path is where a file of ours is loaded from.
func (f files) path(name string) string { return "/static/" + f[name].digest + "/" + name }

// serve gives a file; under another hash than its own there is none.
func (f files) serve(w http.ResponseWriter, r *http.Request) {
	found, ok := f[r.PathValue("name")]
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
