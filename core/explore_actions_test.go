package core

import "fmt"

// action is one thing that can happen next.
type action struct {
	what byte
	p, i int8
}

func (a action) String() string {
	names := map[byte]string{
		'a': "client %[2]d of p%[1]d asks", 'r': "client %[2]d of p%[1]d releases", 'c': "client %[2]d of p%[1]d cancels",
		'e': "client %[2]d of p%[1]d re-enters", 'D': "Redis runs p%d's command", 'x': "p%d's command runs, its reply is lost",
		'y': "p%d's command never arrives", 'z': "p%d's command is late", 'L': "late command %[2]d arrives",
		'P': "p%d hears the reply", 'N': "p%d hears a message", 'n': "a message to p%d is lost", 'S': "p%d is subscribed",
		's': "p%d hears that it is subscribed", 'T': "p%d looks at the clock", '+': "time passes", '!': "time passes over p%d",
		'G': "p%d forces a release", 'F': "the key is deleted", 'K': "p%d is killed",
	}
	text := names[a.what]
	if a.what == 'a' || a.what == 'r' || a.what == 'c' || a.what == 'e' || a.what == 'L' {
		return fmt.Sprintf(text, a.p, a.i)
	}
	if a.what == '+' || a.what == 'F' {
		return text
	}
	return fmt.Sprintf(text, a.p)
}

// next lists what can happen.
func (w *world) next(list []action) []action {
	add := func(what byte, p, i int) { list = append(list, action{what, int8(p), int8(i)}) }
	s, spent := w.s, &w.spent
	ticking := false
	for p := range w.processes {
		one := &w.processes[p]
		if len(one.out) > 0 {
			add('D', p, 0)
			if !one.dead && spent.faults < s.faults {
				add('x', p, 0)
				add('y', p, 0)
				add('z', p, 0)
			}
		}
		if one.dead {
			continue
		}
		for i, c := range one.clients {
			switch {
			case c.state == absent && s.clients[p][i].Owner != 0:
				add('a', p, i)
			case c.state == holdingLock && c.re == 0:
				add('r', p, i)
				if spent.reentries < s.reentries {
					add('e', p, i)
				}
			case c.state == asking && spent.cancels < s.cancels:
				add('c', p, i)
			}
		}
		if len(one.in) > 0 {
			add('P', p, 0)
		}
		if one.notes > 0 {
			add('N', p, 0)
			if spent.faults < s.faults {
				add('n', p, 0)
			}
		}
		switch one.sub {
		case 1:
			add('S', p, 0)
		case 2:
			add('s', p, 0)
		}
		if wake, ok := one.lock.NextWake(); ok && wake <= w.now {
			ticking = true
			add('T', p, 0)
			if _, ok := w.tomorrow(); ok && spent.pauses < s.pauses {
				add('!', p, 0)
			}
		}
		if spent.forces < s.forces {
			add('G', p, 0)
		}
		if spent.kills < s.kills {
			add('K', p, 0)
		}
	}
	for i := range w.late {
		add('L', 0, i)
	}
	if spent.flushes < s.flushes && w.held.term != 0 {
		add('F', 0, 0)
	}
	if _, ok := w.tomorrow(); ok && !ticking {
		add('+', 0, 0)
	}
	return list
}

