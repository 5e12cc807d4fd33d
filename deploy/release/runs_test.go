package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// signed: what is released verifies with the public key, and nothing else does.
func signed(t *testing.T, r *made) {
	public := strings.TrimSuffix(r.key, ".key") + ".pub"
	verify := func(args ...string) error {
		_, err := r.use(t.Context(), "cosign", nil, append(args[:1:1], append([]string{"--key", public, "--insecure-ignore-tlog"}, args[1:]...)...)...)
		return err
	}
	for _, image := range []string{r.service, r.probe} {
		if err := verify("verify", image); err != nil {
			t.Error(err)
		}
	}
	other := r.must(t, "crane", "mutate", r.service, "--label", "a=b", "--tag", r.push+"/unpend:changed")
	if err := verify("verify", other); err == nil {
		t.Errorf("%s, which is not signed, verifies", other)
	}
	file := filepath.Join(r.out, r.name("tar.gz"))
	bundle := file + ".sigstore.json"
	for _, name := range []string{r.name("tar.gz"), r.name("cdx.json"), r.name("spdx.json"), "unpend.yaml", "SHA256SUMS"} {
		if err := verify("verify-blob", "--bundle", filepath.Join(r.out, name+".sigstore.json"), filepath.Join(r.out, name)); err != nil {
			t.Error(err)
		}
	}
	if err := verify("verify-blob", "--bundle", bundle, differ(t, file)); err == nil {
		t.Error("a file with another byte verifies")
	}
	if given, want := r.text(t, r.out, "cosign.pub"), r.text(t, filepath.Dir(public), filepath.Base(public)); given != want {
		t.Errorf("the key beside the files is %s, want %s", given, want)
	}
	public = strings.TrimSuffix(r.newKey(t), ".key") + ".pub"
	if verify("verify", r.service) == nil || verify("verify-blob", "--bundle", bundle, file) == nil {
		t.Error("it verifies with another key")
	}
}

// inside has a program run from an unpacked image as an engine would: its root file system is
// read only, with a folder for temporary files of its own, and it is nobody.
const inside = `root=$1; shift
mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" && mount -t tmpfs -o mode=1777 tmpfs "$root/tmp" &&
exec chroot --userspec=65532:65532 "$root" "$@"`

// inRoot runs it; who may not make a root file system of their own gets the program alone.
func inRoot(t *testing.T, root string, stdin io.Reader, program string, args ...string) (string, error) {
	t.Helper()
	line := append([]string{"unshare", "--mount", "sh", "-c", inside, "sh", root, program}, args...)
	if os.Geteuid() != 0 {
		t.Log("not root: the program runs outside of its root file system")
		line = append([]string{filepath.Join(root, program)}, args...)
	}
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env, cmd.Stdin = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=/tmp"}, stdin
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The images run: the service's tells its version, explains a dump and plays the whole story; the
// probe's looks for a driver and says that there is none.
func runsFromItsRoot(t *testing.T, r *made) {
	entry := r.config(t, r.service).Config.Entrypoint[0]
	out, err := inRoot(t, r.root, nil, entry, "version")
	if err != nil || !strings.Contains(out, "commit 0123456789") || !strings.Contains(out, here.String()) {
		t.Errorf("version: %s, %v", out, err)
	}
	dump, err := os.Open(filepath.Join(r.maker.root, "testdata/scenarios/all-1g/cluster.yaml"))
	must(t, err)
	defer dump.Close()
	if out, err = inRoot(t, r.root, dump, entry, "why", "-f", "-"); exitOf(err) > 3 || !strings.Contains(out, "MIGLayoutMismatch") {
		t.Errorf("why: %s, %v", out, err)
	}
	if out, err = inRoot(t, r.root, nil, entry, "demo", "--auto"); err != nil {
		t.Errorf("demo: %s, %v", out, err)
	}
	if out, err = inRoot(t, r.root, nil, entry, "knowledge", "import", "--folder", "/usr", "--library", "/library"); err == nil {
		t.Errorf("it could write into its root file system: %s", out)
	}
	probe := r.config(t, r.probe).Config.Entrypoint[0]
	if out, err = inRoot(t, r.probesRoot, nil, probe, "--once", "--node", "gpu-1"); err != nil || !strings.Contains(out, "kind: NodeGeometry") || !strings.Contains(out, "libnvidia-ml.so.1") {
		t.Errorf("the probe: %s, %v", out, err)
	}
}

func exitOf(err error) int {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		return 255
	}
	return 0
}

