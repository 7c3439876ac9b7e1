package lock_test

import "math/rand/v2"

// tape has the choices of a world, one byte each. The choice 0 is always the harmless one (no fault, no request,
// the usual delay), so a tape with fewer bytes, or with more zeros, makes a simpler world. shrink uses that.
type tape struct {
	bytes []byte
	next  int
	more  *rand.Rand // nil: zeros follow
}

func randomTape(seed uint64) *tape {
	return &tape{more: rand.New(rand.NewPCG(seed, 0x10c4))}
}

// pick chooses one of n, at most 256.
func (t *tape) pick(n int) int {
	if t == nil {
		return 0
	}
	if t.next == len(t.bytes) {
		if t.more == nil {
			return 0
		}
		t.bytes = append(t.bytes, byte(t.more.Uint32()))
	}
	b := t.bytes[t.next]
	t.next++
	return int(b) % n
}

// ended reports whether only zeros follow.
func (t *tape) ended() bool { return t.more == nil && t.next >= len(t.bytes) }

// oneOf chooses one of the values; the first is the harmless one.
func oneOf[T any](t *tape, values ...T) T { return values[t.pick(len(values))] }

// shrink finds a simpler tape for which fails is still true: it removes parts, sets them to zero, and lowers
// single bytes, until that has no more effect.
func shrink(bytes []byte, fails func([]byte) bool) []byte {
	progress := true
	try := func(candidate []byte) bool {
		if string(candidate) == string(bytes) || !fails(candidate) {
			return false
		}
		bytes, progress = candidate, true
		return true
	}
	for progress {
		progress = false
		for size := len(bytes); size > 0; size /= 2 {
			for at := 0; at+size <= len(bytes); {
				if !try(append(bytes[:at:at], bytes[at+size:]...)) {
					at += size
				}
			}
		}
		for size := len(bytes); size > 0; size /= 2 {
			for at := 0; at+size <= len(bytes); at += size {
				blanked := append([]byte{}, bytes...)
				clear(blanked[at : at+size])
				try(blanked)
			}
		}
		for at := range bytes {
			lower := append([]byte{}, bytes...)
			for lower[at] > 0 {
				if lower[at] /= 2; try(lower) {
					break
				}
			}
		}
	}
	return bytes
}
