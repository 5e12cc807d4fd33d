// Command unpend explains why a GPU pod waits and gets it running. The same
// binary under the name kubectl-unpend is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/unpend/unpend/cmd/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program.Run(ctx, os.Args, program.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
