package kinds

import (
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Words returns the words for the kinds that have one key, in the order of their numbers: of locks, and of
// synchronizers. Metrics, logs, lists and command lines use these words, such as "read_write".
func Words() (locks, synchronizers []string) {
	for kind, t := range byNumber {
		switch word := messages.Kind(kind).LogValue().String(); {
		case t.new != nil:
			synchronizers = append(synchronizers, word)
		case t.Composition == request.OneKey:
			locks = append(locks, word)
		}
	}
	return locks, synchronizers
}

// Named returns the kind of a word. For an unknown word, known is false.
func Named(word string) (kind messages.Kind, known bool) {
	for kind := range byNumber {
		if kind := messages.Kind(kind); kind.LogValue().String() == word {
			return kind, true
		}
	}
	return 0, false
}

// Form is a lock that has one key, without its name.
type Form struct {
	Kind messages.Kind
	Mode messages.Mode
}

// Of returns the lock of a name.
func (f Form) Of(name string) *messages.Lock {
	return &messages.Lock{Kind: f.Kind, Mode: f.Mode, Name: name}
}

// Forms are all forms, by their words: the words of Words, but "read" and "write" for read/write locks.
var Forms = func() map[string]Form {
	all := map[string]Form{}
	locks, _ := Words()
	for _, word := range locks {
		if kind, _ := Named(word); Of(kind).Shared {
			all["read"], all["write"] = Form{kind, messages.Mode_MODE_SHARED}, Form{Kind: kind}
		} else {
			all[word] = Form{Kind: kind}
		}
	}
	return all
}()
