// Package policy enforces NetworkPolicies on one machine: policies, pods and namespaces are compiled to rules over addresses,
// and these are written as one nft table, which replaces the last one in one step.
package policy

import (
	"cmp"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Cluster is what decides the rules.
type Cluster struct {
	Pods       []*v1.Pod
	Namespaces []*v1.Namespace
	Policies   []*networking.NetworkPolicy
}

// Ruleset is what is enforced. Traffic of an isolated pod passes when one rule of its direction allows it.
type Ruleset struct {
	Pods    map[types.NamespacedName]netip.Addr // all that were looked at: pods with an address of their own
	Ingress Direction
	Egress  Direction
}

// Direction holds what is enforced on traffic to (ingress) or from (egress) pods.
type Direction struct {
	Isolated []netip.Addr
	Allowed  []Rule
}

// Rule allows traffic between Pods, which a policy selects, and peers, on ports.
type Rule struct {
	Policy string // namespace/name, for a person who reads the table
	Pods   []netip.Addr
	// AnyPeer is set when the policy names no peers. Otherwise only Peers (pods) and Blocks are allowed.
	AnyPeer bool
	Peers   []netip.Addr
	Blocks  []Block
	// AnyPort is set when the policy names no ports.
	AnyPort bool
	Ports   []Port
}

// Block is a range of addresses with holes.
type Block struct {
	Range  netip.Prefix
	Except []netip.Prefix
}

// Port is a range of ports of a protocol; First 0 means all ports of it.
type Port struct {
	Protocol    v1.Protocol
	First, Last int32
}

// pod is a pod as policies see it.
type pod struct {
	*v1.Pod
	address netip.Addr
}

// Compile returns the rules of a cluster. It is a pure function, and its result has a fixed order.
func Compile(cluster Cluster) Ruleset {
	c := compiler{namespaces: map[string]labels.Set{}}
	for _, namespace := range cluster.Namespaces {
		c.namespaces[namespace.Name] = namespace.Labels
	}
	for _, p := range cluster.Pods {
		if address, ok := policedAddress(p); ok {
			c.pods = append(c.pods, pod{p, address})
		}
	}
	slices.SortFunc(c.pods, func(a, b pod) int { return a.address.Compare(b.address) })
	policies := slices.SortedFunc(slices.Values(cluster.Policies), func(a, b *networking.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var ingress, egress Direction
	for _, policy := range policies {
		selected := c.selected(policy)
		if len(selected) == 0 {
			continue
		}
		for _, direction := range policy.Spec.PolicyTypes {
			switch direction {
			case networking.PolicyTypeIngress:
				ingress.Isolated = append(ingress.Isolated, addresses(selected)...)
				for _, rule := range policy.Spec.Ingress {
					ingress.Allowed = append(ingress.Allowed, c.ingress(policy, selected, rule)...)
				}
			case networking.PolicyTypeEgress:
				egress.Isolated = append(egress.Isolated, addresses(selected)...)
				for _, rule := range policy.Spec.Egress {
					egress.Allowed = append(egress.Allowed, c.egress(policy, selected, rule)...)
				}
			}
		}
	}
	for _, direction := range []*Direction{&ingress, &egress} {
		slices.SortFunc(direction.Isolated, netip.Addr.Compare)
		direction.Isolated = slices.Compact(direction.Isolated)
	}
	known := make(map[types.NamespacedName]netip.Addr, len(c.pods))
	for _, p := range c.pods {
		known[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p.address
	}
	return Ruleset{Pods: known, Ingress: ingress, Egress: egress}
}

// policedAddress returns the address of a pod that has one of its own and still uses it.
func policedAddress(p *v1.Pod) (netip.Addr, bool) {
	if p.Spec.HostNetwork || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(p.Status.PodIP)
	return address, err == nil && address.Is4()
}

type compiler struct {
	namespaces map[string]labels.Set
	pods       []pod
}

func (c *compiler) selected(policy *networking.NetworkPolicy) []pod {
	selector := selectorOf(&policy.Spec.PodSelector)
	var found []pod
	for _, p := range c.pods {
		if p.Namespace == policy.Namespace && selector.Matches(labels.Set(p.Labels)) {
			found = append(found, p)
		}
	}
	return found
}

// ingress compiles a rule. A named port is the selected pod's own, so pods whose ports differ get rules of their own.
func (c *compiler) ingress(policy *networking.NetworkPolicy, selected []pod, from networking.NetworkPolicyIngressRule) []Rule {
	rule := c.peers(policy, from.From)
	if len(from.Ports) == 0 {
		rule.Pods, rule.AnyPort = addresses(selected), true
		return []Rule{rule}
	}
	var rules []Rule
	for _, group := range groupByPorts(selected, from.Ports) {
		rule.Pods, rule.Ports = group.pods, group.ports
		rules = append(rules, rule)
	}
	return rules
}

// egress compiles a rule. A named port is the peer's own, so peers whose ports differ get rules of their own.
func (c *compiler) egress(policy *networking.NetworkPolicy, selected []pod, to networking.NetworkPolicyEgressRule) []Rule {
	rule := c.peers(policy, to.To)
	rule.Pods = addresses(selected)
	if len(to.Ports) == 0 {
		rule.AnyPort = true
		return []Rule{rule}
	}
	if !hasNames(to.Ports) {
		rule.Ports = numbers(to.Ports, nil)
		return []Rule{rule}
	}
	// Beyond pods nothing has named ports: blocks and unnamed peers keep the numbers only.
	var rules []Rule
	if numeric := numbers(to.Ports, nil); len(numeric) > 0 && (rule.AnyPeer || len(rule.Blocks) > 0) {
		beyond := rule
		beyond.Peers, beyond.Ports = nil, numeric
		rules = append(rules, beyond)
	}
	peers := c.pods
	if !rule.AnyPeer {
		peers = slices.DeleteFunc(slices.Clone(c.pods), func(p pod) bool { return !slices.Contains(rule.Peers, p.address) })
	}
	for _, group := range groupByPorts(peers, to.Ports) {
		rule.AnyPeer, rule.Blocks, rule.Peers, rule.Ports = false, nil, group.pods, group.ports
		rules = append(rules, rule)
	}
	return rules
}

// peers returns a rule with the peers that a policy names.
func (c *compiler) peers(policy *networking.NetworkPolicy, peers []networking.NetworkPolicyPeer) Rule {
	rule := Rule{Policy: policy.Namespace + "/" + policy.Name, AnyPeer: len(peers) == 0}
	for _, peer := range peers {
		if peer.IPBlock != nil {
			if block, ok := blockOf(peer.IPBlock); ok {
				rule.Blocks = append(rule.Blocks, block)
			}
			continue
		}
		for _, p := range c.pods {
			if c.isPeer(policy.Namespace, peer, p) {
				rule.Peers = append(rule.Peers, p.address)
			}
		}
	}
	slices.SortFunc(rule.Peers, netip.Addr.Compare)
	rule.Peers = slices.Compact(rule.Peers)
	return rule
}

func (c *compiler) isPeer(namespace string, peer networking.NetworkPolicyPeer, p pod) bool {
	if peer.NamespaceSelector == nil {
		if p.Namespace != namespace {
			return false
		}
	} else if !selectorOf(peer.NamespaceSelector).Matches(c.namespaces[p.Namespace]) {
		return false
	}
	return peer.PodSelector == nil || selectorOf(peer.PodSelector).Matches(labels.Set(p.Labels))
}

// selectorOf returns the selector; one that is not valid (the API server refuses it) selects nothing.
func selectorOf(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

// blockOf returns a block of IPv4 addresses; pods have no other.
func blockOf(block *networking.IPBlock) (Block, bool) {
	parsed, err := netip.ParsePrefix(block.CIDR)
	if err != nil || !parsed.Addr().Is4() {
		return Block{}, false
	}
	result := Block{Range: parsed.Masked()}
	for _, text := range block.Except {
		if except, err := netip.ParsePrefix(text); err == nil && except.Addr().Is4() {
			result.Except = append(result.Except, except.Masked())
		}
	}
	return result, true
}

type portGroup struct {
	pods  []netip.Addr
	ports []Port
}

// groupByPorts puts pods together for which ports, with their names looked up in the pod, are the same numbers.
func groupByPorts(pods []pod, ports []networking.NetworkPolicyPort) []portGroup {
	var groups []portGroup
	for _, p := range pods {
		found := numbers(ports, p.Pod)
		if len(found) == 0 {
			continue
		}
		index := slices.IndexFunc(groups, func(g portGroup) bool { return slices.Equal(g.ports, found) })
		if index < 0 {
			index = len(groups)
			groups = append(groups, portGroup{ports: found})
		}
		groups[index].pods = append(groups[index].pods, p.address)
	}
	return groups
}

func hasNames(ports []networking.NetworkPolicyPort) bool {
	return slices.ContainsFunc(ports, func(p networking.NetworkPolicyPort) bool {
		return p.Port != nil && p.Port.Type == intstr.String
	})
}

// numbers returns ports as numbers. A name is looked up in the pod's containers (nil: no pod, names give nothing).
func numbers(ports []networking.NetworkPolicyPort, p *v1.Pod) []Port {
	var result []Port
	for _, port := range ports {
		protocol := v1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		switch {
		case port.Port == nil:
			result = append(result, Port{Protocol: protocol})
		case port.Port.Type == intstr.Int:
			last := port.Port.IntVal
			if port.EndPort != nil {
				last = *port.EndPort
			}
			result = append(result, Port{protocol, port.Port.IntVal, last})
		case p != nil:
			for _, number := range namedPorts(p, port.Port.StrVal, protocol) {
				result = append(result, Port{protocol, number, number})
			}
		}
	}
	slices.SortFunc(result, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	return slices.Compact(result)
}

// namedPorts returns the numbers that containers (and init containers that go on as sidecars) give a name.
func namedPorts(p *v1.Pod, name string, protocol v1.Protocol) []int32 {
	var found []int32
	for _, container := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		for _, port := range container.Ports {
			if port.Name == name && cmp.Or(port.Protocol, v1.ProtocolTCP) == protocol {
				found = append(found, port.ContainerPort)
			}
		}
	}
	return found
}

func addresses(pods []pod) []netip.Addr {
	found := make([]netip.Addr, 0, len(pods))
	for _, p := range pods {
		found = append(found, p.address)
	}
	return found
}
