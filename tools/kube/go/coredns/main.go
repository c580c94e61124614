// Command coredns is CoreDNS with the plugins that the embedded Kubernetes uses: a third of the build and of the size.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
	_ "github.com/coredns/coredns/plugin/timeouts"
)

// The order in which plugins see a query: upstream's plugin.cfg, less what is not imported.
func init() {
	dnsserver.Directives = []string{
		"reload", "timeouts", "bind", "health", "ready", "errors", "cache", "loadbalance", "template", "kubernetes", "forward",
	}
}

func main() { coremain.Run() }
