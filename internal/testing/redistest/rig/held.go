package rig

import "slices"

// Held is a command to be held back, see [Proxy.Hold].
type Held struct {
	match  func(cmd []string) bool
	silent bool
	target string

	caught chan struct{} // closed when the fields below are set
	cmd    []string
	raw    []byte
}

// Hold keeps the next command that matches from the server until [Held.Release]. All
// others pass. The client never gets a reply to it; the mode, [Lost] by default, says what
// happens to its connection.
//
// match is called on goroutines of the proxy and must not call its methods.
func (p *Proxy) Hold(match func(cmd []string) bool, mode ...Mode) *Held {
	p.gate.RLock()
	target := p.target
	p.gate.RUnlock()
	h := &Held{match: match, silent: slices.Contains(mode, Silent), target: target, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h
}

// Caught reports whether a command is held, and returns its name and arguments. In mode [Lost]
// the client's connection is cut by then.
func (h *Held) Caught() (cmd []string, caught bool) {
	select {
	case <-h.caught:
		return h.cmd, true
	default:
		return nil, false
	}
}

// Release delivers a command that was caught to the server, past the proxy and its faults, on a connection of its own,
// as [Do] does. It returns the reply, which may be an error reply. Each further Release delivers the command once more.
func (h *Held) Release() (Value, error) { return send(h.target, h.raw) }

// takeHold returns the hold that applies to a command, or nil.
func (p *Proxy) takeHold(cmd []string) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.holds, func(h *Held) bool { return h.match(cmd) })
	if i < 0 {
		return nil
	}
	h := p.holds[i]
	p.holds = slices.Delete(p.holds, i, i+1)
	return h
}
