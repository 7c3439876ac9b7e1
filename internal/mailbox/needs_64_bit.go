//go:build 386 || arm || mips || mipsle

package mailbox

// proto.actor's registry finds the bucket of an actor's id by int(hash) % 1024, and hash is a uint32. Where an int has
// 32 bits the result may be negative, and half of all ids would panic: the first of them in Open.
const _ int = "Lockkeeper needs a 64-bit machine: proto.actor's registry of actors panics on one with 32 bits"
