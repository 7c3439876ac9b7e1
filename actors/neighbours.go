package actors

import "github.com/lockkeeper-go/lockkeeper/messages"

// A MultiLock has a lock actor of its own, beside those of its members: with client ids of
// their own they exclude each other in Redis, like strangers. But a forced release of one
// ends holds of the other, and holders in this process are told of it at once.

// joinWholes lets the systems of the members know that the lock is made of theirs.
func (c *cell) joinWholes() {
	for _, m := range c.members {
		m.Runtime.wholes.Store(c, c.members)
	}
}

func (c *cell) leaveWholes() {
	for _, m := range c.members {
		m.Runtime.wholes.Delete(c)
	}
}

// warnNeighbours has the other lock actors that may hold a key which was force-released
// here look whether they still do.
func (c *cell) warnNeighbours() {
	keys := c.members
	if c.key.made == ofOneKey {
		keys = []Member{{Runtime: c.rt, Name: c.key.name}}
	}
	for _, key := range keys {
		if one := key.Runtime.table.get(keyOf(messages.Kind_KIND_REENTRANT, key.Name)); one != nil && one != c {
			c.rt.deliver(one.pid, suspicion{})
		}
		for whole, members := range key.Runtime.wholes.Range {
			if whole := whole.(*cell); whole != c && has(members.([]Member), key) {
				c.rt.deliver(whole.pid, suspicion{})
			}
		}
	}
}

func has(members []Member, key Member) bool {
	for _, m := range members {
		if m.Runtime == key.Runtime && m.Name == key.Name {
			return true
		}
	}
	return false
}
