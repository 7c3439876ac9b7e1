package owners

import (
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// An actor that is registered no more counts as gone only after timeout, since it may still be handling its Stopped.
// One that is registered is never missed, and neither is one on another node.
func TestMissed_IsPatient(t *testing.T) {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	t.Cleanup(system.Shutdown)
	watcher := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	by := Watcher{
		Post: &delivery.Post{System: system, Host: host.New(nil, logger)}, Rules: &request.Rules{Actors: system},
		PID: watcher, Numbers: new(atomic.Uint64),
	}
	hangs, mayEnd := make(chan struct{}), make(chan struct{})
	defer close(mayEnd)
	stops := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, is := ctx.Message().(*actor.Stopped); is {
			close(hangs)
			<-mayEnd
		}
	}))
	lives := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	set := new(Set)
	dies := set.Acquire(by, stops, by.Rules.Process(stops))
	set.Acquire(by, lives, by.Rules.Process(lives))
	set.Acquire(by, actor.NewPID("other:1", "remote"), nil)
	system.Root.Stop(stops)
	<-hangs

	const timeout = 30 * time.Second
	for _, check := range []struct {
		at   time.Duration
		gone bool
	}{{at: time.Second}, {at: 20 * time.Second}, {at: 30 * time.Second}, {at: 40 * time.Second, gone: true}, {at: 99 * time.Second}} {
		gone := set.RemoveMissing(by, check.at, timeout)
		if (len(gone) == 1 && gone[0] == dies) != check.gone || len(gone) > 1 {
			t.Errorf("after %v: %d owners have gone, expected %v", check.at, len(gone), check.gone)
		}
	}
	if set.Find(stops, nil) != nil || set.Find(lives, nil) == nil || !set.InUse() {
		t.Error("the wrong owners are left")
	}
}

// Of three lives of a name, the first may still be handling its Stopped when the second has ended.
func TestTerminated_IsAboutTheLifeThatSaysSo(t *testing.T) {
	by := Watcher{Rules: &request.Rules{Actors: actor.NewActorSystem()}}
	t.Cleanup(by.Rules.Actors.Shutdown)
	life := func(n machine.Owner) *Owner {
		return &Owner{ID: n, PID: by.Rules.Actors.NewLocalPID("phoenix"), uses: 1}
	}
	first, second, third := life(1), life(2), life(3)
	set := &Set{byPID: map[pidKey]*Owner{pidKeyOf(third.PID): third}, replaced: map[pidKey][]*Owner{pidKeyOf(third.PID): {first, second}}}
	for _, notice := range []struct {
		who  *actor.PID
		gone *Owner
	}{{second.PID, second}, {by.Rules.Actors.NewLocalPID("phoenix"), first}, {third.PID, third}} {
		if gone := set.RemoveTerminated(by, notice.who); gone != notice.gone {
			t.Errorf("%+v has gone, expected %+v", gone, notice.gone)
		}
	}
}
