package main

import (
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// The traffic on one server, or on several, uses each kind.
func TestPlans_UseEveryKind(t *testing.T) {
	users := map[messages.Kind]traffic.Kind{
		messages.Kind_KIND_PLAIN: traffic.Plain, messages.Kind_KIND_FENCED: traffic.Fenced, messages.Kind_KIND_FAIR: traffic.Fair,
		messages.Kind_KIND_READ_WRITE: traffic.ReadWrite, messages.Kind_KIND_MULTI: traffic.Multi, messages.Kind_KIND_RED: traffic.Spread,
		messages.Kind_KIND_EXPIRABLE_SEMAPHORE: traffic.Expirable, messages.Kind_KIND_SEMAPHORE: traffic.Semaphore,
		messages.Kind_KIND_LATCH: traffic.Latch,
	}
	styles := slices.Concat(one().Styles, several().Styles)
	for kind := range kinds.Table {
		if !slices.ContainsFunc(styles, func(s traffic.Style) bool { return s.Kind == users[kind] }) {
			t.Errorf("no worker uses %v", kind)
		}
	}
}
