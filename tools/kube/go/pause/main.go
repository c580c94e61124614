// Command pause holds a pod's namespaces: the first process of every pod, which waits for its end and reaps.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// An ignored SIGCHLD makes the kernel reap: no zombies in pods that share their process namespace.
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