// The sums are those of all files, and sha256sum finds them so.
func sumsHold(t *testing.T, r *made) {
	sums := r.text(t, r.out, "SHA256SUMS")
	cmd := exec.CommandContext(t.Context(), "sha256sum", "-c", "--strict", "SHA256SUMS")
	cmd.Dir = r.out
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	var names []string
	for line := range strings.Lines(sums) {
		names = append(names, strings.Fields(line)[1])
	}
	want := append([]string{"images.txt", "unpend.yaml", r.name("cdx.json"), r.name("tar.gz")}, r.sboms...) // one of each platform
	slices.Sort(want)
	if d := gocmp.Diff(want, names); d != "" || !slices.Contains(want, r.name("spdx.json")) {
		t.Error(d)
	}
}

// The archive has what people who install expect, the same bytes each time; krew takes the
// manifest, installs from the archive, and what it installed runs as a plugin.
func archivesAndKrew(t *testing.T, r *made) {
	name := r.name("tar.gz")
	first, err := r.sum(name)
	must(t, err)
	beside, err := r.beside(t.Context(), r.program(), t.TempDir())
	must(t, err)
	_, err = r.archive(t.Context(), here, r.program(), beside)
	must(t, err)
	if again, err := r.sum(name); again != first || err != nil {
		t.Errorf("packed again, with the program of the image, the archive has the sum %s, and had %s: %v", again, first, err)
	}
	packed := holds(t, filepath.Join(r.out, name))
	pages := 0
	packed = slices.DeleteFunc(packed, func(f string) bool {
		page := regexp.MustCompile(`^-rw-r--r-- man/man1/unpend[a-z-]*\.1$`).MatchString(f)
		if page {
			pages++
		}
		return page
	})
	want := []string{"-rw-r--r-- LICENSE", "-rw-r--r-- NOTICE", "-rw-r--r-- completions/unpend.bash", "-rw-r--r-- completions/unpend.fish", "-rw-r--r-- completions/unpend.zsh", "-rwxr-xr-x unpend", "drwxr-xr-x completions/", "drwxr-xr-x man/", "drwxr-xr-x man/man1/"}
	if d := gocmp.Diff(want, packed); d != "" || pages < 15 {
		t.Errorf("%d man pages, and %s", pages, d)
	}
	if want := "uri: https://github.com/unpend/unpend/releases/download/v" + r.version + "/" + name; !strings.Contains(r.text(t, r.out, "unpend.yaml"), want) {
		t.Errorf("the manifest lacks %q", want)
	}
	served := httptest.NewServer(http.StripPrefix("/v"+r.version, http.FileServer(http.Dir(r.out))))
	defer served.Close()
	r.download = served.URL
	manifest, err := r.krew(map[platform]string{here: name})
	must(t, err)
	r.plugin(t, filepath.Join(r.out, manifest))
	r.refusesOther(t, manifest, name)
}

// holds lists the files of an archive, with their rights.
func holds(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	must(t, err)
	var out []string
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(out)
			return out
		}
		must(t, err)
		out = append(out, fmt.Sprintf("%s %s", h.FileInfo().Mode(), h.Name))
	}
}

// plugin has krew check and install. krew's check calls krew as kubectl does; a script of
// the test finds the plugin for it.
func (r *made) plugin(t *testing.T, manifest string) {
	t.Helper()
	bin, at := t.TempDir(), t.TempDir()
	krew, err := r.tool(t.Context(), "krew")
	must(t, err)
	must(t, os.Symlink(krew, filepath.Join(bin, "kubectl-krew")))
	must(t, os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\nplugin=$1; shift\nexec kubectl-$plugin \"$@\"\n"), 0o755))
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "KREW_ROOT=" + at}
	if here.arch == "amd64" { // it knows no other
		if _, err := r.use(t.Context(), "validate-krew-manifest", env, "-manifest", manifest); err != nil {
			t.Error(err)
		}
	}
	_, err = r.call(t.Context(), env, "kubectl", "krew", "install", "--manifest", manifest)
	must(t, err)
	env[0] = "PATH=" + bin + ":" + filepath.Join(at, "bin") + ":" + os.Getenv("PATH")
	out, err := r.call(t.Context(), env, filepath.Join(bin, "kubectl"), "unpend", "version")
	if err != nil || !strings.HasPrefix(out, "unpend ") {
		t.Errorf("the plugin says %q, %v", out, err)
	}
	if out, err = r.call(t.Context(), env, filepath.Join(bin, "kubectl"), "unpend", "--help"); err != nil || !strings.Contains(out, "kubectl unpend [command]") {
		t.Errorf("the plugin's help is %q, %v", out, err)
	}
}

// refusesOther: krew installs no archive that is not the one of the manifest.
func (r *made) refusesOther(t *testing.T, manifest, archive string) {
	t.Helper()
	other := differ(t, filepath.Join(r.out, archive))
	if out, err := r.use(t.Context(), "krew", []string{"KREW_ROOT=" + t.TempDir()}, "install", "--manifest", filepath.Join(r.out, manifest), "--archive", other); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another archive is installed: %s, %v", out, err)
	}
}