// tomorrow is when something happens by itself.
func (w *world) tomorrow() (at Instant, ok bool) {
	soon := func(t Instant) {
		if t > w.now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	for i := range w.processes {
		if p := &w.processes[i]; !p.dead {
			if wake, wakes := p.lock.NextWake(); wakes {
				soon(wake)
			}
		}
	}
	if w.held.term != 0 {
		soon(w.expiresAt)
	}
	return at, ok
}

// do lets an action happen.
func (w *world) do(a action) {
	p := &w.processes[a.p]
	i := int(a.p)
	client := func(what byte) ref { return ref{a.i, what} }
	switch a.what {
	case 'a':
		p.clients[a.i].state = asking
		t := w.s.clients[a.p][a.i]
		p.ids++
		t.ID, t.Ref = p.ids, client('a')
		p.clients[a.i].request = t.ID
		w.event(i, func(l *Lock) { l.Acquire(w.now, t) })
	case 'e':
		w.spent.reentries++
		p.clients[a.i].re++
		t := w.s.clients[a.p][a.i]
		p.ids++
		t.ID, t.Ref = p.ids, client('e')
		w.event(i, func(l *Lock) { l.Acquire(w.now, t) })
	case 'r':
		p.clients[a.i].state = givingBack
		w.event(i, func(l *Lock) { l.Release(w.now, p.clients[a.i].id, 0, Exclusive, client('r')) })
	case 'c':
		w.spent.cancels++
		w.event(i, func(l *Lock) { l.Cancel(w.now, p.clients[a.i].request, 0, client('c')) })
	case 'G':
		w.spent.forces++
		w.event(i, func(l *Lock) { l.ForceRelease(w.now, Exclusive, ref{-1, 'f'}) })
	case 'D', 'x', 'y', 'z':
		c := p.out[0]
		p.out = p.out[1:]
		r := Result{Outcome: Failed, Err: errNoReply, Transient: true, Unsure: true}
		switch a.what {
		case 'D':
			r = w.execute(a.p, c)
		case 'x':
			w.execute(a.p, c)
		case 'z':
			w.late = append(w.late, lateCommand{a.p, c})
		}
		if a.what != 'D' {
			w.spent.faults++
		}
		p.in = append(p.in, result{c.Seq, r})
	case 'L':
		late := w.late[a.i]
		rest := append([]lateCommand{}, w.late[:a.i]...)
		w.late = append(rest, w.late[a.i+1:]...)
		w.execute(late.process, late.command)
	case 'P':
		r := p.in[0]
		p.in = p.in[1:]
		w.event(i, func(l *Lock) { l.Replied(w.now, r.seq, r.Result) })
	case 'N':
		p.notes--
		w.event(i, func(l *Lock) { l.Signal(w.now) })
	case 'n':
		w.spent.faults++
		p.notes--
	case 'S':
		p.sub = 2
	case 's':
		p.sub = 3
		w.event(i, func(l *Lock) { l.Subscribed(w.now, 0) })
	case 'T':
		w.event(i, func(l *Lock) { l.Tick(w.now) })
	case '+', '!':
		if a.what == '!' {
			w.spent.pauses++
		}
		w.now, _ = w.tomorrow()
		w.expire()
		w.trustedTogether()
	case 'F':
		w.spent.flushes++
		w.held = fieldOf{}
	case 'K':
		w.spent.kills++
		p.dead, p.in, p.notes, p.sub = true, nil, 0, 0
	}
}

func (w *world) trustedTogether() {
	if w.trusts(0) && w.trusts(1) && w.spent.forces+w.spent.flushes == 0 {
		w.violated("both processes trust their lease")
	}
}

// settle runs a world to its end without any more faults: everybody who waits must be
// served, and nothing may be left.
func (w *world) settle() string {
	for range 3000 {
		if w.wrong != "" {
			return w.wrong
		}
		var a action
		for _, candidate := range w.next(nil) {
			switch candidate.what {
			case 'D', 'P', 'N', 'S', 's', 'T', 'r', '+', 'L':
				if a.what == 0 || a.what == '+' {
					a = candidate
				}
			}
		}
		if a.what == 0 {
			break
		}
		w.do(a)
	}
	for i := range w.processes {
		p := &w.processes[i]
		if p.dead {
			continue
		}
		for id, c := range p.clients {
			if c.state != absent && c.state != finished || c.re != 0 {
				return fmt.Sprintf("client %d of p%d is never served: it stays in state %d", id, i, c.state)
			}
		}
		if !p.lock.Idle() {
			return fmt.Sprintf("p%d never comes to rest", i)
		}
	}
	if w.held.term != 0 {
		return "the key stays"
	}
	return w.wrong
}
