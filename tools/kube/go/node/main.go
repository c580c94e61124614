// Command node is what the embedded Kubernetes has in place of a network plugin's agent and a storage provisioner: it enforces
// NetworkPolicies with nftables (package policy), and makes folders of this machine into volumes (package volumes).
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"soperator-pulumi/node/policy"
	"soperator-pulumi/node/volumes"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	node := flag.String("node", "", "the name of this node")
	health := flag.String("health", "127.0.0.1:10255", "where /healthz is answered")
	nft := flag.String("nft", "nft", "the nft program")
	table := flag.String("table", "", "the name of the nft table that is ours (family ip)")
	root := flag.String("volumes", "", "the folder below which volumes are made")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *health, &policy.Nft{Program: *nft, Table: *table}, *root); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, node, health string, nft *policy.Nft, root string) error {
	if node == "" || nft.Table == "" || !filepath.IsAbs(root) {
		return fmt.Errorf("-node, -table and an absolute -volumes are needed")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	enforcer := policy.NewEnforcer(client, nft)
	provisioner, err := volumes.New(root, node)
	if err != nil {
		return err
	}

	signalled := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if problem := enforcer.Problem(); problem != nil {
			http.Error(w, problem.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Addr: health, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { cancel(server.ListenAndServe()) }()
	go provisioner.Run(ctx, client)
	go func() { cancel(enforcer.Run(ctx)) }()

	<-ctx.Done()
	klog.InfoS("ending", "cause", context.Cause(ctx))
	_ = server.Close()
	if signalled.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}
