//go:build cgo

// Command nodeprobe reports the GPU layout of the node it runs on as a
// NodeGeometry object: what NVIDIA's driver says, and who holds it, which the
// kubelet says. It only reads the node. It is the only program here that needs
// cgo, and runs once on every GPU node.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/nvml"
	"github.com/unpend/unpend/nodeprobe/podresources"
)

const program = "unpend-nodeprobe"

// Exit codes.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the flags.
type options struct {
	node, kubeconfig, socket, output string
	once                             bool
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, env func(string) string, out, complaints io.Writer) int {
	klog.SetOutput(io.Discard) // client-go's own log: what matters of it is in our sentences
	klog.LogToStderr(false)
	o, err := parse(args, env, complaints)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		fmt.Fprintf(complaints, "nodeprobe: %v\n", err)
		return exitUsage
	}
	driver := nvml.New(nvml.Options{Logger: slog.New(slog.NewTextHandler(complaints, nil))})
	defer driver.Close()
	p := &probe{
		read: driver.Read, wait: driver.Wait, now: time.Now,
		held: func(ctx context.Context) ([]nodeprobe.Allocation, error) {
			return podresources.List(ctx, o.socket)
		},
		rand:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		logger: slog.New(slog.NewTextHandler(complaints, nil)),
	}
	if o.once {
		err = print(out, o.output, document(o.node, p.look(ctx)))
	} else {
		err = p.serve(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(complaints, "nodeprobe: %v\n", err)
		return exitError
	}
	return exitDone
}

func parse(args []string, env func(string) string, complaints io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("nodeprobe", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.node, "node", env("NODE_NAME"), "`name` of this node (default $NODE_NAME)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with the cluster to report to (default: the one this pod runs in)")
	f.StringVar(&o.socket, "pod-resources-socket", podresources.Socket, "`path` of the kubelet's socket")
	f.BoolVar(&o.once, "once", false, "print the NodeGeometry of now and end; needs no cluster")
	f.StringVar(&o.output, "o", "yaml", "`format` for --once: yaml or json")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(complaints, "nodeprobe reports the GPU layout of this node as a NodeGeometry object.")
		f.SetOutput(complaints)
		f.PrintDefaults()
		return o, err
	}
	switch {
	case err != nil:
		return o, err
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.output != "yaml" && o.output != "json":
		return o, fmt.Errorf("-o %s: yaml or json", o.output)
	case o.once:
		host, _ := os.Hostname() // a name is for the reader of the output only
		o.node = cmp.Or(o.node, host, "node")
	case o.node == "":
		return o, errors.New("which node is this: --node or $NODE_NAME")
	}
	return o, nil
}

// serve runs the probe against a cluster.
func (p *probe) serve(ctx context.Context, o options) error {
	config, err := clusterOf(o.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = program
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	p.publish = newPublisher(client, o.node).publish
	return p.run(ctx)
}

func clusterOf(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// print writes the object as YAML or JSON.
func print(out io.Writer, format string, geo nodeprobe.NodeGeometry) error {
	data, err := json.MarshalIndent(geo, "", "  ")
	if err == nil && format == "yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if format == "json" {
		data = append(data, '\n')
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}
