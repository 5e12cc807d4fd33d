package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// release makes the archives, an SBOM of each program, krew's manifest, the sums of all of
// it, and signatures where there is a key.
func (m *maker) release(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "unpend-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := m.programs(ctx, dir)
	if err != nil {
		return err
	}
	beside, err := m.beside(ctx, programs[platform{runtime.GOOS, runtime.GOARCH}], filepath.Join(dir, "man1"))
	if err != nil {
		return err
	}
	made, plugin := slices.Clone(m.sboms), map[platform]string{}
	for _, p := range m.archives {
		archive, err := m.archive(ctx, p, programs[p], beside)
		if err != nil {
			return fmt.Errorf("archive %s: %w", p, err)
		}
		sbom, err := m.cyclonedx(ctx, p, programs[p])
		if err != nil {
			return err
		}
		made, plugin[p] = append(made, archive, sbom), archive
	}
	manifest, err := m.krew(plugin)
	if err != nil {
		return err
	}
	sums, err := m.sums(append(made, manifest, "images.txt"))
	if err != nil {
		return err
	}
	return m.signFiles(ctx, append(made, manifest, sums))
}

// programs builds the program for every archive, as the Makefile does, and for this machine: that
// one writes what stands beside it.
func (m *maker) programs(ctx context.Context, dir string) (map[platform]string, error) {
	out := map[platform]string{}
	for _, p := range append(slices.Clone(m.archives), platform{runtime.GOOS, runtime.GOARCH}) {
		if out[p] != "" {
			continue
		}
		out[p] = filepath.Join(dir, p.os+"-"+p.arch, "unpend")
		if _, err := m.call(ctx, p.target(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", m.ldflags, "-o", out[p], "./cmd/unpend"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// beside are the files that stand beside the program, the same for every platform: one that
// runs here writes them.
func (m *maker) beside(ctx context.Context, program, man string) ([]file, error) {
	var out []file
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := m.call(ctx, nil, program, "completion", shell)
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "completions/unpend." + shell, mode: 0o644, data: []byte(script + "\n")})
	}
	if _, err := m.call(ctx, nil, program, "man", man); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(man)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		data, err := os.ReadFile(filepath.Join(man, page.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "man/man1/" + page.Name(), mode: 0o644, data: data})
	}
	license, err := os.ReadFile(filepath.Join(m.root, "LICENSE"))
	return append(out, file{name: "LICENSE", mode: 0o644, data: license}), err
}

// archive packs a program with what stands beside it, and gives the archive's name.
func (m *maker) archive(ctx context.Context, p platform, program string, beside []file) (string, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	notice, err := m.notice(ctx, p, nil, "./cmd/unpend")
	if err != nil {
		return "", err
	}
	files := slices.Concat(beside, []file{{name: "NOTICE", mode: 0o644, data: notice}, {name: "unpend", mode: 0o755, data: data}})
	name := fmt.Sprintf("unpend_%s_%s_%s.tar.gz", m.version, p.os, p.arch)
	return name, packTo(filepath.Join(m.out, name), m.made, withFolders(files), writeTarGz)
}

// cyclonedx writes an SBOM of what is linked into a program, and gives its name.
func (m *maker) cyclonedx(ctx context.Context, p platform, program string) (string, error) {
	name := fmt.Sprintf("unpend_%s_%s_%s.cdx.json", m.version, p.os, p.arch)
	_, err := m.use(ctx, "cyclonedx-gomod", nil, "bin", "-json", "-noserial", "-notimestamp", "-std", "-version", "v"+m.version, "-output", filepath.Join(m.out, name), program)
	return name, err
}

// sums writes SHA256SUMS, as sha256sum -c reads it.
func (m *maker) sums(names []string) (string, error) {
	slices.Sort(names)
	var out bytes.Buffer
	for _, name := range names {
		sum, err := m.sum(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
	}
	return "SHA256SUMS", os.WriteFile(filepath.Join(m.out, "SHA256SUMS"), out.Bytes(), 0o644)
}

func (m *maker) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(m.out, name))
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}
