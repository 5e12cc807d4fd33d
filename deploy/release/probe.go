package main

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// debian are the names that Debian's packages and compilers have for an architecture.
var debian = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// probe makes the image of the probe. NVIDIA's driver, which the node puts into the container,
// is a library for glibc, so the base is what the C library's package of Debian (or of its
// kin) holds on this machine: what the probe was linked with.
func (m *maker) probe(ctx context.Context, dir string) (string, error) {
	var parts []string
	for _, p := range m.images {
		base, err := m.glibc(ctx, p)
		if err != nil {
			return "", err
		}
		papers, err := m.papers(ctx, p, []string{"CGO_ENABLED=1"}, "./cmd/nodeprobe")
		if err != nil {
			return "", err
		}
		part, err := m.layered(ctx, shelf+"/nodeprobe", p, filepath.Join(dir, "glibc-"+p.arch+".tar"), slices.Concat(base, papers))
		if err != nil {
			return "", err
		}
		layer, err := m.probeLayer(ctx, p, dir, base)
		if err != nil {
			return "", err
		}
		args := []string{"mutate", part, "--append", layer, "--user", nobody, "--entrypoint", "/usr/bin/nodeprobe"}
		for k, v := range m.labels("nodeprobe", "Reports how the GPUs of a node are laid out and who holds them") {
			args = append(args, "--label", k+"="+v)
		}
		if part, err = m.use(ctx, "crane", nil, args...); err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return m.index(ctx, shelf+"/nodeprobe", parts)
}

// probeLayer builds the program with the compiler for its platform, into a layer of its own.
func (m *maker) probeLayer(ctx context.Context, p platform, dir string, base []file) (string, error) {
	compiler := "gcc"
	if p.arch != runtime.GOARCH {
		compiler = debian[p.arch] + "-gcc"
	}
	program := filepath.Join(dir, "nodeprobe-"+p.arch)
	env := slices.Concat(p.target(), []string{"CGO_ENABLED=1", "CC=" + compiler, "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations"})
	if _, err := m.call(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", program, "./cmd/nodeprobe"); err != nil {
		return "", fmt.Errorf("build the probe with %s (Debian's package gcc-%s has it): %w", compiler, strings.ReplaceAll(debian[p.arch], "_", "-"), err)
	}
	if err := linksOnly(program, base); err != nil {
		return "", err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	layer := program + ".tar"
	return layer, packTo(layer, m.made, []file{{name: "usr/bin/nodeprobe", mode: 0o555, data: data}}, writeTar)
}

// linksOnly refuses a program that needs a library which the base has not.
func linksOnly(program string, base []file) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	defer f.Close()
	needs, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read what the program needs: %w", err)
	}
	for _, lib := range needs {
		if !slices.ContainsFunc(base, func(f file) bool { return path.Base(f.name) == lib }) {
			return fmt.Errorf("the program needs %s, which the C library's package does not have", lib)
		}
	}
	return nil
}

// glibc is the C library and its loader as the machine's package holds them, where a merged /usr
// has them, and what scanners ask of a Debian base: its name, the package, its terms.
func (m *maker) glibc(ctx context.Context, p platform) ([]file, error) {
	pkg := "libc6:" + p.arch
	list, err := m.call(ctx, nil, "dpkg-query", "-L", pkg)
	if err != nil {
		return nil, fmt.Errorf("the probe's base is Debian's %s of this machine (dpkg --add-architecture %s; apt-get install %s): %w", pkg, p.arch, pkg, err)
	}
	changed, err := m.call(ctx, nil, "dpkg", "--verify", pkg)
	if err != nil {
		return nil, fmt.Errorf("hold %s against what was installed: %w", pkg, err)
	}
	if changed != "" {
		return nil, fmt.Errorf("%s is not as it was installed: %s", pkg, changed)
	}
	status, err := m.call(ctx, nil, "dpkg-query", "-s", pkg)
	if err != nil {
		return nil, err
	}
	release, err := os.ReadFile("/usr/lib/os-release")
	if err != nil {
		return nil, err
	}
	out := []file{
		{name: "lib", mode: 0o777, link: "usr/lib"}, {name: "lib64", mode: 0o777, link: "usr/lib64"}, {name: "usr/lib64/", mode: 0o755},
		{name: "usr/lib/os-release", mode: 0o444, data: release}, {name: "etc/os-release", mode: 0o777, link: "../usr/lib/os-release"},
		{name: "var/lib/dpkg/status.d/libc6", mode: 0o444, data: []byte(status + "\n")},
	}
	ours := regexp.MustCompile(`^(/usr)?/lib(64)?/(` + debian[p.arch] + `/)?[^/]+\.so[^/]*$|/doc/libc6/copyright$`)
	for name := range strings.Lines(list) {
		name = strings.TrimSpace(name)
		if !ours.MatchString(name) {
			continue
		}
		f, err := fromDisk(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", pkg, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// fromDisk is a file of this machine, below usr wherever it lies there.
func fromDisk(name string) (file, error) {
	f := file{name: strings.TrimPrefix(name, "/")}
	if !strings.HasPrefix(f.name, "usr/") {
		f.name = "usr/" + f.name
	}
	info, err := os.Lstat(name)
	if err != nil {
		return f, err
	}
	if f.mode = int64(info.Mode().Perm()); info.Mode().Type() == fs.ModeSymlink {
		f.link, err = os.Readlink(name)
		return f, err
	}
	f.data, err = os.ReadFile(name)
	return f, err
}
