package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// Below the plugin's own, so that the plugin gets to hear why.
const serveTimeout = addTimeout - 2*time.Second

// Watcher is told about sandboxes.
type Watcher interface {
	// Started returns when the policies of the sandbox's pod are in force for its address.
	Started(ctx context.Context, sandbox Sandbox) error
	// Ended is called when the address is no longer the pod's.
	Ended(sandbox Sandbox)
}

type message struct {
	Event   string  `json:"event"`
	Sandbox Sandbox `json:"sandbox"`
}

type answer struct {
	Error string `json:"error,omitempty"`
}

// Serve answers plugins on a UNIX socket until ctx ends.
func Serve(ctx context.Context, socket string, watcher Watcher) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = listener.Close()
	}()
	for {
		connection, err := listener.Accept()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		go serve(ctx, connection, watcher)
	}
}

func serve(ctx context.Context, connection net.Conn, watcher Watcher) {
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	_ = connection.SetDeadline(time.Now().Add(addTimeout))
	var received message
	var result answer
	if err := json.NewDecoder(connection).Decode(&received); err != nil {
		result.Error = err.Error()
	} else if err := dispatch(ctx, received, watcher); err != nil {
		result.Error = err.Error()
	}
	_ = json.NewEncoder(connection).Encode(result)
}

func dispatch(ctx context.Context, received message, watcher Watcher) error {
	switch received.Event {
	case "started":
		return watcher.Started(ctx, received.Sandbox)
	case "ended":
		watcher.Ended(received.Sandbox)
		return nil
	}
	return fmt.Errorf("unknown event %q", received.Event)
}
