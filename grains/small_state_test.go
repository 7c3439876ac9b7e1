//go:build !race

package grains

// stage is the age of a lease that is not renewed, as the process sees it.
type stage int8

const (
	fresh   stage = iota
	drained       // T − D has passed
	ended         // T has passed
)

// smallWorld is a state of the exploration. Decisions are made by activations, as in the activator.
type smallWorld struct {
	*setting
	redis     model
	members   [2]smallMember
	late      []lateCommand
	newest    int8 // the highest token that was started
	lates     int8 // what was spent
	repeated  int8
	killed    bool
	violation error
}

// smallMember is a process. Its term has the number id, and is over when its grains are to stop.
type smallMember struct {
	activations[int]
	id, terms, asked int8
	at               stage
	over             bool
	// gone: the context of the term has ended, for good.
	gone     bool
	handling bool
	// overlaps: another activation has started alongside one of this term.
	overlaps bool
	call     *smallCall
	// older is the token of an abandoned call, for a control.
	older int8
}

// smallCall is a registration whose reply is awaited, and its result if Redis has carried it out.
type smallCall struct {
	it       *activation[int]
	expected modelEntry
	done     bool
	token    int8
}

// lateCommand is a registration that was given up, or the removal of an entry.
type lateCommand struct {
	register bool
	member   int8
	entry    modelEntry // what is expected, or removed
}

// smallMove is a move of the member i, or of the late command i.
type smallMove struct {
	does doing
	i    int8
	with modelEntry
}

type doing int8

const (
	joins doing = iota
	asks
	executes
	replies
	givesUp
	executesLate
	repeatsLate
	beginsMessage
	endsMessage
	beginsToStop
	stops
	ends
	closes
	releases
	ages
	renews
	expires
	buries
	dies
)

func (d doing) String() string {
	return [...]string{"joins", "is asked", "has its registration carried out", "gets the reply", "gives its registration up",
		"late command", "late command, again", "begins a message", "ends its message", "begins to stop the grain", "has stopped the grain",
		"ends its term", "ends the term's context", "releases its lease", "is not renewed", "is renewed", "lease expires", "is buried", "is killed"}[d]
}
