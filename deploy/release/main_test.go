package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What it is told wrongly it refuses with what to do, before it makes anything.
func TestRefuses(t *testing.T) {
	t.Chdir("../..")
	for _, tc := range []struct {
		args  []string
		epoch string
		says  string
	}{
		{nil, "", "say what to make: image, or release for everything"},
		{[]string{"all"}, "", "say what to make: image, or release for everything"},
		{[]string{"image", "release"}, "", "say what to make: image, or release for everything"},
		{[]string{"-platforms", "linux", "image"}, "", `platform "linux": linux or darwin, with /amd64 or /arm64`},
		{[]string{"-archives", "linux/amd64,windows/amd64", "release"}, "", `platform "windows/amd64": linux or darwin, with /amd64 or /arm64`},
		{[]string{"-tag", "v99.0.0", "image"}, "", "the tag is v99.0.0 and the chart's appVersion "},
		{[]string{"image"}, "yesterday", `SOURCE_DATE_EPOCH is "yesterday": seconds since 1970 are wanted`},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", tc.epoch)
		out := filepath.Join(t.TempDir(), "out")
		if err := run(t.Context(), append([]string{"-out", out}, tc.args...), io.Discard); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: %v, want %s", tc.args, err, tc.says)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: something was written", tc.args)
		}
	}
}

// What the chart installs by default is what is made: the same names, and the chart's version.
func TestChartNamesTheImages(t *testing.T) {
	data, err := os.ReadFile("../charts/unpend/values.yaml")
	must(t, err)
	type image struct{ Repository, Tag, Digest string }
	var values struct {
		Image image
		Probe struct{ Image image }
	}
	must(t, yaml.Unmarshal(data, &values))
	workflow, err := os.ReadFile("../../.github/workflows/release.yml")
	must(t, err)
	push := regexp.MustCompile(`-push (\S+)`).FindSubmatch(workflow)
	if push == nil {
		t.Fatal("the workflow pushes nowhere")
	}
	want := []image{{Repository: string(push[1]) + "/unpend"}, {Repository: string(push[1]) + "/nodeprobe"}}
	if d := gocmp.Diff(want, []image{values.Image, values.Probe.Image}); d != "" {
		t.Error(d)
	}
}

// Every action of the workflow is pinned by its commit, and what it runs are targets that exist.
func TestWorkflow(t *testing.T) {
	workflow, err := os.ReadFile("../../.github/workflows/release.yml")
	must(t, err)
	makefile, err := os.ReadFile("../../Makefile")
	must(t, err)
	uses := regexp.MustCompile(`uses: (.*)`).FindAllSubmatch(workflow, -1)
	for _, u := range uses {
		if !regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+$`).Match(u[1]) {
			t.Errorf("%s is not pinned", u[1])
		}
	}
	targets := regexp.MustCompile(`\bmake ([a-z-]+)`).FindAllSubmatch(workflow, -1)
	for _, m := range targets {
		if !bytes.Contains(makefile, []byte("\n"+string(m[1])+":")) {
			t.Errorf("there is no make %s", m[1])
		}
	}
	if len(uses) < 2 || len(targets) < 2 {
		t.Errorf("%d actions, %d targets", len(uses), len(targets))
	}
}

// Files come out as they went in, with the folders that they lie in, in one order.
func TestPack(t *testing.T) {
	files := withFolders([]file{{name: "b/c/d", mode: 0o644, data: []byte("d")}, {name: "tmp/", mode: 0o1777}, {name: "b/a", mode: 0o777, link: "c/d"}})
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	if d := gocmp.Diff([]string{"b/", "b/a", "b/c/", "b/c/d", "tmp/"}, names); d != "" {
		t.Error(d)
	}
	made := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, pack := range map[string]func(io.Writer, time.Time, []file) error{"tar": writeTar, "tar.gz": writeTarGz} {
		var one, two bytes.Buffer
		must(t, pack(&one, made, files))
		must(t, pack(&two, made, files))
		if one.Len() == 0 || !bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("%s: %d bytes, then others", name, one.Len())
		}
	}
}

// A module without terms may not be passed on, and a text that several have stands once.
func TestNotice(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"a/LICENSE": "take it\n", "a/inner/COPYING.txt": "as it is", "b/LICENCE.md": "take it\n", "c/license.go": "package c"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	all := terms{owners: map[string][]string{}, seen: map[string]bool{}}
	must(t, all.collect("example.com/a v1", root+"/a", root+"/a/inner"))
	must(t, all.collect("example.com/a v1", root+"/a", root+"/a"))
	must(t, all.collect("example.com/b v2", root+"/b", root+"/b"))
	if err := all.collect("example.com/c v3", root+"/c", root+"/c"); err == nil || err.Error() != "example.com/c v3 says nowhere under which terms it may be passed on" {
		t.Error(err)
	}
	bar := strings.Repeat("=", 80)
	want := "unpend is licensed under the Apache License, Version 2.0: see LICENSE.\nIt contains what follows, each under the terms below it.\n" +
		"\n" + bar + "\n\nexample.com/a v1 (LICENSE)\nexample.com/b v2 (LICENCE.md)\n\ntake it\n" +
		"\n" + bar + "\n\nexample.com/a v1 (inner/COPYING.txt)\n\nas it is\n"
	if d := gocmp.Diff(want, string(all.write())); d != "" {
		t.Error(d)
	}
}

// A probe that needs more than its base has is not released: it would not start.
func TestLinksOnlyWhatTheBaseHas(t *testing.T) {
	const program = "/bin/sh" // of Debian, linked with its C library
	if err := linksOnly(program, []file{{name: "usr/lib/libm.so.6"}}); err == nil || err.Error() != "the program needs libc.so.6, which the C library's package does not have" {
		t.Error(err)
	}
	must(t, linksOnly(program, []file{{name: "usr/lib/x86_64-linux-gnu/libc.so.6"}}))
}
