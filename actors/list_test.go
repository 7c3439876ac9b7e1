package actors

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// An actor that has nothing to do but to say so, when the System closes, leaves then.
func TestList_DoesNotHoldUpClose(t *testing.T) {
	for what, use := range map[string]func(t *testing.T, o *observed, name string){
		"lock": func(t *testing.T, o *observed, name string) { o.use(t, name) },
		"semaphore": func(t *testing.T, o *observed, name string) {
			call := request.NewCountCall(request.OpSet, 1)
			call.Kind, call.Name = messages.Kind_KIND_SEMAPHORE, name
			o.DoCount(t.Context(), call)
		},
	} {
		t.Run(what, func(t *testing.T) {
			o := startObserved(t, plain)
			use(t, o, redistest.Name(t))
			asked := 0
			o.crashOnce(func(m any) bool {
				if _, closes := m.(shutdown); closes {
					for a := range o.locks.All {
						asked++
						a.gate.Enter()
						a.post(&request.Call{Op: request.OpList, Kind: a.storedAs, Name: a.key.Name}) // which comes behind the shutdown
					}
				}
				return false
			})
			late := make(chan struct{})
			timer := time.AfterFunc(redistest.Limit/2, func() { close(late) })
			if o.Close(late); !timer.Stop() || asked != 1 {
				t.Errorf("Close has waited for an actor of %d that was asked what it does", asked)
			}
		})
	}
}
