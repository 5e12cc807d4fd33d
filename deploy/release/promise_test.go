package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// What is released is small, is what it says, is the same for everybody who makes it, and runs
// from its own root file system. It prints its figure.
func TestPromise(t *testing.T) {
	r := makeAll(t)
	held := 0
	promises := []struct {
		name string
		run  func(*testing.T, *made)
	}{
		{"two builds and one digest", twoBuilds},
		{"nothing but the program", nothingElse},
		{"a probe on a C library alone", probeAlone},
		{"nobody and no setuid", nobodyRuns},
		{"labels", saysWhatItIs},
		{"root certificates", trustsRoots},
		{"SBOMs list everything", listsEverything},
		{"terms of everything", termsOfEverything},
		{"signatures", signed},
		{"runs from its root", runsFromItsRoot},
		{"sums", sumsHold},
		{"archives and krew", archivesAndKrew},
	}
	for _, p := range promises {
		if t.Run(p.name, func(t *testing.T) { p.run(t, r) }) {
			held++
		}
	}
	fmt.Printf("S16 %d/%d\n", held, len(promises))
}

// A second build, elsewhere and with other temporary folders, gives the same digests; nothing of
// the machine is in the program.
func twoBuilds(t *testing.T, r *made) {
	t.Setenv("TMPDIR", t.TempDir())
	again := newMaker(t)
	again.tools = r.tools
	dir := t.TempDir()
	again.env = reached(again.serve(t))
	service, err := again.service(t.Context(), dir)
	must(t, err)
	probe, err := again.probe(t.Context(), dir)
	must(t, err)
	if d := gocmp.Diff(r.text(t, r.out, r.name("spdx.json")), r.text(t, again.out, r.name("spdx.json"))); d != "" {
		t.Errorf("the SBOM differs: %s", d)
	}
	if got, want := digest(service)+digest(probe), digest(r.service)+digest(r.probe); got != want {
		t.Errorf("the digests are %s, and were %s", got, want)
	}
	for _, program := range []string{r.program(), filepath.Join(r.probesRoot, "usr/bin/nodeprobe")} {
		data, err := os.ReadFile(program)
		must(t, err)
		if bytes.Contains(data, []byte(r.root)) || bytes.Contains(data, []byte(r.maker.root+"/")) {
			t.Errorf("%s says in which folder it was built", filepath.Base(program))
		}
	}
}

// name is what a file for this machine is called.
func (m *maker) name(end string) string {
	return "unpend_" + m.version + "_" + here.os + "_" + here.arch + "." + end
}

func digest(ref string) string { return ref[strings.LastIndex(ref, "@"):] }

func (r *made) text(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	return string(data)
}

func (r *made) program() string { return filepath.Join(r.root, "ko-app/unpend") }

// The image holds one program, which is static, and no shell beside it.
func nothingElse(t *testing.T, r *made) {
	var got []string
	for name, h := range r.files {
		if h.FileInfo().Mode().IsRegular() {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "ko-app/unpend", "usr/share/doc/unpend/LICENSE", "usr/share/doc/unpend/NOTICE"}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	f, err := elf.Open(r.program())
	must(t, err)
	defer f.Close()
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("it is not static: %q, %v", libs, err)
	}
}

// Beside the probe lie the libraries of one package, the papers, and nothing that can be run.
func probeAlone(t *testing.T, r *made) {
	library := regexp.MustCompile(`^usr/lib(64)?/(` + debian[here.arch] + `/)?[^/]+\.so[^/]*$`)
	known := []string{"etc/group", "etc/passwd", "usr/bin/nodeprobe", "usr/lib/os-release", "usr/share/doc/libc6/copyright", "usr/share/doc/nodeprobe/LICENSE", "usr/share/doc/nodeprobe/NOTICE", "var/lib/dpkg/status.d/libc6"}
	found := 0
	for name, h := range r.probeHas {
		switch {
		case slices.Contains(known, name):
			found++
		case !h.FileInfo().Mode().IsRegular() || library.MatchString(name):
		default:
			t.Errorf("%s is in the probe's image", name)
		}
	}
	if found != len(known) {
		t.Errorf("%d of %q are there", found, known)
	}
}

// No file of any image has rights that who runs it has not, and neither runs as root.
func nobodyRuns(t *testing.T, r *made) {
	for image, files := range map[string]map[string]*tar.Header{r.service: r.files, r.probe: r.probeHas} {
		if user := r.config(t, image).Config.User; user != "65532:65532" {
			t.Errorf("%s runs as %q", image, user)
		}
		for name, h := range files {
			if h.Mode&0o6000 != 0 || h.Uid != 0 || h.Gid != 0 || len(h.PAXRecords) > 0 {
				t.Errorf("%s of %s: mode %o of %d:%d, %v", name, image, h.Mode, h.Uid, h.Gid, h.PAXRecords)
			}
			if link := h.Linkname != ""; h.Mode&0o002 != 0 && !link && name != "tmp" {
				t.Errorf("%s of %s: everybody may write it", name, image)
			}
		}
	}
}

