package judge

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/model"
)

// models are the models of the kinds.
var models = map[string]model.Lock{
	"plain": model.Mutex, "fair": model.Mutex, "reentrant": model.Reentrant, "fenced": model.ReentrantFenced, "readwrite": model.ReadWrite,
	mixed: model.Mixed,
}

// mixed is the kind of a lock that is acquired both plain and fenced.
const mixed = "mixed"

const never = time.Duration(math.MaxInt64)

// rest stands for when all clients have come to rest: before never, but after all answers.
const rest = never - 3

// linearizable checks that the operations of a lock have an order that the model allows, in
// which each of them lies between its call and its answer.
//
// A hold that was lost was held at least until the last moment at which it was valid. An
// operation with an unknown outcome may have happened at any later time, or never. Holds
// around a broken lease are left out: trust checks them.
func (j *judge) linearizable(l *lock) {
	m := models[l.kind]
	if l.kind == "fenced" && !slices.ContainsFunc(l.requests, func(s lockRequest) bool { return !s.Outer() }) {
		m = model.Fenced
	}
	j.ordered(l, m.Name, m.Model(), j.operations(l))
}

// ordered checks that a model allows the operations in some order.
func (j *judge) ordered(l *lock, name string, m porcupine.Model, ops []porcupine.Operation) {
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	result, info := porcupine.CheckOperationsVerbose(m, ops, j.limits.Checker)
	switch result {
	case porcupine.Unknown:
		j.v.Undecided = append(j.v.Undecided, l.name)
	case porcupine.Illegal:
		j.v.Violations = append(j.v.Violations, Violation{
			Check: "linearizable: " + name, Lock: l.name, At: j.firstIllegal(m, ops), Detail: "no order of the operations explains their answers",
			model: &m, info: &info,
		})
	}
}

// operations returns the operations of a lock, for the checker.
func (j *judge) operations(l *lock) (ops []porcupine.Operation) {
	broken := j.brokenLeases(l.name)
	trees := map[string][]lockRequest{}
	for _, s := range l.requests {
		trees[s.Owner()] = append(trees[s.Owner()], s)
	}
	for _, tree := range trees {
		ops = append(ops, operationsOf(tree, broken)...)
	}
	for _, s := range j.erased(l.name) {
		ops = append(ops, porcupine.Operation{Input: model.Input{Op: model.ResetTokens}, Call: int64(s.From), Return: int64(s.To)})
	}
	return ops
}

// operationsOf returns the operations of one owner: a hold and its re-entries.
func operationsOf(tree []lockRequest, broken []history.Span) (ops []porcupine.Operation) {
	lost, mayBeOver := false, true // mayBeOver: only releases with an unknown outcome are missing
	last, notified := time.Duration(0), never
	for _, s := range tree {
		until := s.Ended()
		if until == 0 {
			until = never
		}
		if until = max(until, s.Answered, s.Released); within(broken, s.Asked, until) {
			return nil
		}
	}
	outer := tree[0]
	for _, s := range tree {
		in := model.Input{
			Op: model.Acquire, Owner: s.Owner(), Shared: s.part.Shared, Count: s.Count,
			Token: s.token, Plain: s.part.Kind == "plain",
		}
		op := porcupine.Operation{ClientId: s.Proc*100 + s.Worker, Call: int64(s.Asked), Return: int64(s.Answered)}
		switch {
		case s.Answered == 0:
			in.Unknown, op.Return = true, int64(never)
		case !s.Granted:
			continue
		}
		op.Input = in
		ops = append(ops, op)
		if !s.Granted {
			continue
		}
		if s.Last != 0 {
			last = max(last, s.Last)
		} else {
			last = max(last, s.Asked)
		}
		if s.Released != 0 && s.ReleaseErr == "" {
			last = max(last, s.Releasing)
			ops = append(ops, porcupine.Operation{
				ClientId: op.ClientId, Call: int64(s.Releasing), Return: int64(s.Released),
				Input: model.Input{Op: model.Release, Owner: s.Owner(), Shared: s.part.Shared},
			})
			continue
		}
		if s.Releasing != 0 && (s.Released == 0 || s.OutcomeUnknown) { // the owner may keep other holds, and let readers in
			ops = append(ops, porcupine.Operation{
				ClientId: op.ClientId, Call: int64(s.Releasing), Return: int64(never),
				Input: model.Input{Op: model.Release, Owner: s.Owner(), Shared: s.part.Shared, Unknown: true},
			})
		} else {
			mayBeOver = false
		}
		lost = true
		if end := s.Ended(); end != 0 && !s.OutcomeUnknown {
			notified = min(notified, max(end, last))
		}
	}
	if lost {
		if notified < last {
			notified = never
		}
		ops = append(ops, porcupine.Operation{
			ClientId: outer.Proc*100 + outer.Worker, Call: int64(last), Return: int64(notified),
			Input: model.Input{Op: model.Lose, Owner: outer.Owner(), Unknown: mayBeOver},
		})
	}
	return ops
}

// firstIllegal is when the history stops being possible: the end of its shortest prefix that
// is not.
func (j *judge) firstIllegal(m porcupine.Model, ops []porcupine.Operation) time.Duration {
	byReturn := slices.Clone(ops)
	slices.SortFunc(byReturn, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	until := func(n int) []porcupine.Operation {
		end := byReturn[n].Return
		var part []porcupine.Operation
		for _, op := range ops {
			if op.Call > end {
				break
			}
			if op.Return > end { // it had not been answered by then
				op.Input, op.Return = op.Input.(model.Operation).AsUnknown(), int64(never)
			}
			part = append(part, op)
		}
		return part
	}
	n, _ := slices.BinarySearchFunc(byReturn, true, func(op porcupine.Operation, _ bool) int {
		i := slices.IndexFunc(byReturn, func(o porcupine.Operation) bool { return o.Return == op.Return })
		if porcupine.CheckOperationsTimeout(m, until(i), j.limits.Checker) == porcupine.Illegal {
			return 0
		}
		return -1
	})
	if n >= len(byReturn) || byReturn[n].Return >= int64(rest) {
		return j.span.To
	}
	return time.Duration(byReturn[n].Return)
}
