package backend

import (
	"slices"
	"time"
)

// missing returns the servers that have not answered.
func missing[A interface{ from() *member }](m *majority, answers []A) (servers []*member) {
	for _, on := range m.members {
		if !slices.ContainsFunc(answers, func(a A) bool { return a.from() == on }) {
			servers = append(servers, on)
		}
	}
	return servers
}

func (v vote) from() *member       { return v.on }
func (l inspection) from() *member { return l.on }

// answerBy returns the time by which the slowest of the servers should answer, judging by their last answers.
func answerBy(servers []*member, now, deadline time.Time) (by time.Time) {
	for _, on := range servers {
		if each := on.server.answerBy(now, deadline); each.After(by) {
			by = each
		}
	}
	return by
}

func noteSilent(servers []*member) {
	for _, on := range servers {
		on.noteSilent()
	}
}

// cutOff ends a collection without the servers that are late. The mutex of the collection guards it.
type cutOff struct{ timer *time.Timer }

// set replaces the time of the cut.
func (c *cutOff) set(at time.Time, cut func()) {
	c.stop()
	c.timer = time.AfterFunc(time.Until(at), cut)
}

func (c *cutOff) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}