// config is what an image says of itself.
type config struct {
	OS           string
	Architecture string
	Created      string
	Config       struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

func (r *made) config(t *testing.T, image string) config {
	t.Helper()
	var c config
	must(t, json.Unmarshal([]byte(r.must(t, "crane", "config", "--platform", here.String(), image)), &c))
	return c
}

func saysWhatItIs(t *testing.T, r *made) {
	const at = "org.opencontainers.image."
	for image, want := range map[string]map[string]string{
		r.service: {at + "title": "unpend", at + "description": "Explains why GPU pods wait and gets them running once somebody approves"},
		r.probe:   {at + "title": "nodeprobe", at + "description": "Reports how the GPUs of a node are laid out and who holds them"},
	} {
		maps.Copy(want, map[string]string{at + "version": r.version, at + "licenses": "Apache-2.0", at + "created": "2026-11-20T12:00:00Z", at + "source": "https://github.com/unpend/unpend", at + "url": "https://github.com/unpend/unpend",
			at + "revision": "0123456789012345678901234567890123456789"})
		c := r.config(t, image)
		if d := gocmp.Diff(want, c.Config.Labels); d != "" {
			t.Errorf("%s: %s", image, d)
		}
		if c.OS != here.os || c.Architecture != here.arch || len(c.Config.Entrypoint) != 1 {
			t.Errorf("%s: %+v", image, c)
		}
	}
}

func trustsRoots(t *testing.T, r *made) {
	data, err := os.ReadFile(filepath.Join(r.root, "etc/ssl/certs/ca-certificates.crt"))
	must(t, err)
	n := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		must(t, err)
		if !c.IsCA {
			t.Errorf("%s is no authority", c.Subject)
		}
		n++
	}
	if n < 80 {
		t.Errorf("%d root certificates", n)
	}
}

// modules are what go version -m says is linked into a program, as module@version.
func modules(t *testing.T, program string) []string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	must(t, err)
	var out []string
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		out = append(out, d.Path+"@"+d.Version)
	}
	if len(out) < 20 {
		t.Fatalf("%d modules", len(out))
	}
	return out
}

// Each SBOM lists every module that is linked, and no other.
func listsEverything(t *testing.T, r *made) {
	var cyclone struct {
		Components []struct{ Name, Version, Purl string }
	}
	read(t, filepath.Join(r.out, r.name("cdx.json")), &cyclone)
	var listed []string
	for _, c := range cyclone.Components {
		if c.Name != "std" {
			listed = append(listed, c.Name+"@"+c.Version)
		}
	}
	linked := modules(t, r.program())
	same(t, "CycloneDX", linked, listed)
	first := r.text(t, r.out, r.name("cdx.json"))
	if _, err := r.cyclonedx(t.Context(), here, r.program()); err != nil || r.text(t, r.out, r.name("cdx.json")) != first {
		t.Errorf("listed again, it differs: %v", err)
	}

	listed = nil
	var spdx struct {
		Packages []struct{ Name, VersionInfo string }
	}
	read(t, filepath.Join(r.out, r.name("spdx.json")), &spdx)
	for _, p := range spdx.Packages {
		if strings.HasPrefix(p.VersionInfo, "v") {
			listed = append(listed, p.Name+"@"+p.VersionInfo)
		}
	}
	listed = slices.DeleteFunc(listed, func(m string) bool { return strings.HasPrefix(m, "github.com/unpend/unpend@") })
	same(t, "SPDX", linked, listed)
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	want, got = slices.Compact(slices.Sorted(slices.Values(want))), slices.Compact(slices.Sorted(slices.Values(got)))
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%s: linked is -, listed +:\n%s", what, d)
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, json.Unmarshal(data, into))
}

// Every module that is linked, and Go itself, stands in NOTICE with a text.
func termsOfEverything(t *testing.T, r *made) {
	for program, notice := range map[string]string{r.program(): filepath.Join(r.root, "usr/share/doc/unpend/NOTICE"), filepath.Join(r.probesRoot, "usr/bin/nodeprobe"): filepath.Join(r.probesRoot, "usr/share/doc/nodeprobe/NOTICE")} {
		text, err := os.ReadFile(notice)
		must(t, err)
		for _, m := range modules(t, program) {
			if !bytes.Contains(text, []byte("\n"+strings.Replace(m, "@", " ", 1)+" (")) {
				t.Errorf("NOTICE of %s has nothing of %s", filepath.Base(program), m)
			}
		}
		if !bytes.Contains(text, []byte("The Go Authors")) {
			t.Errorf("NOTICE of %s has nothing of Go", filepath.Base(program))
		}
	}
}
