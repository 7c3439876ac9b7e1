// Mutants measures the tests: it breaks the code of a package in one place at a time and
// runs the tests that should notice.
//
//	go run ./tests/mutants -pkg ./internal/lock -n 120 -seed 1
//	go run ./tests/mutants -pkg ./scripts -n 80 -seed 1 -json scripts.json
//
// It mutates the Lua files of a package that has any, and the Go files without the tests
// of any other. The mutations are the usual ones: a condition is negated, "and" becomes
// "or" or loses an arm, a comparison moves its boundary, a statement or the body of an if
// is deleted, a function returns early, plus becomes minus, a constant grows by one, a
// case of a switch is gone, a TTL is twice as long. Where they are comes from the syntax
// tree (Go) or from the tokens (Lua); each is one replacement of text, so that every other
// line keeps its number.
//
// The tree is never written to: go test reads the mutated file by way of -overlay, which
// covers embedded files as well.
//
// The sample depends on the seed and the source alone. Each file is sampled in proportion
// to the places that it has, and a mutant that does not compile is replaced by the next
// one. For each mutant the commands of -test run in turn until one fails; the default is a
// quick command first and a thorough one for what survives it. Each gets a few times as
// long as it takes on the code as it is; a mutant that needs more counts as killed, and is
// reported as timed out. The tests must pass on the code as it is.
//
// A survivor is either equivalent to the original, or a rule that no test holds: read it.
// Each mutant runs alone, and its memory is bounded. Use nice on a machine that others
// work on.
package main
