package backend_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// A part of any kind is taken in its mode, and is released in the background. Package kinds imports this one, so that
// its table is read from outside.
func TestMember_TakesAndReleasesEachKind(t *testing.T) {
	for word, form := range kinds.Forms {
		t.Run(word, func(t *testing.T) {
			backend.ExpectTakenAndReleased(t, kinds.MemberSpecOf(request.Member{Kind: form.Kind, Mode: form.Mode}, nil, nil))
		})
	}
}
