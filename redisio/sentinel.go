package redisio

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// askPause is the pause between two questions to a Sentinel for the master. A Sentinel is also asked whenever it
	// publishes a change.
	askPause = time.Second
	// minAskPause is the first pause if the server that the Sentinel names is not the master yet; the pause then
	// doubles up to askPause.
	minAskPause = 100 * time.Millisecond
	// askTimeout is the time that a Sentinel may take to answer.
	askTimeout = 2 * time.Second
)

// chosen is the channel on which a Sentinel publishes which replica it is about to promote.
const chosen = "+selected-slave"

// changes are the channels on which a Sentinel publishes that the master may have changed.
var changes = []string{chosen, "+promoted-slave", "+switch-master", "+config-update-from", "+reboot", "+sentinel"}

var errSentinelReply = &Error{Hint: "is there a proxy that changes replies?", Err: errors.New("unexpected reply from the Sentinel")}

// sentinel is a Sentinel that a follower asks. The follower's mutex guards its fields.
type sentinel struct {
	configured bool // by the user; other Sentinels were named by a Sentinel
	// master is the Sentinel's last answer; "" if the Sentinel does not answer.
	master string
	// epoch is the number of the Sentinel's configuration, which grows with every failover.
	epoch  uint64
	others []string
	failed bool

	askNow chan struct{}
}

// wake makes askAndListen ask the Sentinel at once.
func (s *sentinel) wake() {
	select {
	case s.askNow <- struct{}{}:
	default:
	}
}

// ofSentinels returns the options for connections to Sentinels.
func ofSentinels(options rueidis.ClientOption) rueidis.ClientOption {
	s := options.Sentinel
	options.Username, options.Password, options.ClientName = s.Username, s.Password, s.ClientName
	options.AuthCredentialsFn = nil // the credentials are for the servers
	options.Dialer, options.TLSConfig, options.SelectDB = s.Dialer, s.TLSConfig, 0
	options.Sentinel, options.ForceSingleClient = rueidis.SentinelOption{}, true
	return options
}

// watch begins to ask the Sentinels that are not asked yet, and returns their addresses.
func (f *follower) watch(addresses []string, configured bool) (added []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, address := range addresses {
		if f.sentinels[address] == nil && f.ctx.Err() == nil {
			s := &sentinel{configured: configured, askNow: make(chan struct{}, 1)}
			f.sentinels[address] = s
			f.wg.Go(func() { f.keepAsking(address, s) })
			added = append(added, address)
		}
	}
	return added
}

// keepAsking asks a Sentinel until the follower is closed, or until the Sentinel neither answers nor is named by
// another Sentinel.
func (f *follower) keepAsking(address string, s *sentinel) {
	for {
		err := f.askAndListen(address, s)
		if f.ctx.Err() != nil || f.recordFailure(address, s, err) {
			return
		}
		select {
		case <-time.After(askPause/2 + rand.N(askPause)):
		case <-f.ctx.Done():
			return
		}
	}
}

// recordFailure records that a Sentinel does not answer, and reports whether it is removed. A configured Sentinel is
// not removed, nor a Sentinel that another Sentinel names.
func (f *follower) recordFailure(address string, s *sentinel, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.master, s.others = "", nil
	if s.configured {
		if !s.failed {
			f.failed <- err // does not block: the channel has room for each
		}
		s.failed = true
		return false
	}
	for _, other := range f.sentinels {
		if slices.Contains(other.others, address) {
			return false
		}
	}
	delete(f.sentinels, address)
	return true
}

// askAndListen asks a Sentinel and listens to it over one connection, until the connection breaks. If the user may not
// listen, no client is opened, since the client would notice a failover late. If the right to listen is removed later,
// the Sentinel is still asked.
func (f *follower) askAndListen(address string, s *sentinel) error {
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer cancel(nil)
	client, err := connectWithin(ctx, f.watchers, f.dial, address)
	if err != nil {
		return err
	}
	done, answered := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	defer func() {
		cancel(nil) // closes the connection first: rueidis must not unsubscribe, see Subscriptions
		<-done
		client.Close()
	}()
	go func() {
		defer close(done)
		hooked := rueidis.WithOnSubscriptionHook(context.Background(), func(rueidis.PubSubSubscription) { answer() })
		err := client.Receive(hooked, client.B().Subscribe().Channel(changes...).Build(), func(m rueidis.PubSubMessage) {
			f.handleMessage(m)
			s.wake()
		})
		if _, refused := rueidis.IsRedisErr(err); !refused || Classify(err).Transient || !f.hasMaster() {
			cancel(err)
		}
		answer()
	}()
	select {
	case <-answered:
	case <-time.After(askTimeout):
		return errTimeout
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for pause := askPause; ; {
		if err := f.ask(ctx, client, s); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		switch err := f.updateMaster(); {
		case err == nil:
			pause = askPause
		case !f.hasMaster():
			return err
		case pause == askPause:
			pause = minAskPause
		default:
			pause = min(2*pause, askPause-1)
		}
		select {
		case <-s.askNow:
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// handleMessage handles a message of a Sentinel. The message about a chosen replica is
// "slave <name> <host> <port> @ <set> <host> <port>", of the replica and the master.
func (f *follower) handleMessage(m rueidis.PubSubMessage) {
	if words := strings.Fields(m.Message); m.Channel == chosen && len(words) == 8 && words[5] == f.set {
		f.pause(net.JoinHostPort(words[6], words[7]), net.JoinHostPort(words[2], words[3]))
	}
}

// ask records the master that a Sentinel names, and the other Sentinels. During a failover, SENTINEL MASTER
// has the new epoch, but only GET-MASTER-ADDR-BY-NAME names the new master.
func (f *follower) ask(ctx context.Context, client rueidis.Client, s *sentinel) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	b := client.B()
	replies := client.DoMulti(ctx,
		b.SentinelSentinels().Master(f.set).Build(),
		b.Arbitrary("SENTINEL", "MASTER").Args(f.set).Build(),
		b.SentinelGetMasterAddrByName().Master(f.set).Build())
	others, err := replies[0].ToArray()
	if err != nil {
		return err
	}
	configuration, err := replies[1].AsStrMap()
	if err != nil {
		return err
	}
	master, err := replies[2].AsStrSlice()
	if err != nil {
		return err
	}
	epoch, err := strconv.ParseUint(configuration["config-epoch"], 10, 64)
	if err != nil || len(master) != 2 {
		return errSentinelReply
	}
	var named []string
	for i := range others {
		if other, err := others[i].AsStrMap(); err == nil {
			named = append(named, net.JoinHostPort(other["ip"], other["port"]))
		}
	}
	f.mu.Lock()
	s.master, s.epoch, s.others = net.JoinHostPort(master[0], master[1]), epoch, named
	f.mu.Unlock()
	f.watch(named, false)
	return nil
}
