package core_test

import (
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// move is one thing that can happen next.
type move struct {
	what byte
	p, i int8
}

var moveNames = map[byte]string{
	'a': "client $i of $p asks", 'r': "client $i of $p gives back", 'q': "client $i of $p gives back a read hold",
	'c': "client $i of $p cancels", 'e': "client $i of $p re-enters", 'O': "client $i of $p dies",
	'D': "Redis runs $p's command", 'x': "$p's command runs, its reply is lost", 'y': "$p's command never arrives",
	'z': "$p's command is late", 'h': "only part $i runs $p's command", 'o': "Redis cannot run $p's command now",
	'v': "Redis rejects $p's command", 'L': "late command $i arrives", 'P': "$p hears the reply",
	'C': "$p crashes over the reply, and hears it again", 'k': "$p crashes after the reply", 'R': "$p is restarted",
	'N': "$p hears a message", 'n': "a message to $p is lost", 'S': "$p is subscribed", 's': "$p hears that it is subscribed",
	'T': "$p looks at the clock", '+': "time passes", '!': "time passes over $p", 'G': "$p forces a release",
	'F': "part $i is deleted", 'K': "$p is killed", 'X': "$p closes", 'E': "Redis comes back empty",
}

func (a move) String() string {
	return strings.NewReplacer("$p", names[a.p], "$i", strconv.Itoa(int(a.i))).Replace(moveNames[a.what])
}

// moves lists what can happen.
func (m *microcosm) moves(list []move) []move {
	add := func(what byte, p, i int) { list = append(list, move{what, int8(p), int8(i)}) }
	most, spent := &m.s.most, &m.spent
	ticking := false
	for p := range m.peers {
		one := &m.peers[p]
		list = m.onTheWay(list, int8(p))
		if one.dead {
			continue
		}
		if one.stalled {
			add('R', p, 0)
			continue
		}
		for i := range one.callers {
			list = m.wishes(list, int8(p), int8(i))
		}
		if len(one.in) > 0 {
			add('P', p, 0)
			if spent.crashes < most.crashes {
				add('C', p, 0)
				add('k', p, 0)
			}
		}
		if one.notes > 0 {
			add('N', p, 0)
			if spent.faults < most.faults {
				add('n', p, 0)
			}
		}
		switch one.sub {
		case subscribing:
			add('S', p, 0)
		case unconfirmed:
			add('s', p, 0)
		}
		if wake, ok := one.lock.NextWake(); ok && wake <= m.now {
			ticking = true
			add('T', p, 0)
			if _, ok := m.tomorrow(); ok && spent.pauses < most.pauses {
				add('!', p, 0)
			}
		}
		if spent.forces < most.forces {
			add('G', p, 0)
		}
		if spent.kills < most.kills {
			add('K', p, 0)
		}
		if spent.closes < most.closes && !one.closed {
			add('X', p, 0)
		}
	}
	for i := range m.late {
		add('L', 0, i)
	}
	for part := range m.redis.Parts() {
		if spent.flushes < most.flushes && !m.redis.Part(part).Free() {
			add('F', 0, part)
		}
	}
	if spent.restarts < most.restarts {
		add('E', 0, 0)
	}
	if _, ok := m.tomorrow(); ok && !ticking && (m.calm || most.times == 0 || spent.times < most.times && !m.busy()) {
		add('+', 0, 0)
	}
	return list
}

// busy reports whether anything is on its way.
func (m *microcosm) busy() bool {
	for i := range m.peers {
		p := &m.peers[i]
		if len(p.out) > 0 || !p.dead && (len(p.in) > 0 || p.notes > 0 || p.stalled || p.sub == subscribing || p.sub == unconfirmed) {
			return true
		}
	}
	return false
}

// onTheWay is what can become of a process's next command.
func (m *microcosm) onTheWay(list []move, p int8) []move {
	one := &m.peers[p]
	if len(one.out) == 0 {
		return list
	}
	list = append(list, move{'D', p, 0})
	if !one.dead && m.spent.faults < m.s.most.faults {
		list = append(list, move{'x', p, 0}, move{'y', p, 0}, move{'z', p, 0})
		if c := &one.out[0]; m.s.kind.Parts && (c.Kind != core.Acquire || c.Count != 1) {
			list = append(list, move{'h', p, 0}, move{'h', p, 1})
		}
	}
	if !one.dead && m.spent.errors < m.s.most.errors {
		list = append(list, move{'o', p, 0}, move{'v', p, 0})
	}
	return list
}

// wishes are what a client may want next.
func (m *microcosm) wishes(list []move, p, i int8) []move {
	c := &m.peers[p].callers[i]
	add := func(what byte) { list = append(list, move{what, p, i}) }
	if m.s.callers[p][i].Owner == 0 || c.dying {
		return list
	}
	switch {
	case c.state == absent:
		add('a')
	case c.state == holding && c.again == 0:
		if c.held.exclusive > 0 {
			add('r')
		}
		if c.held.shared > 0 {
			add('q')
		}
		if m.spent.reentries < m.s.most.reentries {
			add('e')
		}
	case c.state == asking && m.spent.cancels < m.s.most.cancels:
		add('c')
	}
	if (c.state == asking || c.state == holding) && m.spent.deaths < m.s.most.deaths {
		add('O')
	}
	return list
}
