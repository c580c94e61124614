package policy

import (
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func ip(text string) netip.Addr { return netip.MustParseAddr(text) }

func ips(texts ...string) []netip.Addr {
	var found []netip.Addr
	for _, text := range texts {
		found = append(found, ip(text))
	}
	return found
}

// aPod returns a running pod; labels are words like "app=web", ports words like "http:80" or "dns:53/UDP".
func aPod(namespace, name, address string, words ...string) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Status:     v1.PodStatus{Phase: v1.PodRunning, PodIP: address},
	}
	container := v1.Container{Name: "main"}
	for _, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			p.Labels[key] = value
			continue
		}
		portName, rest, _ := strings.Cut(word, ":")
		digits, protocol, _ := strings.Cut(rest, "/")
		number, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			panic(err)
		}
		container.Ports = append(container.Ports, v1.ContainerPort{
			Name: portName, ContainerPort: int32(number), Protocol: v1.Protocol(protocol),
		})
	}
	p.Spec.Containers = []v1.Container{container}
	return p
}

func aNamespace(name string, labels map[string]string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func ingressPolicy(namespace, name, app string, rules ...networking.NetworkPolicyIngressRule) *networking.NetworkPolicy {
	return &networking.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: networking.NetworkPolicySpec{
			PodSelector: *byApp(app), Ingress: rules, PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress},
		},
	}
}

func egressPolicy(namespace, name, app string, rules ...networking.NetworkPolicyEgressRule) *networking.NetworkPolicy {
	return &networking.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: networking.NetworkPolicySpec{
			PodSelector: *byApp(app), Egress: rules, PolicyTypes: []networking.PolicyType{networking.PolicyTypeEgress},
		},
	}
}

