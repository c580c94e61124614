package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	core "k8s.io/client-go/listers/core/v1"
	networking "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"soperator-pulumi/node/gate"
)

// Changes come in bursts (a StatefulSet's pods): what comes within this time is applied at once.
const gather = 20 * time.Millisecond

// A table that someone else has removed comes back after this time.
const renew = time.Minute

const (
	applyTimeout = 10 * time.Second
	retryAfter   = time.Second
)

var errStarting = errors.New("the policies are not yet known")

// Applier puts a ruleset into force.
type Applier interface {
	Apply(ctx context.Context, ruleset Ruleset) error
}

// Enforcer keeps what is enforced equal to what the API server has.
type Enforcer struct {
	factory    informers.SharedInformerFactory
	pods       core.PodLister
	namespaces core.NamespaceLister
	policies   networking.NetworkPolicyLister
	applier    Applier
	changed    chan struct{}
	sandboxes  sandboxes
	mutex      sync.Mutex
	problem    error
	inForce    Ruleset
	next       chan struct{} // closed when inForce was replaced
}

var _ gate.Watcher = &Enforcer{}

// NewEnforcer returns an enforcer that watches nothing before Run.
func NewEnforcer(client kubernetes.Interface, applier Applier) *Enforcer {
	factory := informers.NewSharedInformerFactory(client, 0)
	e := &Enforcer{
		factory:    factory,
		pods:       factory.Core().V1().Pods().Lister(),
		namespaces: factory.Core().V1().Namespaces().Lister(),
		policies:   factory.Networking().V1().NetworkPolicies().Lister(),
		applier:    applier,
		changed:    make(chan struct{}, 1),
		problem:    errStarting,
		next:       make(chan struct{}),
	}
	return e
}

// Problem returns nil when the policies of the API server are in force, else why they are not.
func (e *Enforcer) Problem() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.problem
}

// Started takes note of a pod's address and returns when the policies of the pod are in force for it.
func (e *Enforcer) Started(ctx context.Context, sandbox gate.Sandbox) error {
	e.sandboxes.started(sandbox)
	e.signal()
	for {
		e.mutex.Lock()
		address, problem, next := e.inForce.Pods[keyOf(sandbox)], e.problem, e.next
		e.mutex.Unlock()
		if address == sandbox.Address && problem == nil {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			e.sandboxes.ended(sandbox)
			return fmt.Errorf("the policies of pod %s/%s are not in force: %w", sandbox.Namespace, sandbox.Pod,
				errors.Join(problem, ctx.Err()))
		}
	}
}

// Ended takes note that a pod's address is no longer its own.
func (e *Enforcer) Ended(sandbox gate.Sandbox) {
	e.sandboxes.ended(sandbox)
	e.signal()
}

// signal asks for a look at what has changed.
func (e *Enforcer) signal() {
	select {
	case e.changed <- struct{}{}:
	default: // one is waiting, and will see this change too
	}
}

// Run watches and enforces until ctx ends.
func (e *Enforcer) Run(ctx context.Context) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { e.signal() },
		UpdateFunc: func(any, any) { e.signal() },
		DeleteFunc: func(any) { e.signal() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		e.factory.Core().V1().Pods().Informer(),
		e.factory.Core().V1().Namespaces().Informer(),
		e.factory.Networking().V1().NetworkPolicies().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	e.factory.Start(ctx.Done())
	defer e.factory.Shutdown()
	for kind, synced := range e.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.Join(ctx.Err(), errors.New("never got the list of "+kind.String()))
		}
	}
	ticker := time.NewTicker(renew)
	defer ticker.Stop()
	applied := false
	for {
		ruleset, err := e.compile()
		if err == nil && !(applied && reflect.DeepEqual(e.inForce, ruleset)) {
			err = e.apply(ctx, ruleset)
		}
		applied = err == nil
		e.publish(ruleset, err)
		if err != nil {
			klog.ErrorS(err, "policies are not in force")
			time.AfterFunc(retryAfter, e.signal)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			applied = false
		case <-e.changed:
			time.Sleep(gather)
		}
	}
}

// publish tells those that wait what is in force.
func (e *Enforcer) publish(ruleset Ruleset, err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.problem = err
	if err == nil {
		e.inForce = ruleset
	}
	close(e.next)
	e.next = make(chan struct{})
}

func (e *Enforcer) compile() (Ruleset, error) {
	pods, podsErr := e.pods.List(labels.Everything())
	namespaces, namespacesErr := e.namespaces.List(labels.Everything())
	policies, policiesErr := e.policies.List(labels.Everything())
	if err := errors.Join(podsErr, namespacesErr, policiesErr); err != nil {
		return Ruleset{}, err
	}
	return Compile(Cluster{e.sandboxes.apply(pods), namespaces, policies}), nil
}

func (e *Enforcer) apply(ctx context.Context, ruleset Ruleset) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	started := time.Now()
	err := e.applier.Apply(ctx, ruleset)
	klog.V(1).InfoS("applied", "isolatedForIngress", len(ruleset.Ingress.Isolated), "isolatedForEgress",
		len(ruleset.Egress.Isolated), "rules", len(ruleset.Ingress.Allowed)+len(ruleset.Egress.Allowed),
		"took", time.Since(started).Round(time.Millisecond), "err", err)
	return err
}
