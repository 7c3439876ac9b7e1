package lock_test

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// setting is the configuration of a world: its processes and callers, and how often each fault may happen.
type setting struct {
	name     string
	features lock.Features
	config   machine.Config
	setup    redismodel.Setup
	limits   tally
	// In an exploration: the requests of each process's callers (Owner 0: there is no such caller), the mode of
	// their re-entries, and how often time may pass, which is only while no message is on its way. times 0: any
	// number of times, also while messages are on their way.
	callers [maxProcesses][callers]machine.Request
	// members: the part of a MultiLock that a process wants, from 1; 0 is all parts.
	members [maxProcesses]int
	// processCount is the number of processes in an exploration. begin are events that come first, on a prompt
	// network.
	processCount int
	begin        []move
	again        machine.Mode
	times        int
	// leases are what the holders of an exploration ask for, one after another; 0 is the watchdog's.
	leases []time.Duration
	// twoActors: the first two processes are lock actors of one process, with one client id, on one key.
	twoActors bool
	// unequalPolls: every other process polls more often, so its entries expire sooner.
	unequalPolls bool
	encoder      encoder // for the hashes of an exploration, which computes one at a time
}

// longest is the longest lease that any client asks for.
func (s *setting) longest() time.Duration { return max(s.config.Watchdog, 20*sec) }

// fault is an event other than a request for the lock.
type fault int

const (
	lost        fault = iota // commands, or their replies
	late                     // commands arrive after their deadline
	onePart                  // only one part of a lock carries a command out
	lostMessage              // subscriptions and their messages get lost
	loading                  // Redis refuses for now
	rejected                 // Redis refuses for good
	full                     // Redis has no memory left for a while
	frozen                   // Redis stops for a while
	restart                  // Redis comes back empty
	deleted                  // keys are deleted
	forced                   // locks are force-released
	slow                     // messages take long, and overtake each other
	paused                   // processes stop for a while
	lateTimer                // timers fire late
	crash                    // lock actors crash on a reply
	kill                     // processes end at once
	actorFails               // a lock actor fails for good, as after many crashes
	closing                  // locks are closed
	death                    // owners die
	foreign                  // foreign clients take the lock, and wait for it
	cancels
	outOfOrder // in an exploration: a command or a reply overtakes an earlier one of its process
	reentry
	ensures
	extends
	suspects
	times
	free // any other event
	faults
)

// tally is a count for each fault.
type tally [faults]int16

const always = 1 << 14
