package wire

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// fenced is Redisson's RFencedLock: the reentrant lock, with a counter beside it.
type fenced struct{ reentrant }

func (f fenced) call(l *Lock, c core.Command) (redisio.Call, reading) {
	if c.Kind != core.Acquire {
		return f.reentrant.call(l, c)
	}
	return redisio.Call{
		Script: scripts.FencedAcquire, Keys: []string{l.Key, l.Tokens},
		Args: []string{l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), strconv.FormatInt(c.Tokens, 10)},
	}, tookToken
}
