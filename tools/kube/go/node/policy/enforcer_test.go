package policy

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"soperator-pulumi/node/gate"
)

// recorder stands for the kernel: it remembers what was applied, and fails as long as it is told to.
type recorder struct {
	mutex   sync.Mutex
	last    Ruleset
	count   int
	failure error
}

func (r *recorder) Apply(_ context.Context, ruleset Ruleset) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.failure != nil {
		return r.failure
	}
	r.last, r.count = ruleset, r.count+1
	return nil
}

func (r *recorder) set(failure error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.failure = failure
}

func (r *recorder) isolated() []netip.Addr {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.last.Ingress.Isolated
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func start(t *testing.T, kernel *recorder) (*Enforcer, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(aNamespace("a", nil))
	enforcer := NewEnforcer(client, kernel)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- enforcer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	return enforcer, client
}

func create(t *testing.T, client *fake.Clientset, pod *v1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(context.Background(), pod.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deny(t *testing.T, client *fake.Clientset) {
	t.Helper()
	policy := ingressPolicy("a", "deny", "web")
	if _, err := client.NetworkingV1().NetworkPolicies("a").Create(context.Background(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestPoliciesAreEnforcedAsTheyComeAndGo(t *testing.T) {
	kernel := &recorder{}
	enforcer, client := start(t, kernel)
	create(t, client, web)
	deny(t, client)
	eventually(t, "the pod is isolated", func() bool { return len(kernel.isolated()) == 1 })
	equal(t, kernel.isolated(), ips("10.0.0.1"))
	if err := client.NetworkingV1().NetworkPolicies("a").Delete(context.Background(), "deny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is free again", func() bool { return len(kernel.isolated()) == 0 })
	equal(t, enforcer.Problem(), nil)
}

func TestAFailureIsReportedAndTriedAgain(t *testing.T) {
	kernel := &recorder{failure: errors.New("no netlink today")}
	enforcer, client := start(t, kernel)
	create(t, client, web)
	deny(t, client)
	eventually(t, "the failure is reported", func() bool { return enforcer.Problem() != nil && enforcer.Problem() != errStarting })
	kernel.set(nil)
	eventually(t, "it is in force", func() bool { return enforcer.Problem() == nil && len(kernel.isolated()) == 1 })
}

func TestAPodWaitsUntilItsPoliciesAreInForce(t *testing.T) {
	kernel := &recorder{}
	enforcer, client := start(t, kernel)
	deny(t, client)
	pending := web.DeepCopy()
	pending.Status = v1.PodStatus{Phase: v1.PodPending}
	pending.UID = "1"
	sandbox := gate.Sandbox{ID: "s", Namespace: "a", Pod: "web", UID: "1", Address: ip("10.0.0.7")}
	started := make(chan error)
	go func() { started <- enforcer.Started(context.Background(), sandbox) }()
	create(t, client, pending) // the API server's word may come after the runtime's
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	equal(t, kernel.isolated(), ips("10.0.0.7"))
	enforcer.Ended(sandbox)
	eventually(t, "the address is free", func() bool { return len(kernel.isolated()) == 0 })
}

func TestAPodThatTheAPIServerDoesNotKnowDoesNotStart(t *testing.T) {
	enforcer, _ := start(t, &recorder{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := enforcer.Started(ctx, gate.Sandbox{ID: "s", Namespace: "a", Pod: "ghost", Address: ip("10.0.0.7")})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