// byApp selects by the label app; "" selects all.
func byApp(app string) *metav1.LabelSelector {
	if app == "" {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func tcp(port intstr.IntOrString) networking.NetworkPolicyPort {
	protocol := v1.ProtocolTCP
	return networking.NetworkPolicyPort{Protocol: &protocol, Port: &port}
}

func podPeer(app string) networking.NetworkPolicyPeer {
	return networking.NetworkPolicyPeer{PodSelector: byApp(app)}
}

var (
	web    = aPod("a", "web", "10.0.0.1", "app=web", "http:80")
	web2   = aPod("a", "web2", "10.0.0.2", "app=web", "http:8080")
	client = aPod("a", "client", "10.0.0.3", "app=client")
	alien  = aPod("b", "client", "10.0.0.4", "app=client")
)

func cluster(policies ...*networking.NetworkPolicy) Cluster {
	return Cluster{
		Pods:       []*v1.Pod{alien, client, web2, web},
		Namespaces: []*v1.Namespace{aNamespace("a", map[string]string{"team": "red"}), aNamespace("b", map[string]string{"team": "blue"})},
		Policies:   policies,
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func TestWithoutPoliciesNothingIsIsolated(t *testing.T) {
	got := Compile(cluster())
	equal(t, got.Ingress, Direction{})
	equal(t, got.Egress, Direction{})
}

func TestAPolicyWithoutRulesIsolatesThePodsThatItSelects(t *testing.T) {
	got := Compile(cluster(ingressPolicy("a", "deny", "web")))
	equal(t, got.Ingress, Direction{Isolated: ips("10.0.0.1", "10.0.0.2")})
	equal(t, got.Egress, Direction{})
}

func TestAPolicySelectsPodsOfItsOwnNamespaceOnly(t *testing.T) {
	got := Compile(cluster(ingressPolicy("a", "deny", "client")))
	equal(t, got.Ingress.Isolated, ips("10.0.0.3"))
}

func TestARuleWithoutPeersAndPortsAllowsAll(t *testing.T) {
	got := Compile(cluster(ingressPolicy("a", "open", "web", networking.NetworkPolicyIngressRule{})))
	equal(t, got.Ingress.Allowed, []Rule{{Policy: "a/open", Pods: ips("10.0.0.1", "10.0.0.2"), AnyPeer: true, AnyPort: true}})
}

func TestPeers(t *testing.T) {
	red := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	cases := map[string]struct {
		peer networking.NetworkPolicyPeer
		want []netip.Addr
	}{
		"pods of the policy's namespace": {podPeer("client"), ips("10.0.0.3")},
		"all pods of its namespace":      {podPeer(""), ips("10.0.0.1", "10.0.0.2", "10.0.0.3")},
		"all pods of all namespaces":     {networking.NetworkPolicyPeer{NamespaceSelector: byApp("")}, ips("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")},
		"all pods of some namespaces":    {networking.NetworkPolicyPeer{NamespaceSelector: red}, ips("10.0.0.1", "10.0.0.2", "10.0.0.3")},
		"some pods of some namespaces": {
			networking.NetworkPolicyPeer{NamespaceSelector: byApp(""), PodSelector: byApp("client")}, ips("10.0.0.3", "10.0.0.4"),
		},
		"none": {podPeer("nobody"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rule := networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{c.peer}}
			got := Compile(cluster(ingressPolicy("a", "p", "web", rule))).Ingress.Allowed
			equal(t, got, []Rule{{Policy: "a/p", Pods: ips("10.0.0.1", "10.0.0.2"), Peers: c.want, AnyPort: true}})
		})
	}
}

func TestAPeerThatSeveralSelectorsNameCountsOnce(t *testing.T) {
	rule := networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{podPeer("client"), podPeer("")}}
	got := Compile(cluster(ingressPolicy("a", "p", "web", rule))).Ingress.Allowed
	equal(t, got[0].Peers, ips("10.0.0.1", "10.0.0.2", "10.0.0.3"))
}

func TestBlocksHaveHolesAndAreIPv4(t *testing.T) {
	rule := networking.NetworkPolicyEgressRule{To: []networking.NetworkPolicyPeer{
		{IPBlock: &networking.IPBlock{CIDR: "192.168.1.9/16", Except: []string{"192.168.7.0/24"}}},
		{IPBlock: &networking.IPBlock{CIDR: "fd00::/8"}},
	}}
	got := Compile(cluster(egressPolicy("a", "p", "client", rule))).Egress
	equal(t, got, Direction{
		Isolated: ips("10.0.0.3"),
		Allowed: []Rule{{Policy: "a/p", Pods: ips("10.0.0.3"), AnyPort: true, Blocks: []Block{
			{netip.MustParsePrefix("192.168.0.0/16"), []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24")}},
		}}},
	})
}

func TestANamedPortOfIngressIsTheSelectedPodsOwn(t *testing.T) {
	rule := networking.NetworkPolicyIngressRule{Ports: []networking.NetworkPolicyPort{tcp(intstr.FromString("http"))}}
	got := Compile(cluster(ingressPolicy("a", "p", "web", rule))).Ingress.Allowed
	equal(t, got, []Rule{
		{Policy: "a/p", Pods: ips("10.0.0.1"), AnyPeer: true, Ports: []Port{{v1.ProtocolTCP, 80, 80}}},
		{Policy: "a/p", Pods: ips("10.0.0.2"), AnyPeer: true, Ports: []Port{{v1.ProtocolTCP, 8080, 8080}}},
	})
}

func TestANamedPortOfEgressIsThePeersOwn(t *testing.T) {
	rule := networking.NetworkPolicyEgressRule{
		To:    []networking.NetworkPolicyPeer{podPeer("web"), {IPBlock: &networking.IPBlock{CIDR: "192.168.0.0/16"}}},
		Ports: []networking.NetworkPolicyPort{tcp(intstr.FromString("http")), tcp(intstr.FromInt32(443))},
	}
	got := Compile(cluster(egressPolicy("a", "p", "client", rule))).Egress.Allowed
	equal(t, got, []Rule{
		{Policy: "a/p", Pods: ips("10.0.0.3"), Blocks: []Block{{Range: netip.MustParsePrefix("192.168.0.0/16")}}, Ports: []Port{{v1.ProtocolTCP, 443, 443}}},
		{Policy: "a/p", Pods: ips("10.0.0.3"), Peers: ips("10.0.0.1"), Ports: []Port{{v1.ProtocolTCP, 80, 80}, {v1.ProtocolTCP, 443, 443}}},
		{Policy: "a/p", Pods: ips("10.0.0.3"), Peers: ips("10.0.0.2"), Ports: []Port{{v1.ProtocolTCP, 443, 443}, {v1.ProtocolTCP, 8080, 8080}}},
	})
}

func TestANameThatNoPodHasAllowsNothing(t *testing.T) {
	rule := networking.NetworkPolicyIngressRule{Ports: []networking.NetworkPolicyPort{tcp(intstr.FromString("smtp"))}}
	got := Compile(cluster(ingressPolicy("a", "p", "web", rule))).Ingress
	equal(t, got, Direction{Isolated: ips("10.0.0.1", "10.0.0.2")})
}

func TestANameOfAnotherProtocolIsAnotherName(t *testing.T) {
	udp := v1.ProtocolUDP
	name := intstr.FromString("http")
	rule := networking.NetworkPolicyIngressRule{Ports: []networking.NetworkPolicyPort{{Protocol: &udp, Port: &name}}}
	got := Compile(cluster(ingressPolicy("a", "p", "web", rule))).Ingress.Allowed
	equal(t, got, nil)
}

func TestPortsWithoutProtocolAreTCPAndRangesEndWhereTheySay(t *testing.T) {
	from, to := intstr.FromInt32(8000), int32(8010)
	rule := networking.NetworkPolicyIngressRule{Ports: []networking.NetworkPolicyPort{{Port: &from, EndPort: &to}}}
	got := Compile(cluster(ingressPolicy("a", "p", "web", rule))).Ingress.Allowed
	equal(t, got[0].Ports, []Port{{v1.ProtocolTCP, 8000, 8010}})
}

func TestPodsWithoutAnAddressOfTheirOwnAreLeftOut(t *testing.T) {
	pending := aPod("a", "pending", "", "app=web")
	onHost := aPod("a", "host", "10.244.0.1", "app=web")
	onHost.Spec.HostNetwork = true
	done := aPod("a", "done", "10.0.0.9", "app=web")
	done.Status.Phase = v1.PodSucceeded
	got := Compile(Cluster{
		Pods: []*v1.Pod{pending, onHost, done, web}, Policies: []*networking.NetworkPolicy{ingressPolicy("a", "deny", "web")},
	})
	equal(t, got.Ingress.Isolated, ips("10.0.0.1"))
}

func TestSeveralPoliciesAddUp(t *testing.T) {
	one := ingressPolicy("a", "one", "web", networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{podPeer("client")}})
	two := ingressPolicy("a", "two", "web", networking.NetworkPolicyIngressRule{From: []networking.NetworkPolicyPeer{podPeer("web")}})
	got := Compile(cluster(two, one)).Ingress
	equal(t, got.Isolated, ips("10.0.0.1", "10.0.0.2"))
	equal(t, []string{got.Allowed[0].Policy, got.Allowed[1].Policy}, []string{"a/one", "a/two"})
}
