package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
)

// serving is what crane says when it listens.
var serving = regexp.MustCompile(`serving on port (\d+)`)

// shelf is what the registry is called that images are made in. It is reached as a proxy: its
// port, another each time, would stand in the images as where their base comes from.
const shelf = "unpend.localhost"

// reached is the environment in which the tools find the shelf.
func reached(host string) []string { return []string{"HTTP_PROXY=http://" + host} }

// registry runs a registry on this machine, which holds its layers in dir, until stop is called;
// the tools know images only as some registry has them.
func (m *maker) registry(ctx context.Context, dir string) (host string, stop func(), err error) {
	crane, err := m.tool(ctx, "crane")
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, crane, "registry", "serve", "--address", "127.0.0.1:0", "--disk", dir)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", nil, fmt.Errorf("start a registry: %w", err)
	}
	ended := make(chan struct{})
	stop = func() {
		cancel()
		<-ended
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if port := serving.FindStringSubmatch(lines.Text()); port != nil {
			go func() {
				defer close(ended)
				io.Copy(io.Discard, said) //nolint:errcheck // it speaks of every request, until it is killed
				cmd.Wait()                //nolint:errcheck // it is killed
			}()
			return "127.0.0.1:" + port[1], stop, nil
		}
	}
	cancel()
	return "", nil, fmt.Errorf("start a registry: it ended: %w", cmd.Wait())
}
