// Command node is what the embedded Kubernetes has in place of a network plugin's agent and a storage provisioner: it enforces
// NetworkPolicies with nftables (package policy), and on one machine makes folders into volumes (package volumes). Called by
// the name soperator-policy, it is the CNI plugin that holds a pod until its policies are in force (package gate).
package main

import (
	"context"
	"errors"
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

	"soperator-pulumi/node/gate"
	"soperator-pulumi/node/policy"
	"soperator-pulumi/node/volumes"
)

func main() {
	if filepath.Base(os.Args[0]) == gate.Name {
		gate.Plugin()
		return
	}
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	health := flag.String("health", "127.0.0.1:10255", "where /healthz is answered")
	socket := flag.String("socket", "", "the UNIX socket on which CNI plugins are answered")
	nft := flag.String("nft", "nft", "the nft program")
	table := flag.String("table", "", "the name of the nft table that is ours (family ip)")
	root := flag.String("volumes", "", "the folder below which volumes are made; empty: another machine makes them")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	settings := settings{*kubeconfig, *health, *socket, *root, &policy.Nft{Program: *nft, Table: *table}}
	if err := settings.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

type settings struct {
	kubeconfig, health, socket, volumes string
	nft                                 *policy.Nft
}

func (s settings) run(ctx context.Context) error {
	if s.nft.Table == "" || s.socket == "" || (s.volumes != "" && !filepath.IsAbs(s.volumes)) {
		return errors.New("-table and -socket are needed, and -volumes is absolute or empty")
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	enforcer := policy.NewEnforcer(client, s.nft)
	var provisioner *volumes.Provisioner
	if s.volumes != "" {
		if provisioner, err = volumes.New(s.volumes); err != nil {
			return err
		}
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
	server := &http.Server{Addr: s.health, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { cancel(server.ListenAndServe()) }()
	if provisioner != nil {
		go provisioner.Run(ctx, client)
	}
	go func() { cancel(enforcer.Run(ctx)) }()
	go func() { cancel(gate.Serve(ctx, s.socket, enforcer)) }()

	<-ctx.Done()
	klog.InfoS("ending", "cause", context.Cause(ctx))
	_ = server.Close()
	if signalled.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}
