package policy

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Nft writes a ruleset into the kernel with the nft program.
type Nft struct {
	Program string
	Table   string // of family ip; nobody else may use it
}

// Apply replaces the table by the ruleset's, in one step.
func (n *Nft) Apply(ctx context.Context, ruleset Ruleset) error {
	return n.run(ctx, n.Script(ruleset))
}

func (n *Nft) run(ctx context.Context, script string) error {
	command := exec.CommandContext(ctx, n.Program, "-f", "-")
	command.Stdin = strings.NewReader(script)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", n.Program, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// Script returns the ruleset in nft's language.
//
// Forwarded traffic is filtered in both directions. So is what pods send to the node itself, as the plugins of most clusters
// have it: Kubernetes leaves that open. What the node sends to pods (the kubelet's probes) is not. Service addresses are
// resolved by then, so rules see pods' addresses. Established traffic passes, and so does a pod's traffic to itself.
func (n *Nft) Script(ruleset Ruleset) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table ip %[1]s {}\ndelete table ip %[1]s\ntable ip %[1]s {\n", n.Table)
	writeChain(&b, "ingress", "daddr", "saddr", ruleset.Ingress, "drop")
	// Who calls from here learns at once that it is closed.
	writeChain(&b, "egress", "saddr", "daddr", ruleset.Egress, "reject with icmp admin-prohibited")
	toEgress, toIngress := "", ""
	if isolated := ruleset.Egress.Isolated; len(isolated) > 0 {
		toEgress = fmt.Sprintf("    ip saddr %s jump egress\n", set(isolated))
	}
	if isolated := ruleset.Ingress.Isolated; len(isolated) > 0 {
		toIngress = fmt.Sprintf("    ip daddr %s jump ingress\n", set(isolated))
	}
	writeHook(&b, "forward", toItself(ruleset), toEgress, toIngress)
	writeHook(&b, "input", toEgress)
	b.WriteString("}\n")
	return b.String()
}

// toItself returns the rule that lets a pod's traffic to itself pass.
func toItself(ruleset Ruleset) string {
	policed := slices.Concat(ruleset.Egress.Isolated, ruleset.Ingress.Isolated)
	slices.SortFunc(policed, netip.Addr.Compare)
	pairs := make([]string, 0, len(policed))
	for _, address := range slices.Compact(policed) {
		pairs = append(pairs, fmt.Sprintf("%[1]s . %[1]s", address))
	}
	if len(pairs) == 0 {
		return ""
	}
	return fmt.Sprintf("    ip saddr . ip daddr { %s } accept\n", strings.Join(pairs, ", "))
}

// writeHook writes the chain of a hook of the kernel's, in which established traffic passes.
func writeHook(b *strings.Builder, hook string, rules ...string) {
	fmt.Fprintf(b, "  chain %[1]s {\n    type filter hook %[1]s priority filter; policy accept;\n", hook)
	b.WriteString("    ct state established,related accept\n")
	for _, rule := range rules {
		b.WriteString(rule)
	}
	b.WriteString("  }\n")
}

// writeChain writes a chain that returns for what is allowed and refuses the rest.
func writeChain(b *strings.Builder, name, own, other string, direction Direction, refusal string) {
	fmt.Fprintf(b, "  chain %s {\n", name)
	for _, rule := range direction.Allowed {
		for _, peers := range peerMatches(rule, other) {
			for _, ports := range portMatches(rule) {
				fmt.Fprintf(b, "    ip %s %s %s%sreturn comment %q\n", own, set(rule.Pods), peers, ports, comment(rule.Policy))
			}
		}
	}
	fmt.Fprintf(b, "    counter %s\n  }\n", refusal)
}

// peerMatches returns a match for each kind of peer; none when a rule names peers and there are none.
func peerMatches(rule Rule, field string) []string {
	if rule.AnyPeer {
		return []string{""}
	}
	var matches []string
	if len(rule.Peers) > 0 {
		matches = append(matches, fmt.Sprintf("ip %s %s ", field, set(rule.Peers)))
	}
	for _, block := range rule.Blocks {
		match := fmt.Sprintf("ip %s %s ", field, block.Range)
		for _, except := range block.Except {
			match += fmt.Sprintf("ip %s != %s ", field, except)
		}
		matches = append(matches, match)
	}
	return matches
}

// portMatches returns a match for each protocol.
func portMatches(rule Rule) []string {
	if rule.AnyPort {
		return []string{""}
	}
	var matches []string
	for _, protocol := range []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP} {
		name := strings.ToLower(string(protocol))
		var ports []string
		all := false
		for _, port := range rule.Ports {
			switch {
			case port.Protocol != protocol:
			case port.First == 0:
				all = true
			default:
				// One match a range: ranges of a policy may overlap, which one set would refuse.
				if port.Last > port.First {
					matches = append(matches, fmt.Sprintf("%s dport %d-%d ", name, port.First, port.Last))
				} else {
					ports = append(ports, fmt.Sprint(port.First))
				}
			}
		}
		if all {
			matches = append(matches, "meta l4proto "+name+" ")
		} else if len(ports) > 0 {
			matches = append(matches, fmt.Sprintf("%s dport { %s } ", name, strings.Join(ports, ", ")))
		}
	}
	return matches
}

// A comment may have 128 bytes, of which nft keeps one.
func comment(policy string) string { return policy[:min(len(policy), 120)] }

func set(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, address := range addresses {
		words = append(words, address.String())
	}
	return "{ " + strings.Join(words, ", ") + " }"
}
