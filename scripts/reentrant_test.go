package scripts_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestAcquire(t *testing.T) {
	check(t, scripts.Acquire, false, []row{
		{name: "free", args: "a 1 30000", reply: "(nil)", after: "a=1 30000"},
		{name: "free, to re-enter", args: "a 2 30000", reply: "[-2 ]"},
		{name: "own", before: "a=1 30000", args: "a 1 60000", reply: "(nil)", after: "a=1 60000"},
		{name: "own, shorter lease", before: "a=1 60000", args: "a 1 30000", reply: "(nil)", after: "a=1 30000"},
		{name: "own, one more", before: "a=1 30000", args: "a 2 60000", reply: "(nil)", after: "a=2 60000"},
		{name: "own, fewer", before: "a=3 30000", args: "a 1 60000", reply: "(nil)", after: "a=1 60000"},
		{name: "own, without a TTL", before: "a=1", args: "a 1 30000", reply: "(nil)", after: "a=1 30000"},
		{name: "other", before: "b=2 60000", args: "a 1 30000", reply: "[60000 b]", after: "b=2 60000"},
		{name: "other, to re-enter", before: "b=2 60000", args: "a 2 30000", reply: "[60000 b]", after: "b=2 60000"},
		{name: "other, without a TTL", before: "b=2", args: "a 1 30000", reply: "[-1 b]", after: "b=2"},
		{name: "many subscribers", before: "b=1 60000", subscribers: 2, args: "a 1 30000", reply: "[60000 b]", after: "b=1 60000"},
		{name: "wrong type", before: "'x'", args: "a 1 30000", reply: "-WRONGTYPE", after: "'x'"},
		{name: "wrong type with a TTL", before: "'x' 60000", args: "a 1 30000", reply: "-WRONGTYPE", after: "'x' 60000"},
	})
}

func TestRelease(t *testing.T) {
	check(t, scripts.Release, true, []row{
		{name: "own, wholly", before: "a=1 30000", args: "a 0 60000", reply: "0", told: true, again: "-1"},
		{name: "own, wholly at once", before: "a=3 30000", args: "a 0 60000", reply: "0", told: true, again: "-1"},
		{name: "own, without a TTL", before: "a=1", args: "a 0 60000", reply: "0", told: true, again: "-1"},
		{name: "own, one less", before: "a=3 30000", args: "a 2 60000", reply: "2", after: "a=2 60000"},
		{name: "own, one less without a TTL", before: "a=3", args: "a 2 60000", reply: "2", after: "a=2 60000"},
		{name: "own, as it was", before: "a=2 30000", args: "a 2 60000", reply: "2", after: "a=2 60000"},
		{name: "own, with subscribers", before: "a=1 30000", subscribers: 2, args: "a 0 60000", reply: "0", told: true, again: "-1"},
		{name: "other", before: "b=1 30000", args: "a 0 60000", reply: "-1", after: "b=1 30000"},
		{name: "other, one less", before: "b=1 30000", args: "a 1 60000", reply: "-1", after: "b=1 30000"},
		{name: "free", args: "a 0 60000", reply: "-1"},
		{name: "free, one less", args: "a 1 60000", reply: "-1"},
		{name: "wrong type", before: "'x'", args: "a 0 60000", reply: "-WRONGTYPE", after: "'x'"},
		{name: "wrong type, one less", before: "'x' 30000", args: "a 1 60000", reply: "-WRONGTYPE", after: "'x' 30000"},
	})
}

func TestYield(t *testing.T) {
	check(t, scripts.Yield, true, []row{
		{name: "nobody subscribed", before: "a=1 30000", args: "a 0 60000 0", reply: "[0 0]", after: "a=1 60000"},
		{name: "only the owner", before: "a=1 30000", subscribers: 1, args: "a 1 60000 0", reply: "[0 0]", after: "a=1 60000"},
		{name: "the owner not yet", before: "a=1 30000", args: "a 1 60000 0", reply: "[0 0]", after: "a=1 60000"},
		{name: "count of an old hold", before: "a=2 30000", args: "a 0 60000 0", reply: "[0 0]", after: "a=1 60000"},
		{name: "without a TTL", before: "a=1", args: "a 0 60000 0", reply: "[0 0]", after: "a=1 60000"},
		{name: "others", before: "a=1 30000", subscribers: 2, args: "a 0 60000 0", reply: "[1 2]", told: true, again: "[-1 0]"},
		{name: "one other", before: "a=1 30000", subscribers: 2, args: "a 1 60000 0", reply: "[1 1]", told: true, again: "[-1 0]"},
		{name: "the owner and others", before: "a=1 30000", subscribers: 3, args: "a 1 60000 0", reply: "[1 2]", told: true, again: "[-1 0]"},
		{name: "opened for nobody", before: "a=1 30000", args: "a 0 60000 1", reply: "[1 0]", told: true, again: "[-1 0]"},
		{name: "opened, the owner not yet subscribed", before: "a=1 30000", args: "a 1 60000 1", reply: "[1 0]", told: true, again: "[-1 0]"},
		{name: "opened for others", before: "a=1 30000", subscribers: 2, args: "a 1 60000 1", reply: "[1 1]", told: true, again: "[-1 0]"},
		{name: "other", before: "b=1 30000", subscribers: 2, args: "a 0 60000 1", reply: "[-1 0]", after: "b=1 30000"},
		{name: "free", subscribers: 2, args: "a 0 60000 1", reply: "[-1 0]"},
		{name: "wrong type", before: "'x' 30000", subscribers: 2, args: "a 0 60000 1", reply: "-WRONGTYPE", after: "'x' 30000"},
	})
}

func TestForceRelease(t *testing.T) {
	check(t, scripts.ForceRelease, true, []row{
		{name: "held", before: "a=2 30000", reply: "1", told: true, again: "0"},
		{name: "held without a TTL", before: "a=1", reply: "1", told: true, again: "0"},
		{name: "free", reply: "0"},
		{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: "'x' 30000"},
	})
}

func TestInspect(t *testing.T) {
	check(t, scripts.Inspect, true, []row{
		{name: "held", before: "a=2 30000", reply: "[30000 0 a 2]", after: "a=2 30000"},
		{name: "held without a TTL", before: "a=1", reply: "[-1 0 a 1]", after: "a=1"},
		{name: "waited for", before: "a=1 30000", subscribers: 2, reply: "[30000 2 a 1]", after: "a=1 30000"},
		{name: "free", reply: "[-2 0  ]"},
		{name: "free and waited for", subscribers: 1, reply: "[-2 1  ]"},
		{name: "wrong type", before: "'x' 30000", reply: "-WRONGTYPE", after: "'x' 30000"},
	})
}
