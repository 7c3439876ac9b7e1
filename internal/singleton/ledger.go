package singleton

import "time"

// GateState is the answer of a gate to a proxy.
type GateState struct {
	// Proxy is the proxy that the answer is for: another proxy may have had its PID before.
	Proxy string
	// Gate is the gate that answers.
	Gate string
	// Probe is the number of the last probe that the gate has received; 0 if it has forgotten the proxy.
	Probe uint64
	// Received is the number of the last message of the proxy that the gate has received.
	Received uint64
	// Begun is the number of the last message of the proxy that the instance has begun.
	Begun uint64
	// Forgotten: the gate does not know which messages it has received from the proxy.
	Forgotten bool
}

// Probe asks a gate whether it is there.
type Probe struct {
	Number uint64
	// Next is the number of the first message whose outcome the proxy does not know. All earlier messages are settled,
	// and can no longer be begun.
	Next uint64
	// Known: the gate has answered the proxy before.
	Known bool
}

// Ledger is the knowledge of a gate about the proxies of its instance. A Contact is the way to reach a proxy.
type Ledger[Contact any] struct {
	Gate    string
	proxies map[string]*account[Contact]
}

// account is the knowledge of a gate about a proxy.
type account[Contact any] struct {
	contact                      Contact
	probe, next, received, begun uint64
	lastMessage                  time.Duration
}

// A gate that knows more than maxKnown proxies forgets proxies that were silent for forgetAfter.
const (
	maxKnown    = 1000
	forgetAfter = time.Minute
)

// Probe answers a probe.
func (l *Ledger[C]) Probe(now time.Duration, proxy string, contact C, p Probe) GateState {
	a := l.proxies[proxy]
	switch {
	case p.Next == 0: // the probe is not from a proxy
		return GateState{Proxy: proxy, Gate: l.Gate, Forgotten: true}
	case a == nil && p.Known:
		return GateState{Proxy: proxy, Gate: l.Gate, Forgotten: true}
	case a == nil:
		l.forget(now)
		a = &account[C]{received: p.Next - 1, begun: p.Next - 1}
		if l.proxies == nil {
			l.proxies = map[string]*account[C]{}
		}
		l.proxies[proxy] = a
	}
	a.lastMessage, a.contact = now, contact
	a.probe, a.next = max(a.probe, p.Number), max(a.next, p.Next)
	a.received, a.begun = max(a.received, a.next-1), max(a.begun, a.next-1)
	return l.state(proxy, a)
}

// forget makes room for another proxy. It forgets idle proxies. A forgotten proxy may not know the outcome of each
// message: the answer to its next probe says that it is forgotten.
func (l *Ledger[C]) forget(now time.Duration) {
	if len(l.proxies) < maxKnown {
		return
	}
	for proxy, a := range l.proxies {
		if a.received == a.begun && now-a.lastMessage > forgetAfter {
			delete(l.proxies, proxy)
		}
	}
}

// Receive reports whether a message is the next message of its proxy, so that the instance gets it.
func (l *Ledger[C]) Receive(now time.Duration, proxy string, number uint64) bool {
	a := l.proxies[proxy]
	if a == nil || number != a.received+1 {
		return false
	}
	a.received, a.lastMessage = number, now
	return true
}

// Begin reports whether the instance handles a message that it has received, and returns the answer to the proxy.
// mayHandle says whether the instance may handle messages. Begin also reports false if the proxy has refused the
// message since, or if an earlier message is missing, since messages are begun without gaps. A message that is not
// begun counts as not received, so that it is sent again.
func (l *Ledger[C]) Begin(now time.Duration, proxy string, number uint64, mayHandle bool) (GateState, bool) {
	a := l.proxies[proxy]
	switch {
	case a == nil || number <= a.begun:
		return GateState{}, false
	case !mayHandle || number != a.begun+1:
		a.received = a.begun
		return GateState{}, false
	}
	a.begun, a.received, a.lastMessage = number, max(a.received, number), now
	return l.state(proxy, a), true
}

func (l *Ledger[C]) state(proxy string, a *account[C]) GateState {
	return GateState{Proxy: proxy, Gate: l.Gate, Probe: a.probe, Received: a.received, Begun: a.begun}
}

// Waiting returns the proxies that have sent messages which the instance has not begun.
func (l *Ledger[C]) Waiting() (proxies []C) {
	for _, a := range l.proxies {
		if a.received > a.begun {
			proxies = append(proxies, a.contact)
		}
	}
	return proxies
}

// Begun returns the number of the last message that the instance has begun, by proxy.
func (l *Ledger[C]) Begun() map[string]uint64 {
	begun := make(map[string]uint64, len(l.proxies))
	for proxy, a := range l.proxies {
		begun[proxy] = a.begun
	}
	return begun
}
