package machine

import "iter"

// Effects are the effects that a machine asks for, in their order, until they are taken. They are part of its state, so
// a crash of the actor loses none.
type Effects struct {
	list  []Effect
	taken int
}

// keptEffects is the number of effects whose memory is used again.
const keptEffects = 8

// Add asks for another effect.
func (f *Effects) Add(e Effect) { f.list = append(f.list, e) }

// Answer answers the request of a Ref, or each of the requests of Refs; nil is no request.
func (f *Effects) Answer(ref any, a Answer) {
	switch ref := ref.(type) {
	case nil:
	case Refs:
		for _, one := range ref {
			f.Answer(one, a)
		}
	default:
		f.Add(Effect{Kind: Reply, Ref: ref, Answer: a})
	}
}

// Refuse answers requests, like Answer, that failed.
func (f *Effects) Refuse(ref any, kind AnswerKind, reason Reason, detail string) {
	f.Answer(ref, Answer{Kind: kind, Reason: reason, Detail: detail})
}

// Next writes the next effect to e and removes it. It reports whether there was one.
func (f *Effects) Next(e *Effect) bool {
	if f.taken == len(f.list) {
		if f.list, f.taken = f.list[:0], 0; cap(f.list) > keptEffects {
			f.list = nil
		}
		return false
	}
	*e = f.list[f.taken]
	f.list[f.taken] = Effect{}
	f.taken++
	return true
}

// Len returns how many effects are not taken yet.
func (f *Effects) Len() int { return len(f.list) - f.taken }

// All yields the effects that are not taken yet.
func (f *Effects) All() iter.Seq[Effect] {
	return func(yield func(Effect) bool) {
		for _, e := range f.list[f.taken:] {
			if !yield(e) {
				return
			}
		}
	}
}

// Borrow lends the list its first memory. It reports false if the list has memory already.
func (f *Effects) Borrow(memory []Effect) bool {
	if f.list != nil {
		return false
	}
	f.list = memory[:0]
	return true
}

// Room returns for how many effects there is memory.
func (f *Effects) Room() int { return cap(f.list) }

// Refs are the Refs of several requests.
type Refs []any

// Add adds the Ref of a request, if ref is one, or the elements of other Refs.
func (r *Refs) Add(ref any) {
	switch ref := ref.(type) {
	case nil:
	case Refs:
		*r = append(*r, ref...)
	default:
		*r = append(*r, ref)
	}
}

// AddReplies adds the Refs of the requests whose answers are not taken yet.
func (r *Refs) AddReplies(of *Effects) {
	for e := range of.All() {
		if e.Kind == Reply {
			r.Add(e.Ref)
		}
	}
}
