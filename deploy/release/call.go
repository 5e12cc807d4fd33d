package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unpend/unpend/testdata/built"
)

// toolbox are the modules of the tools, folders beside this file, with the programs of each.
var toolbox = map[string][]string{
	"roots": {"."},
	"tools": {
		"github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod",
		"github.com/google/go-containerregistry/cmd/crane",
		"github.com/google/ko",
		"github.com/sigstore/cosign/v3/cmd/cosign",
		"sigs.k8s.io/krew/cmd/krew",
		"sigs.k8s.io/krew/cmd/validate-krew-manifest",
	},
}

// tool is the path of a program; what is not there yet is built.
func (m *maker) tool(ctx context.Context, name string) (string, error) {
	if m.tools == nil {
		all := map[string]string{}
		for module, packages := range toolbox {
			pins, err := built.Beside(module)
			if err != nil {
				return "", err
			}
			paths, err := built.Module{Pins: pins, Packages: packages, Flags: []string{"-ldflags", "-s -w"}}.Programs(ctx)
			if err != nil {
				return "", err
			}
			maps.Copy(all, paths)
		}
		m.tools = all
	}
	return m.tools[name], nil
}

// use calls a tool and gives what it prints.
func (m *maker) use(ctx context.Context, name string, env []string, args ...string) (string, error) {
	path, err := m.tool(ctx, name)
	if err != nil {
		return "", err
	}
	return m.call(ctx, env, path, args...)
}

// call runs a program in the repository and gives what it prints; an error has what it
// complained of.
func (m *maker) call(ctx context.Context, env []string, program string, args ...string) (string, error) {
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = m.root, slices.Concat(os.Environ(), m.env, env)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args[:min(2, len(args))], " "), err, complaints.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}

// target are the variables that say what go builds for.
func (p platform) target() []string {
	return []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0"}
}

func (m *maker) say(format string, args ...any) { fmt.Fprintf(m.log, format+"\n", args...) }
