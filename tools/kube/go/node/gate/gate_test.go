package gate

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
)

type watcher struct {
	started, ended chan Sandbox
	failure        error
}

func (w *watcher) Started(_ context.Context, sandbox Sandbox) error {
	w.started <- sandbox
	return w.failure
}

func (w *watcher) Ended(sandbox Sandbox) { w.ended <- sandbox }

func serveFor(t *testing.T, failure error) (*watcher, string) {
	t.Helper()
	w := &watcher{make(chan Sandbox, 1), make(chan Sandbox, 1), failure}
	socket := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- Serve(ctx, socket, w) }()
	t.Cleanup(func() { cancel(); <-done })
	for deadline := time.Now().Add(5 * time.Second); call(socket, "ended", Sandbox{}, time.Second) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("nobody listens")
		}
	}
	<-w.ended
	return w, socket
}

func arguments(socket string) *skel.CmdArgs {
	return &skel.CmdArgs{
		ContainerID: "sandbox1",
		Args:        "IgnoreUnknown=1;K8S_POD_NAMESPACE=hpc;K8S_POD_NAME=worker-0;K8S_POD_UID=u1;K8S_POD_INFRA_CONTAINER_ID=x",
		StdinData: []byte(`{"cniVersion":"1.0.0","name":"n","type":"soperator-policy","socket":"` + socket + `",
			"prevResult":{"cniVersion":"1.0.0","ips":[{"address":"10.244.0.5/24"}]}}`),
	}
}

var worker = Sandbox{ID: "sandbox1", Namespace: "hpc", Pod: "worker-0", UID: "u1", Address: netip.MustParseAddr("10.244.0.5")}

func TestTheAgentIsToldWhichPodHasWhichAddress(t *testing.T) {
	w, socket := serveFor(t, nil)
	if err := add(arguments(socket)); err != nil {
		t.Fatal(err)
	}
	if got := <-w.started; got != worker {
		t.Errorf("got %+v", got)
	}
}

func TestAPodDoesNotStartWhenItsPoliciesCannotBeEnforced(t *testing.T) {
	_, socket := serveFor(t, errors.New("no nft"))
	if err := add(arguments(socket)); err == nil || !strings.Contains(err.Error(), "no nft") {
		t.Errorf("got %v", err)
	}
}

func TestAPodDoesNotStartWhenTheAgentIsGone(t *testing.T) {
	err := add(arguments(filepath.Join(t.TempDir(), "nobody")))
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}

func TestTheAgentIsToldOfTheEnd(t *testing.T) {
	w, socket := serveFor(t, nil)
	if err := remove(arguments(socket)); err != nil {
		t.Fatal(err)
	}
	if got := <-w.ended; got.ID != worker.ID || got.Pod != worker.Pod {
		t.Errorf("got %+v", got)
	}
}

func TestRemovingNeverFailsForItIsTriedAgainForEver(t *testing.T) {
	if err := remove(arguments(filepath.Join(t.TempDir(), "nobody"))); err != nil {
		t.Error(err)
	}
	if err := remove(&skel.CmdArgs{StdinData: []byte("no JSON")}); err != nil {
		t.Error(err)
	}
}

func TestAnUnknownEventIsRefused(t *testing.T) {
	_, socket := serveFor(t, nil)
	if err := call(socket, "paused", worker, time.Second); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("got %v", err)
	}
}
