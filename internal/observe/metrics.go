package observe

import (
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

type instrument uint8

const (
	holds instrument = iota
	waiters
	standbys
	candidacies
	candidaciesEnded
	instances
	refusedMessages
	grants
	refusals
	losses
	risks
	waitTime
	holdTime
	calls
	callTime
	renewals
	subscriptions
	reconnects
	lockActors
	missed
	instruments
)

// form says how an instrument adds up.
type form uint8

const (
	counter form = iota
	upDown
	seconds // a histogram
)

const (
	kindAttribute   = "lockkeeper.kind"
	scriptAttribute = "lockkeeper.script"
	wayAttribute    = "lockkeeper.way"
	reasonAttribute = "lockkeeper.reason"
	resultAttribute = "lockkeeper.result"
)

// described are the instruments, as in docs/operate.md. No instrument has an attribute with a lock's name, since the
// number of names has no bound. what is the attribute that has a word as its value.
var described = [instruments]struct {
	name string
	form
	unit, text     string
	kinded, script bool
	what           string
}{
	holds: {name: "holds", form: upDown, unit: "{hold}", kinded: true,
		text: "Holds, without permits of plain semaphores."},
	waiters:  {name: "waiters", form: upDown, unit: "{request}", kinded: true, text: "Requests that wait."},
	standbys: {name: "standbys", form: upDown, unit: "{request}", kinded: true, text: "Waiters that wait to lead."},
	candidacies: {name: "candidacies", form: upDown, unit: "{candidacy}", kinded: true,
		text: "Elect, Lead or LeaderProps: those that wait to lead, or lead."},
	candidaciesEnded: {name: "candidacies.ended", unit: "{candidacy}", kinded: true, what: resultAttribute,
		text: "Candidacies that have ended."},
	instances:       {name: "singleton.instances", form: upDown, unit: "{actor}", text: "Instances of singletons."},
	refusedMessages: {name: "singleton.refused", unit: "{message}", text: "Messages that proxies of singletons refused."},
	grants:          {name: "grants", unit: "{grant}", kinded: true, what: wayAttribute, text: "Requests that were granted."},
	refusals: {name: "refusals", unit: "{request}", kinded: true, what: reasonAttribute,
		text: "Requests that were not granted."},
	losses: {name: "losses", unit: "{hold}", kinded: true, what: reasonAttribute,
		text: "Holds that were lost, other than by Close."},
	risks: {name: "at_risk", unit: "{hold}", kinded: true, text: "Holds whose renewals began to fail."},
	waitTime: {name: "wait.duration", form: seconds, unit: "s", kinded: true, what: resultAttribute,
		text: "How long requests waited for their answer, other than to lead, or refused before they reached a lock."},
	holdTime: {name: "hold.duration", form: seconds, unit: "s", kinded: true, text: "How long locks were held."},
	calls:    {name: "redis.calls", unit: "{call}", script: true, what: resultAttribute, text: "Calls of scripts."},
	callTime: {name: "redis.call.duration", form: seconds, unit: "s", script: true, what: resultAttribute,
		text: "How long Redis took to answer."},
	renewals: {name: "renewals", unit: "{lease}", what: resultAttribute,
		text: "Leases that the watchdog was to renew; gone or taken also if a release came first."},
	subscriptions: {name: "subscriptions", form: upDown, unit: "{channel}", text: "Channels of locks that are waited for."},
	reconnects:    {name: "reconnects", unit: "{connection}", text: "Connections for pub/sub that replaced a broken one."},
	lockActors: {name: "actors", form: upDown, unit: "{actor}",
		text: "Actors of locks, semaphores and latches; also idle ones, and up to 256 that are kept for the next locks."},
	missed: {name: "missed", unit: "{value}", text: "Values that histograms missed."},
}

// Boundaries in seconds: a call to Redis takes tenths of a millisecond, a job may hold a lock for hours.
var (
	callBoundaries = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
	lockBoundaries = []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600}
)

// measurement is a number of a sample: the increment of a sum, or a time of a histogram in nanoseconds.
type measurement struct {
	sample
	n int64
}

// sample is an instrument with the attributes of a measurement. The attributes are numbers, since every grant has some
// five samples; an attribute that the instrument does not have is zero.
type sample struct {
	instrument
	what word
	of   subject
}

// subject is a kind, or a kind that this version does not know. For calls it is the place of the script in
// metrics.scripts.
type subject uint16

// unknownKind follows the kinds, which are numbered from 0.
var unknownKind = subject(len(messages.Kind_name))

func subjectOf(kind messages.Kind) subject {
	if kind < 0 || int(kind) >= len(messages.Kind_name) {
		return unknownKind // in a message of a later version
	}
	return subject(kind)
}

func (s subject) kindWord() string {
	if s == unknownKind {
		return "unknown"
	}
	return messages.Kind(s).LogValue().String()
}

// word is a way, a reason or a result. The words of reasons have the numbers of the reasons.
type word uint8

const (
	byRedis = word(machine.NumReasons) + iota
	byHandOff
	byTransfer
	byReentry
	granted
	refused
	done
	renewed
	resigned
	failed
	words
)

// tally.touched has a bit for each word.
var _ [32 - words]struct{}

func (w word) String() string {
	if w < byRedis {
		return reasonWord(machine.Reason(w))
	}
	return [...]string{"redis", "hand_off", "transfer", "reentry", "granted", "refused", "done", "renewed", "resigned", "failed"}[w-byRedis]
}

// reasonWord is a reason as it is logged.
func reasonWord(r machine.Reason) string { return messages.Reason(r).LogValue().String() }
