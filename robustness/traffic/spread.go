package traffic

import (
	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// spread starts the Systems on the further servers.
func (c *client) spread(config lockkeeper.Config) error {
	for _, url := range c.spec.Others {
		redis, err := lockkeeper.Connect(url)
		if err != nil {
			return err
		}
		s, err := lockkeeper.New(c.actors, redis, config)
		if err != nil {
			return err
		}
		c.others = append(c.others, s)
	}
	if len(c.others) < 2 {
		return nil
	}
	var err error
	c.red, err = lockkeeper.NewRedLock(append([]*lockkeeper.System{c.system}, c.others...)...)
	return err
}

// onSeveral is a RedLock, or a MultiLock whose members are on two servers.
func (w *worker) onSeveral() choice {
	if w.random.IntN(2) == 0 {
		return choice{lock: w.c.red.Lock("red"), parts: []history.Part{{Lock: "red", Kind: "plain"}}}
	}
	here, there := w.c.system.Lock("spread-a"), w.c.others[0].Lock("spread-b")
	return choice{
		lock:  lockkeeper.MultiLock(here, there),
		parts: []history.Part{{Lock: "spread-a", Kind: "plain"}, {Lock: "spread-b", Kind: "plain"}},
	}
}
