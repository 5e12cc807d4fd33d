package main

import (
	"context"
	"os"
	"path/filepath"
)

// alone is a signing config of cosign that names no service: no transparency log is told, no
// clock is asked, and nothing has to be reached.
const alone = `{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json","rekorTlogConfig":{},"tsaConfig":{}}`

// signing writes that config.
func (m *maker) signing() (path string, done func(), err error) {
	dir, err := os.MkdirTemp("", "unpend-sign-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "signing.json")
	return path, func() { os.RemoveAll(dir) }, os.WriteFile(path, []byte(alone), 0o600)
}

// signImage signs an image by its digest; the signature lies beside it in its registry.
func (m *maker) signImage(ctx context.Context, ref string) error {
	config, done, err := m.signing()
	if err != nil {
		return err
	}
	defer done()
	_, err = m.use(ctx, "cosign", nil, "sign", "--yes", "--key", m.key, "--signing-config", config, ref)
	return err
}

// signFiles writes a signature beside each file, and the public key; without a private one
// it says that nothing is signed.
func (m *maker) signFiles(ctx context.Context, names []string) error {
	if m.key == "" {
		m.say("nothing is signed: no -key was given")
		return nil
	}
	config, done, err := m.signing()
	if err != nil {
		return err
	}
	defer done()
	for _, name := range names {
		path := filepath.Join(m.out, name)
		if _, err := m.use(ctx, "cosign", nil, "sign-blob", "--yes", "--key", m.key, "--signing-config", config, "--bundle", path+".sigstore.json", path); err != nil {
			return err
		}
	}
	_, err = m.use(ctx, "cosign", nil, "public-key", "--key", m.key, "--outfile", filepath.Join(m.out, "cosign.pub"))
	return err
}
