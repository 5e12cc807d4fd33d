package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// here is what tests make everything for: another platform takes minutes to compile, and the
// probe its compiler and C library. The soak makes the images for both.
var here = platform{"linux", runtime.GOARCH}

// made is a release of this source for this machine, pushed to a registry of the test and
// signed with a key of the test, and what its images hold.
type made struct {
	*maker
	host             string // of the registry
	service, probe   string // the images' names, with their digests
	files, probeHas  map[string]*tar.Header
	root, probesRoot string // where the images are unpacked
}

func newMaker(t *testing.T) *maker {
	t.Helper()
	m := &maker{log: io.Discard, ldflags: "-s -w -X github.com/unpend/unpend/cmd/internal/program.commit=0123456789012345678901234567890123456789"}
	root, err := filepath.Abs("../..")
	must(t, err)
	m.root, m.out = root, t.TempDir()
	m.version, err = versionOf(root, "")
	must(t, err)
	m.made = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	m.download = downloads
	m.images, m.archives = []platform{here}, []platform{here}
	if os.Getenv("UNPEND_SOAK") != "" {
		m.images = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	}
	return m
}

func makeAll(t *testing.T) *made {
	t.Helper()
	if testing.Short() {
		t.Skip("makes images")
	}
	r := &made{maker: newMaker(t)}
	r.host = r.serve(t)
	r.key = r.newKey(t)
	r.push = r.host + "/released"
	must(t, r.image(t.Context()))
	names, err := os.ReadFile(filepath.Join(r.out, "images.txt"))
	must(t, err)
	if n, err := fmt.Sscan(string(names), &r.service, &r.probe); n != 2 {
		t.Fatalf("images.txt: %s, %v", names, err)
	}
	must(t, r.release(t.Context()))
	r.root, r.files = r.unpack(t, r.service)
	r.probesRoot, r.probeHas = r.unpack(t, r.probe)
	return r
}

// serve runs a registry until the test ends.
func (m *maker) serve(t *testing.T) string {
	t.Helper()
	host, stop, err := m.registry(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(stop)
	return host
}

// newKey is cosign's, with an empty password; the public one lies beside it, as .pub.
func (m *maker) newKey(t *testing.T) string {
	t.Helper()
	t.Setenv("COSIGN_PASSWORD", "")
	key := filepath.Join(t.TempDir(), "test")
	m.must(t, "cosign", "generate-key-pair", "--output-key-prefix", key)
	return key + ".key"
}

func (m *maker) must(t *testing.T, tool string, args ...string) string {
	t.Helper()
	out, err := m.use(t.Context(), tool, nil, args...)
	must(t, err)
	return out
}

// unpack lays out the root file system of an image, as a container engine would.
func (m *maker) unpack(t *testing.T, image string) (string, map[string]*tar.Header) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "root.tar")
	m.must(t, "crane", "export", "--platform", here.String(), image, file)
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	dir, out := t.TempDir(), map[string]*tar.Header{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir, out
		}
		must(t, err)
		out[strings.Trim(h.Name, "/")] = h
		lay(t, filepath.Join(dir, h.Name), h, r)
	}
}

func lay(t *testing.T, path string, h *tar.Header, data io.Reader) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	switch h.Typeflag {
	case tar.TypeDir:
		must(t, os.MkdirAll(path, 0o755))
	case tar.TypeSymlink:
		must(t, os.Symlink(h.Linkname, path))
		return
	default:
		f, err := os.Create(path)
		must(t, err)
		_, err = io.Copy(f, data)
		must(t, errors.Join(err, f.Close()))
	}
	must(t, os.Chmod(path, fs.FileMode(h.Mode).Perm()))
}

// differ changes one byte of a file, in a copy.
func differ(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	changed := filepath.Join(t.TempDir(), filepath.Base(path))
	must(t, os.WriteFile(changed, data, 0o600))
	return changed
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
