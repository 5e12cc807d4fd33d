package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// nobody is who the service's image runs as; the chart says the same.
const nobody = "65532:65532"

// image makes both images, each an index of its platforms, as OCI layouts; images.txt says
// under which names and digests.
func (m *maker) image(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "unpend-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	host, stop, err := m.registry(ctx, filepath.Join(dir, "registry"))
	if err != nil {
		return err
	}
	defer stop()
	m.env = reached(host)
	var names strings.Builder
	for _, i := range []struct {
		name string
		make func(context.Context, string) (string, error)
	}{{"unpend", m.service}, {"nodeprobe", m.probe}} {
		ref, err := i.make(ctx, dir)
		if err != nil {
			return fmt.Errorf("make the image %s: %w", i.name, err)
		}
		name, err := m.keep(ctx, i.name, ref)
		if err != nil {
			return fmt.Errorf("keep the image %s: %w", i.name, err)
		}
		m.say("%s", name)
		fmt.Fprintln(&names, name)
	}
	return os.WriteFile(filepath.Join(m.out, "images.txt"), []byte(names.String()), 0o644)
}

// keep checks an image of the registry here, writes it as an OCI layout, and pushes and signs it
// where that is asked for. It gives the name with the digest.
func (m *maker) keep(ctx context.Context, name, ref string) (string, error) {
	if _, err := m.use(ctx, "crane", nil, "validate", "--remote", ref); err != nil {
		return "", err
	}
	layout := filepath.Join(m.out, "images", name)
	if err := os.RemoveAll(layout); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(layout), 0o755); err != nil {
		return "", err
	}
	if _, err := m.use(ctx, "crane", nil, "pull", "--format", "oci", ref, layout); err != nil {
		return "", err
	}
	_, digest, _ := strings.Cut(ref, "@")
	if m.push == "" {
		return name + ":" + m.version + "@" + digest, nil
	}
	there := m.push + "/" + name
	if _, err := m.use(ctx, "crane", nil, "copy", ref, there+":"+m.version); err != nil {
		return "", err
	}
	if m.key != "" {
		if err := m.signImage(ctx, there+"@"+digest); err != nil {
			return "", err
		}
	}
	return there + ":" + m.version + "@" + digest, nil
}

// labels are what an image says of itself.
func (m *maker) labels(title, description string) map[string]string {
	const at = "org.opencontainers.image."
	out := map[string]string{
		at + "title": title, at + "description": description, at + "version": m.version, at + "licenses": "Apache-2.0",
		at + "source": "https://github.com/unpend/unpend", at + "url": "https://github.com/unpend/unpend",
		at + "created": m.made.Format(time.RFC3339),
	}
	if _, commit, ok := strings.Cut(m.ldflags, "program.commit="); ok {
		if commit, _, _ = strings.Cut(commit, " "); commit != "" {
			out[at+"revision"] = commit
		}
	}
	return out
}

// service makes the image of the service: a base with nothing but root certificates, the terms of
// what is in it, and a folder for temporary files; ko puts the program on it.
func (m *maker) service(ctx context.Context, dir string) (string, error) {
	roots, err := m.use(ctx, "roots", nil)
	if err != nil {
		return "", err
	}
	base := shelf + "/base"
	var parts []string
	for _, p := range m.images {
		files, err := m.papers(ctx, p, nil, "./cmd/unpend")
		if err != nil {
			return "", err
		}
		files = append(files, file{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o444, data: []byte(roots + "\n")})
		part, err := m.layered(ctx, base, p, filepath.Join(dir, "base-"+p.arch+".tar"), files)
		if err != nil {
			return "", err
		}
		if part, err = m.use(ctx, "crane", nil, "mutate", part, "--user", nobody); err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	if base, err = m.index(ctx, base, parts); err != nil {
		return "", err
	}
	return m.ko(ctx, shelf+"/unpend", base, dir)
}

// papers are files of every image: who there is, and the terms.
func (m *maker) papers(ctx context.Context, p platform, env []string, program string) ([]file, error) {
	license, err := os.ReadFile(filepath.Join(m.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	notice, err := m.notice(ctx, p, env, program)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(program)
	return []file{
		{name: "etc/passwd", mode: 0o444, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o444, data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/share/doc/" + name + "/LICENSE", mode: 0o444, data: license},
		{name: "usr/share/doc/" + name + "/NOTICE", mode: 0o444, data: notice},
	}, nil
}

// layered makes an image of one layer, and gives its name with the digest.
func (m *maker) layered(ctx context.Context, name string, p platform, layer string, files []file) (string, error) {
	if err := packTo(layer, m.made, withFolders(files), writeTar); err != nil {
		return "", err
	}
	ref, err := m.use(ctx, "crane", nil, "append", "--oci-empty-base", "--new_layer", layer, "--new_tag", name+":"+p.arch)
	if err != nil {
		return "", err
	}
	return m.use(ctx, "crane", nil, "mutate", ref, "--set-platform", p.String())
}

// index joins images of some platforms; one alone stays as it is.
func (m *maker) index(ctx context.Context, name string, parts []string) (string, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	args := []string{"index", "append", "--tag", name + ":" + m.version}
	for _, p := range parts {
		args = append(args, "--manifest", p)
	}
	return m.use(ctx, "crane", nil, args...)
}

// ko builds the program as the Makefile does, lays it on the base, and writes an SBOM of it.
func (m *maker) ko(ctx context.Context, repo, base, dir string) (string, error) {
	config, err := json.Marshal(map[string]any{"builds": []any{map[string]any{ // JSON is YAML
		"id": "unpend", "main": "./cmd/unpend", "env": []string{"CGO_ENABLED=0"},
		"flags": []string{"-trimpath", "-buildvcs=false"}, "ldflags": strings.Fields(m.ldflags)}}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, ".ko.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return "", err
	}
	sboms := filepath.Join(dir, "sboms")
	platforms := make([]string, len(m.images))
	for i, p := range m.images {
		platforms[i] = p.String()
	}
	args := []string{"build", "--bare", "--platform", strings.Join(platforms, ","), "--sbom", "spdx", "--sbom-dir", sboms, "--tags", m.version}
	for k, v := range m.labels("unpend", "Explains why GPU pods wait and gets them running once somebody approves") {
		args = append(args, "--image-label", k+"="+v)
	}
	env := []string{"KO_CONFIG_PATH=" + dir, "KO_DOCKER_REPO=" + repo, "KO_DEFAULTBASEIMAGE=" + base, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", m.made.Unix())}
	ref, err := m.use(ctx, "ko", env, append(args, "./cmd/unpend")...)
	if err != nil {
		return "", err
	}
	return ref, m.keepSBOMs(sboms)
}

// keepSBOMs takes over what ko wrote, under the names that archives have.
func (m *maker) keepSBOMs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		name := "unpend_" + m.version + "_" + strings.ReplaceAll(strings.TrimPrefix(e.Name(), "unpend-"), "-", "_")
		if err := os.WriteFile(filepath.Join(m.out, name), data, 0o644); err != nil {
			return err
		}
		m.sboms = append(m.sboms, name)
	}
	return nil
}
