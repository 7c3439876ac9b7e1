package machine

import (
	"encoding/binary"
	"encoding/hex"
)

// PermitID is the id of a permit in Redis. The first half is the same for all permits of a System, the second is
// random. Permits that were acquired together differ in the two bytes behind the first half.
type PermitID [16]byte

// String returns the id as Redisson spells it: 32 hexadecimal digits.
func (id PermitID) String() string { return hex.EncodeToString(id[:]) }

// Numbered returns the id for a command with that number: each command has ids of its own.
func (id PermitID) Numbered(number uint64) PermitID {
	binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])^number)
	return id
}

// Permits are permits that were acquired together, all or none.
type Permits struct {
	// First is the id of the first.
	First PermitID
	// N is their number, at least 1.
	N int
}

// AppendTo appends the ids of all permits.
func (p Permits) AppendTo(ids []PermitID) []PermitID {
	for i := range p.N {
		id := p.First
		binary.BigEndian.PutUint16(id[8:], binary.BigEndian.Uint16(id[8:])^uint16(i))
		ids = append(ids, id)
	}
	return ids
}

// Has reports whether one of the permits has that id.
func (p Permits) Has(id PermitID) bool {
	i := binary.BigEndian.Uint16(id[8:]) ^ binary.BigEndian.Uint16(p.First[8:])
	copy(id[8:10], p.First[8:10])
	return id == p.First && int(i) < p.N
}
