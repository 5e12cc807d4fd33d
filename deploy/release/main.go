// Command release makes what is released, without a container engine: the images, and the
// archives with what comes beside them. `make image` and `make release` call it.
//
//	go run ./deploy/release -ldflags "-s -w" -platforms linux/amd64 image
//
// The same sources, tools and time give the same bytes. The tools of others that it calls
// (ko, crane, cosign, cyclonedx-gomod, krew) are built from the modules in tools, once.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// downloads is where a release's files lie, in a folder of its tag's name.
const downloads = "https://github.com/unpend/unpend/releases/download"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes one or all of it from the sources in the working folder.
func run(ctx context.Context, args []string, log io.Writer) error {
	m := &maker{log: log}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&m.out, "out", "bin/release", "the folder that it is written to")
	flags.StringVar(&m.ldflags, "ldflags", "-s -w", "as of go build; the Makefile stamps version, commit and date with them")
	tag := flags.String("tag", "", "the tag that is released, v1.2.3; without it the version of the chart, with -dev")
	images := flags.String("platforms", "linux/amd64,linux/arm64", "of the images")
	archives := flags.String("archives", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "of the archives")
	flags.StringVar(&m.push, "push", "", "where the images are pushed to: ghcr.io/unpend; \"\": nowhere, they stay as OCI layouts")
	flags.StringVar(&m.key, "key", "", "cosign's private key, a file or env://NAME, its password in COSIGN_PASSWORD; \"\": nothing is signed")
	flags.StringVar(&m.download, "download", downloads, "where krew finds the archives, below a folder of the tag's name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	what := flags.Args()
	if len(what) != 1 || what[0] != "image" && what[0] != "release" {
		return errors.New("say what to make: image, or release for everything")
	}
	if err := m.prepare(*tag, *images, *archives); err != nil {
		return err
	}
	if err := m.image(ctx); err != nil || what[0] == "image" {
		return err
	}
	return m.release(ctx)
}

// maker makes everything of one version into one folder.
type maker struct {
	root, out string    // of the repository, and for what is made; both absolute
	version   string    // 1.2.3, without the tag's v
	made      time.Time // what every file is dated
	ldflags   string
	images    []platform
	archives  []platform
	push, key string
	download  string
	tools     map[string]string // paths of programs, by their names
	env       []string          // of every program
	sboms     []string          // of the service's images, in out
	log       io.Writer
}

// platform is one of Go's, as linux/amd64.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func (m *maker) prepare(tag, images, archives string) (err error) {
	if m.root, err = filepath.Abs("."); err != nil {
		return err
	}
	if m.out, err = filepath.Abs(m.out); err != nil {
		return err
	}
	if m.version, err = versionOf(m.root, tag); err != nil {
		return err
	}
	if m.made, err = epoch(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if m.images, err = platformsOf(images); err != nil {
		return err
	}
	if m.archives, err = platformsOf(archives); err != nil {
		return err
	}
	return os.MkdirAll(m.out, 0o755)
}

// versionOf is the tag's version, which has to be the chart's: the chart installs the images
// of its own version.
func versionOf(root, tag string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, "deploy/charts/unpend/Chart.yaml"))
	if err != nil {
		return "", fmt.Errorf("find the version, in the repository's root: %w", err)
	}
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return "", fmt.Errorf("read the chart's version: %w", err)
	}
	switch {
	case tag == "":
		return chart.AppVersion + "-dev", nil
	case strings.TrimPrefix(tag, "v") != chart.AppVersion:
		return "", fmt.Errorf("the tag is %s and the chart's appVersion %s: one of them is wrong", tag, chart.AppVersion)
	}
	return chart.AppVersion, nil
}

// epoch is what everything is dated, or the beginning of 1980.
func epoch(seconds string) (time.Time, error) {
	n, err := strconv.ParseInt(cmp.Or(seconds, "315532800"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: seconds since 1970 are wanted", seconds)
	}
	return time.Unix(n, 0).UTC(), nil
}

func platformsOf(list string) ([]platform, error) {
	var out []platform
	for p := range strings.SplitSeq(list, ",") {
		system, arch, ok := strings.Cut(strings.TrimSpace(p), "/")
		if !ok || !slices.Contains([]string{"linux", "darwin"}, system) || arch != "amd64" && arch != "arm64" {
			return nil, fmt.Errorf("platform %q: linux or darwin, with /amd64 or /arm64", p)
		}
		out = append(out, platform{system, arch})
	}
	return out, nil
}
