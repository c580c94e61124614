// Package gate keeps a pod's containers from starting before the policies that select it are in force.
//
// It has two ends. The one is a CNI plugin, last of the pods' chain: it tells the agent which pod has got which address, and
// waits. The other is the agent's, on a UNIX socket. When the agent does not answer, the pod does not start, and the kubelet
// tries again.
package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

// Name is the plugin's name in the pods' chain, and the name that the program is called by then.
const Name = "soperator-policy"

const (
	addTimeout    = 15 * time.Second
	deleteTimeout = 2 * time.Second
)

// Sandbox is what a pod's containers run in; a pod whose sandbox died gets another.
type Sandbox struct {
	ID        string     `json:"id"`
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	UID       string     `json:"uid"` // the pod's; empty when the runtime does not say
	Address   netip.Addr `json:"address"`
}

type configuration struct {
	types.NetConf
	Socket string `json:"socket"`
}

// podArguments is what container runtimes pass as CNI_ARGS.
type podArguments struct {
	types.CommonArgs
	//nolint:revive // names that the runtimes chose
	K8S_POD_NAMESPACE, K8S_POD_NAME, K8S_POD_UID types.UnmarshallableString
}

// Plugin answers one call of the container runtime.
func Plugin() {
	skel.PluginMainFuncs(
		skel.CNIFuncs{
			Add:   add,
			Del:   remove,
			Check: func(*skel.CmdArgs) error { return nil },
		},
		version.PluginSupports("0.4.0", "1.0.0"),
		"holds pods until their NetworkPolicies are in force",
	)
}

func add(args *skel.CmdArgs) error {
	config, sandbox, err := parse(args)
	if err != nil {
		return err
	}
	result, err := current.NewResultFromResult(config.PrevResult)
	if err != nil {
		return fmt.Errorf("the plugin before this one gave no result: %w", err)
	}
	for _, ip := range result.IPs {
		if address, ok := netip.AddrFromSlice(ip.Address.IP.To4()); ok {
			sandbox.Address = address
		}
	}
	if !sandbox.Address.IsValid() {
		return fmt.Errorf("pod %s/%s got no IPv4 address", sandbox.Namespace, sandbox.Pod)
	}
	if err := call(config.Socket, "started", sandbox, addTimeout); err != nil {
		return err
	}
	return types.PrintResult(result, config.CNIVersion)
}

// remove tells the agent that the address is free. It must not fail: what is gone may be removed again and again.
func remove(args *skel.CmdArgs) error {
	config, sandbox, err := parse(args)
	if err == nil {
		_ = call(config.Socket, "ended", sandbox, deleteTimeout)
	}
	return nil
}

func parse(args *skel.CmdArgs) (*configuration, Sandbox, error) {
	config := &configuration{}
	if err := json.Unmarshal(args.StdinData, config); err != nil {
		return nil, Sandbox{}, fmt.Errorf("the configuration is not JSON: %w", err)
	}
	if err := version.ParsePrevResult(&config.NetConf); err != nil {
		return nil, Sandbox{}, err
	}
	pod := podArguments{CommonArgs: types.CommonArgs{IgnoreUnknown: true}}
	if err := types.LoadArgs(args.Args, &pod); err != nil {
		return nil, Sandbox{}, err
	}
	return config, Sandbox{
		ID:        args.ContainerID,
		Namespace: string(pod.K8S_POD_NAMESPACE),
		Pod:       string(pod.K8S_POD_NAME),
		UID:       string(pod.K8S_POD_UID),
	}, nil
}

// call sends one message to the agent and returns its answer.
func call(socket, event string, sandbox Sandbox, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("the node agent, which puts policies in force, does not answer: %w", err)
	}
	defer connection.Close()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	if err := json.NewEncoder(connection).Encode(message{Event: event, Sandbox: sandbox}); err != nil {
		return err
	}
	var answer answer
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return fmt.Errorf("the node agent gave no answer: %w", err)
	}
	if answer.Error != "" {
		return fmt.Errorf("the node agent: %s", answer.Error)
	}
	return nil
}
