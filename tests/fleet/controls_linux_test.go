package fleet_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/overlay"
)

// control is a rule that is broken in the workers, what happens to them, and what the judge says.
type control struct {
	name   string
	edits  []overlay.Edit
	do     func(*world)
	caught string
}

var controls = []control{
	{
		"a grain starts before its registration",
		[]overlay.Edit{{"grains/activator.go", `		token, err := d.redis.register(it.grain, member, expected, last)
		d.post.Deliver(self, &registered{it, token, err})`, `		d.post.Deliver(self, &registered{it, d.redis.newest.Add(1), nil})
		_, _ = d.redis.register(it.grain, member, expected, last)`}},
		func(w *world) { w.wait(50, 50) }, "is alive",
	},
	{
		"a registration does not look at the lease of the other member",
		[]overlay.Edit{{"scripts/grains_register.lua", "if other_lease ~= lease and redis.call('EXISTS', other_lease) == 1 then", "if false then"}},
		func(w *world) { // a node that does not know a new member asks a third one for its grains
			if len(w.nodes) == 2 {
				w.grow(1)
			}
			w.nodes[1].terminate()
			w.network.swallow(both(w.nodes[0].s.Name, redisParty)...)
			w.restart(1)
			w.wait(50, 50)
			w.network.heal()
		}, "is alive",
	},
	{
		"a member releases its lease before its grains have stopped",
		[]overlay.Edit{{"grains/members.go", "	awaitStop(t, over.stopped)\n", ""}},
		rejoin, "is alive",
	},
	{
		"the lock of the singleton is released before its instance has stopped",
		[]overlay.Edit{{"leader_props.go", "				if lost = nil; l.candidacy.Err() == nil {", "				if lost = nil; l.candidacy.Err() != nil {\n					return nil\n				} else {"}},
		rejoin, "is alive",
	},
	{
		"grains have no guard",
		[]overlay.Edit{{"grains/mailbox.go", "case m.it.begins(poison || m.serves()):", "case m.it.begins(true):"}},
		func(w *world) { w.pause(120) }, "begins a message with",
	},
	{
		"the singleton has no guard, and is stopped late",
		[]overlay.Edit{
			{"singleton_gate.go", "return g.isOpen && g.term.Err() == nil && g.hold.Valid()", "return g.isOpen"},
			{"leader_props.go", "					l.lock.tell(system, self, lostTerm{t})", "					time.AfterFunc(time.Second, func() { l.lock.tell(system, self, lostTerm{t}) })"},
		},
		func(w *world) {
			p := w.leader()
			begun := p.count("begins " + theSingleton)
			w.within(time.Second, func() bool { return p.count("begins "+theSingleton) > begun }) // others are behind it
			p.pause()
			w.wait(120, 120)
			p.resume()
		}, "singleton begins a message with",
	},
	{
		"the store does not compare tokens",
		[]overlay.Edit{{"tests/fleet/store_linux_test.go", "if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then", "if false then"}},
		func(w *world) { w.pause(120) }, "an update is lost",
	},
}

// rejoin restarts a node.
func rejoin(w *world) {
	i := w.one()
	w.nodes[i].terminate()
	w.restart(i)
}

const sourceRoot = "../.."

// The texts that the controls replace exist.
func TestControls_MatchSource(t *testing.T) {
	for _, c := range controls {
		if _, err := overlay.Apply(sourceRoot, c.edits); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// build compiles this test with edits, and returns the path of the program.
func build(t *testing.T, edits []overlay.Edit) (program string) {
	root, err := filepath.Abs(sourceRoot)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := overlay.Apply(root, edits)
	if err != nil {
		t.Fatal(err)
	}
	list, err := overlay.Write(t.TempDir(), changed)
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(t.TempDir(), "worker")
	if out, err := exec.Command("go", "test", "-c", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}
